"""Time and memory of a fit as rows and parameters grow, beside reading the rows and NUTS in JAX.

``uv run --group bench python benchmarks/measure_growth.py`` takes about half an hour of an idle
machine and prints one line for each point; ``--write`` keeps them in docs/images, with a picture.
Each point is a process of its own: processor time of all its threads, and the largest memory that
it ever held. Rows are those of a logistic regression; more than a million of them lie in shards on
the disk, 9 GB in ``--shards DIR``. JAX (NumPyro's NUTS, without privacy) is left out with a reason
where it is not installed, or would take hours.

``--wide`` compares unrolled gradients of rows with loops over the features, ``--fused`` sums whose
steps are fused with sums by products of matrices.

``--huge DIR`` makes passes over 100,000,000 rows of 10 columns, beside reading them: from the disk,
once the system has dropped them from its cache, and from the cache. The shards are written to DIR
and stay there: 8 GB, or 4 with ``--dtype float32``. With ``--fit`` it is a whole fit of these rows.
See docs/growth.md.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
NUM_ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
DIMS = (2, 10, 30, 100, 200)
# The other size, while one of the two grows; JAX goes on until it takes this long.
DIM, ROWS = 10, 1_000
EPSILON, DELTA = 1.0, 1e-9
DRAWS, CHAINS = 2_000, 4
HUGE, SHARD = 100_000_000, 2_000_000
IN_MEMORY = 1_000_000  # rows that a point still holds in memory
MOST_JAX = 2_000_000  # numbers that NUTS is still given


def rows(num_rows: int, dim: int, dtype: type = np.float64) -> np.ndarray:
    """Return features and a response of a logistic regression with `dim` coefficients."""
    rng = np.random.default_rng([num_rows, dim])
    out = np.empty((num_rows, dim), dtype)
    out[:, :-1] = rng.standard_normal((num_rows, dim - 1), dtype=np.float32)
    out[:, :-1] /= np.sqrt(max(1, dim - 1))
    chance = 1 / (1 + np.exp(-out[:, :-1].sum(axis=1)))
    out[:, -1] = rng.random(num_rows) < chance
    return out


def used() -> tuple[float, float, float]:
    """Return wall time, processor time and the largest memory of this process, in s and MiB."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def private(num_rows: int, dim: int, folder: Path | None = None) -> dict[str, float]:
    """Fit with dpmc, twice: the first call compiles what the cache does not have."""
    import dpmc
    from dpmc.models import logistic

    warnings.simplefilter("ignore")
    if folder is not None:
        return fit(folder, num_rows)
    x, model = rows(num_rows, dim), logistic.build(logistic.Params(dim - 1))
    before = used()
    dpmc.fit(model, x, epsilon=EPSILON, delta=DELTA, num_draws=DRAWS, num_chains=CHAINS, seed=1)
    between = used()
    found = dpmc.fit(
        model, x, epsilon=EPSILON, delta=DELTA, num_draws=DRAWS, num_chains=CHAINS, seed=1
    )
    after = used()
    return {
        "first": between[1] - before[1],
        "again": after[1] - between[1],
        "memory": after[2],
        "rows_memory": x.nbytes / 2**20,
        "held_before": before[2],
        "effective": DRAWS * CHAINS * min(1.0, found.plan.acceptance),
        "worth": found.plan.effective_draws,
        "stages": len(found.plan.stages),
    }


