"""Code that is not ours: a private mean, as anyone may find it, and what its outcomes tell of it.

uv run python docs/examples/audit_other_code.py
"""

import numpy as np

import dpmc

EPSILON = 1.0
# Ages of ten people; the neighbour has somebody of 100 in the place of the last.
DATA = np.linspace(18, 40, 10)
NEIGHBOUR = np.append(DATA[:-1], 100)


def found_somewhere(ages, rng):
    """Mean of ages, said to be private at epsilon 1: its range is that of the data."""
    low, high = ages.min(), ages.max()
    return ages.mean() + rng.laplace(scale=(high - low) / len(ages) / EPSILON)


def mended(ages, rng):
    """The same with a range that is public."""
    low, high = 18.0, 100.0
    return np.clip(ages, low, high).mean() + rng.laplace(scale=(high - low) / len(ages) / EPSILON)


def main(path="docs/images/audit_other_code.png", num_runs=4_000):
    """Audit both, and draw what was found of the first beside what it claims."""
    results = {
        function.__name__: dpmc.audit(
            function, DATA, NEIGHBOUR, claim=EPSILON, num_runs=num_runs, confidence=0.999999
        )
        for function in (found_somewhere, mended)
    }
    for name, result in results.items():
        print(f"{name}: {result}\n    {result.event}")
    results["found_somewhere"].plot().savefig(path, dpi=110)
    return results


if __name__ == "__main__":
    main()