def reading(num_rows: int, dim: int, folder: Path | None = None) -> dict[str, float]:
    """Read the rows once, by one thread, from Parquet or from the shards that are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import dpmc

    if folder is not None:
        return {"again": passed(dpmc.open_rows(folder, workers=1))}
    x = rows(num_rows, dim)
    with tempfile.TemporaryDirectory() as own:
        table = pa.table({str(k): x[:, k] for k in range(dim)})
        pq.write_table(table, Path(own) / "rows.parquet")
        return {"again": passed(dpmc.open_rows(own, workers=1))}


def passed(source: Any) -> float:
    """Return the processor seconds of adding up all numbers of a source."""
    before = used()
    sum(float(piece.sum()) for piece in source.pieces(0, source.num_rows))
    return used()[1] - before[1]


def jax(num_rows: int, dim: int, folder: Path | None = None) -> dict[str, float]:
    """Sample the exact posterior by NUTS, without privacy."""
    if importlib.util.find_spec("numpyro") is None:
        return {"left_out": "numpyro is not installed"}
    if num_rows * dim > MOST_JAX:
        return {"left_out": "it would take too long"}
    import jax as jaxlib
    import jax.numpy as jnp
    import numpyro
    from numpyro.diagnostics import effective_sample_size
    from numpyro.distributions import BernoulliLogits, Normal
    from numpyro.infer import MCMC, NUTS

    jaxlib.config.update("jax_enable_x64", True)
    x = rows(num_rows, dim)
    design = jnp.asarray(np.column_stack([np.ones(num_rows), x[:, :-1]]))
    response = jnp.asarray(x[:, -1])

    def model() -> None:
        theta = numpyro.sample("theta", Normal(jnp.zeros(dim), 10.0).to_event(1))
        numpyro.sample("y", BernoulliLogits(design @ theta), obs=response)

    sampler = MCMC(NUTS(model), num_warmup=300, num_samples=300, progress_bar=False)
    before = used()
    sampler.run(jaxlib.random.PRNGKey(0))
    draws = np.asarray(sampler.get_samples(group_by_chain=True)["theta"])
    after = used()
    return {
        "first": after[1] - before[1],
        "memory": after[2],
        "effective": float(np.min(effective_sample_size(draws))),
    }


KINDS = {"dpmc": private, "reading": reading, "jax": jax}


def point(
    kind: str,
    num_rows: int,
    dim: int,
    cache: str | None = None,
    folder: Path | None = None,
) -> dict[str, float]:
    """Return one point, measured in a process of its own."""
    settings = dict(os.environ)
    if cache is not None:
        settings["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, __file__, "--point", kind, str(num_rows), str(dim)]
    if folder is not None:
        command += ["--shards", str(folder)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    if done.returncode:
        done.stdout = json.dumps({"left_out": done.stderr.splitlines()[-1]})
    size = {"kind": kind, "num_rows": num_rows, "dim": dim, "warm": cache is None}
    found = size | json.loads(done.stdout.splitlines()[-1])
    print(found, flush=True)
    return found


def measure(most_rows: int, shards: Path) -> Iterator[dict[str, float]]:
    """Return all points: d grows, each with an empty cache of compiled code, then n."""
    for dim in DIMS:
        with tempfile.TemporaryDirectory() as cache:
            yield point("dpmc", ROWS, dim, cache)
        for kind in ("reading", "jax"):
            yield point(kind, ROWS, dim)
    for num_rows in NUM_ROWS:
        if num_rows <= most_rows:
            folder = shards / str(num_rows) if num_rows > IN_MEMORY else None
            if folder is not None:
                write_shards(folder, num_rows, "float64")
            for kind in KINDS:
                yield point(kind, num_rows, DIM, folder=folder)


def draw(points: list[dict[str, float]], path: Path) -> None:
    """Draw processor time per effective draw against n and against d, and memory."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    lines = {
        "dpmc, first call": ("dpmc", "first"),
        "dpmc, again": ("dpmc", "again"),
        "NUTS in JAX, no privacy": ("jax", "first"),
    }
    for axis, (size, other, fixed) in zip(
        axes, (("num_rows", "dim", DIM), ("dim", "num_rows", ROWS)), strict=False
    ):
        for label, (kind, which) in lines.items():
            chosen = [p for p in points if p["kind"] == kind and p[other] == fixed and which in p]
            compiled_before = size == "num_rows" or kind == "jax"
            chosen = [p for p in chosen if p["warm"] == compiled_before]
            last = {p[size]: p[which] / p["effective"] for p in chosen}
            if last:
                axis.plot(*zip(*sorted(last.items()), strict=True), marker="o", ms=3, label=label)
        read = {p[size]: p["again"] for p in points if p["kind"] == "reading" and p[other] == fixed}
        x, y = zip(*sorted(read.items()), strict=True)
        axis.plot(x, np.array(y) / (DRAWS * CHAINS), ":", color="grey", label="reading once")
        axis.set(
            xscale="log", yscale="log", xlabel="rows n" if size == "num_rows" else "dimension d"
        )
    axes[0].set(ylabel="processor s per effective draw", title=f"d = {DIM}")
    axes[1].set(title=f"n = {ROWS:,}")
    axes[0].legend(fontsize=7)
    for kind in ("dpmc", "jax"):
        chosen = [p for p in points if p["kind"] == kind and p["dim"] == DIM and "memory" in p]
        held = {p["num_rows"]: p["memory"] for p in chosen}
        axes[2].plot(*zip(*sorted(held.items()), strict=True), marker="o", ms=3, label=kind)
    sizes = sorted({p["num_rows"] for p in points})
    axes[2].plot(sizes, [n * DIM * 8 / 2**20 for n in sizes], ":", color="grey", label="rows")
    axes[2].set(xscale="log", yscale="log", xlabel="rows n", title="largest memory, MiB")
    axes[2].legend(fontsize=7)
    figure.savefig(path)


def shard(k: int) -> np.ndarray:
    """Return part k of the rows of a logistic regression: coefficients 1/3, behind a 0."""
    rng = np.random.default_rng(k)
    part = rng.standard_normal((SHARD, DIM), dtype=np.float32)
    part[:, -1] = rng.random(SHARD) < 1 / (1 + np.exp(-part[:, :-1].sum(axis=1) / 3))
    return part


def write_shards(folder: Path, num_rows: int, dtype: str) -> None:
    """Write the rows of a logistic regression in shards, those of a part that is there not anew."""
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(num_rows // SHARD):
        path = folder / f"part-{k:03}.npy"
        if path.exists():
            continue
        with path.with_suffix(".part").open("wb") as file:
            np.save(file, shard(k).astype(dtype))
            file.flush()
            os.fsync(file.fileno())  # what is not on the disk cannot be dropped from the cache
        path.with_suffix(".part").replace(path)


def mode_of_rows(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the rows have their likeliest coefficients, and standard deviations.

    One Newton step from the coefficients that made the rows: over so few deviations it is exact.
    """
    truth = np.r_[0.0, np.full(DIM - 1, 1 / 3)]
    score, precision = np.zeros(DIM), np.zeros((DIM, DIM))
    for k in range(num_rows // SHARD):
        part = shard(k).astype(np.float64)
        x = np.column_stack([np.ones(SHARD), part[:, :-1]])
        chance = 1 / (1 + np.exp(-x @ truth))
        score += x.T @ (part[:, -1] - chance)
        precision += (x.T * (chance * (1 - chance))) @ x
    mode = truth + np.linalg.solve(precision, score)
    return mode, np.sqrt(np.diag(np.linalg.inv(precision)))


def mode(num_rows: int) -> None:
    """Print how far the exact mode of the rows is from the coefficients that made them."""
    found, deviations = mode_of_rows(num_rows)
    away = (found - np.r_[0.0, np.full(DIM - 1, 1 / 3)]) / deviations
    print(f"the mode of {num_rows} rows, in standard deviations from what made them: ", end="")
    print(", ".join(f"{one:.2f}" for one in away))


def forget(folder: Path) -> None:
    """Drop the shards from the cache of the system, so that the disk has to be read."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def huge(folder: Path, num_rows: int, dtype: str) -> None:
    """Sum the clipped gradients of many rows and count long ones, beside reading the shards."""
    import dpmc
    from dpmc.automatic.whitened import WhitenedRows
    from dpmc.models import gaussian_mean, logistic
    from dpmc.shards import workers

    write_shards(folder, num_rows, dtype)
    source = dpmc.open_rows(folder)
    theta, basis = np.full(DIM, 0.01), np.eye(DIM)
    step = source.part_rows

    def read(first: int) -> np.ndarray:
        pieces = source.pieces(first, min(first + step, source.num_rows))
        return np.array([sum(float(piece.sum()) for piece in pieces)])

    def read_all() -> None:
        starts = iter(range(0, source.num_rows, step))
        for _ in workers.run(read, starts, source.workers, 3600.0, source.name):
            pass

    calls = {"reading": read_all}
    models = {
        "logistic": logistic.build(logistic.Params(DIM - 1)),
        "Gaussian": gaussian_mean.build(gaussian_mean.Params(DIM, np.eye(DIM), prior_variance=100)),
    }
    for name, model in models.items():
        sums = WhitenedRows(model, source)
        few = WhitenedRows(model, dpmc.Dataset.of("few rows", np.ones((2, DIM))))
        for one in (few, sums):
            calls[f"{name}, gradients"] = functools.partial(one.gradient_sum, theta, basis, 2.0)
            calls[f"{name}, long ones"] = functools.partial(
                one.gradients_beyond, theta, basis, [2.0, 5.0]
            )
            if one is few:  # compiled before the clock starts
                calls[f"{name}, gradients"]()
                calls[f"{name}, long ones"]()
    print(f"{source.num_rows} rows of {DIM} numbers ({dtype}), {source.workers} threads")
    for state in ("disk", "cache"):
        read_all()
        wall = {}
        for name, call in calls.items():
            if state == "disk":
                forget(folder)
            before = used()
            call()
            after = used()
            wall[name] = after[0] - before[0]
            print(
                f"{state:5} {name:20} {wall[name]:7.2f} s, {after[1] - before[1]:7.2f} processor "
                f"s, {wall['reading'] / wall[name]:4.0%} of the speed of reading, "
                f"{after[2]:5.0f} MiB at most",
                flush=True,
            )


def fit(folder: Path, num_rows: int, dtype: str = "float64") -> dict[str, float]:
    """Fit a logistic regression to the shards, and compare with the exact mode of the rows."""
    import dpmc
    from dpmc.models import logistic

    write_shards(folder, num_rows, dtype)
    source = dpmc.open_rows(folder)
    model = logistic.build(logistic.Params(DIM - 1))
    before = used()
    found = dpmc.fit(model, source, epsilon=EPSILON, delta=DELTA, num_draws=DRAWS, progress=False)
    after = used()
    draws = found.kept().reshape(-1, DIM)
    exact, _ = mode_of_rows(num_rows)
    distance = np.abs(draws.mean(axis=0) - exact) / draws.std(axis=0)
    return {
        "first": after[1] - before[1],
        "wall": after[0] - before[0],
        "memory": after[2],
        "held_before": before[2],
        "effective": DRAWS * CHAINS * min(1.0, found.plan.acceptance),
        "worth": found.plan.effective_draws,
        "stages": len(found.plan.stages),
        "largest_distance": float(distance.max()),  # of a mean from the exact mode, in deviations
        "largest_deviation": float(draws.std(axis=0).max()),
    }


def fused(num_rows: int = 1 << 16) -> None:
    """Print what sums of clipped gradients take, fused and by products of matrices."""
    import dpmc
    from dpmc.automatic import whitened
    from dpmc.models import logistic

    for dim in (2, 5, 10, 20, 30, 50, 100):
        model = logistic.build(logistic.Params(dim - 1))
        sums = whitened.WhitenedRows(model, dpmc.Dataset.of("rows", rows(num_rows, dim)))
        parts = [f"d = {dim:3}"]
        for name, limit in (("fused", dim), ("products", 0)):
            whitened.FUSED = limit
            times = []
            for _ in range(20):
                start = time.process_time()
                sums.gradient_sum(np.full(dim, 0.01), np.eye(dim), 1.0)
                times.append(time.process_time() - start)
            parts.append(f"{name} {min(times[1:]) / num_rows * 1e9:5.0f} ns a row")
        print("; ".join(parts), flush=True)


def wide(num_rows: int = 4096) -> None:
    """Print what gradients of a logistic regression take, unrolled and by a loop."""
    from dataclasses import replace

    from dpmc.models import logistic
    from dpmc.rows import wide_gradients
    from dpmc.rows.compiled_gradients import RowGradients

    wide_gradients.WIDE = 0
    for dim in (5, 10, 20, 30, 50, 100, 200):
        x, model = rows(num_rows, dim), logistic.build(logistic.Params(dim - 1))
        theta, parts = np.full(dim, 0.01), [f"d = {dim:3}"]
        for name, one in (("loop", model), ("unrolled", replace(model, slope=None))):
            gradients = RowGradients(one, dim)
            features = gradients.features(x, nan_rows=False)
            times = []
            for _ in range(30):
                start = time.process_time()
                gradients(features, theta, 0, num_rows)
                times.append(time.process_time() - start)
            each = min(times[1:]) / num_rows * 1e9
            parts.append(f"{name}: first call {times[0]:5.2f} s, then {each:4.0f} ns a row")
        print("; ".join(parts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep points and picture in docs")
    parser.add_argument("--most", type=int, default=max(NUM_ROWS), help="rows of the largest point")
    parser.add_argument("--draw", action="store_true", help="draw the points that are kept")
    parser.add_argument("--wide", action="store_true", help="unrolled gradients beside loops")
    parser.add_argument("--fused", action="store_true", help="fused sums beside products")
    parser.add_argument("--huge", metavar="DIR", type=Path, help="passes over 1e8 rows")
    parser.add_argument("--fit", action="store_true", help="with --huge: a whole fit instead")
    parser.add_argument("--mode", action="store_true", help="where the rows of --huge have theirs")
    parser.add_argument("--rows", type=int, default=HUGE, help="of these passes")
    parser.add_argument(
        "--shards", metavar="DIR", type=Path, help="folder of more than a million rows"
    )
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float64", help="theirs")
    parser.add_argument("--point", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.point:
        kind, num_rows, dim = options.point
        print(json.dumps(KINDS[kind](int(num_rows), int(dim), options.shards)))
        return
    if options.wide:
        wide()
        return
    if options.fused:
        fused()
        return
    if options.mode:
        mode(options.rows)
        return
    if options.huge:
        if options.fit:
            print(fit(options.huge, options.rows, options.dtype))
        else:
            huge(options.huge, options.rows, options.dtype)
        return
    kept = IMAGES / "growth.json"
    if not options.draw:
        points = []
        for one in measure(options.most, options.shards or ROOT / "build" / "growth"):
            points.append(one)
            if options.write:  # as far as it came
                kept.write_text(json.dumps(points, indent=1) + "\n")
    if options.write or options.draw:
        draw(json.loads(kept.read_text()), IMAGES / "growth.svg")


if __name__ == "__main__":
    main()
