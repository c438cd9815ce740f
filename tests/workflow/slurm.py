"""A SLURM of one node, for tests: its own folder, key, ports and daemons, nothing of the system.

Needs ``munged``, ``slurmctld`` and ``slurmd`` (Debian: munge, slurm-wlm) and no privilege.
"""

from __future__ import annotations

import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SBIN = ("/usr/sbin", "/sbin", "/usr/local/sbin")
DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
PARTITION = "compute"
MEMORY_MB = 16_000
LONGEST_MINUTES = 60

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ReturnToService=2
MinJobAge=86400
KillWait=2
NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName={partition} Nodes={node} Default=YES MaxTime={longest} State=UP
"""


def missing() -> list[str]:
    """Return the programs that are not installed."""
    return [name for name in (*DAEMONS, *CLIENTS) if program(name) is None]


def program(name: str) -> str | None:
    """Return the path of a program, daemons outside the usual path included."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *SBIN]))


@dataclass(frozen=True)
class Cluster:
    """A running SLURM.

    Parameters
    ----------
    folder : Path
        Holds its configuration, its state and its logs.
    """

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which the commands of SLURM find this one."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def run(self, *command: str) -> str:
        """Run a command of SLURM and return what it prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}\n{self.logs()}"
        return done.stdout

    def jobs(self) -> dict[int, tuple[str, str]]:
        """Return the state and the comment of every job that was ever submitted, by number."""
        lines = self.run("squeue", "--states=all", "--noheader", "--format=%i|%T|%k").splitlines()
        rows = (line.strip().split("|", 2) for line in lines)
        return {int(number): (state, comment) for number, state, comment in rows}

    def requests(self, number: int) -> tuple[int, int]:
        """Return the megabytes and the minutes that a job asked for."""
        line = self.run(
            "squeue",
            "--states=all",
            "--noheader",
            "--noconvert",
            f"--jobs={number}",
            "--format=%m|%l",
        )
        memory, limit = line.strip().split("|")
        *days, clock = limit.split("-")
        hours, minutes, _ = [0, 0, *map(int, clock.split(":"))][-3:]
        hours += 24 * sum(map(int, days))
        return int(memory.rstrip("M")), 60 * hours + minutes

    def logs(self) -> str:
        """Return the ends of the logs of the daemons."""
        texts = []
        for path in sorted(self.folder.glob("*.log")):
            tail = path.read_text(encoding="utf-8", errors="replace")[-3000:]
            texts.append(f"--- {path.name}\n{tail}")
        return "\n".join(texts)


@contextmanager
def running(folder: Path, cpus: int = 2) -> Iterator[Cluster]:
    """Start a cluster in an empty folder and end it with all that it runs.

    Parameters
    ----------
    folder : Path
        Its path is short: it holds a socket.
    cpus : int
        Processors that the node claims to have.

    Yields
    ------
    Cluster
        Once its node is idle.
    """
    cluster = Cluster(folder)
    prepare(folder, cpus)
    with ExitStack() as stack:
        stack.enter_context(daemon(cluster, "munged", *munge_options(folder)))
        stack.enter_context(daemon(cluster, "slurmctld", "-D", "-c", "-i"))
        stack.enter_context(daemon(cluster, "slurmd", "-D", "-N", "node0"))
        wait_for_node(cluster)
        try:
            yield cluster
        finally:
            cancel_all(cluster)


def prepare(folder: Path, cpus: int) -> None:
    """Write the key, the configuration and the wrappers."""
    folder.chmod(0o755)
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    control_port, node_port = free_ports(2)
    text = CONFIGURATION.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        node="node0",
        user=getpass.getuser(),
        control_port=control_port,
        node_port=node_port,
        cpus=cpus,
        memory=MEMORY_MB,
        partition=PARTITION,
        longest=LONGEST_MINUTES,
    )
    configuration = folder / "slurm.conf"
    configuration.write_text(text, encoding="utf-8")
    # Steps of a job lose the variable that names the configuration: the executor removes
    # SLURM_* before it calls srun, and finds this one first.
    for name in CLIENTS:
        wrapper = folder / "bin" / name
        wrapper.write_text(
            f'#!/bin/sh\nSLURM_CONF={configuration} exec {program(name)} "$@"\n', encoding="utf-8"
        )
        wrapper.chmod(0o755)


def munge_options(folder: Path) -> list[str]:
    return [
        "--foreground",
        "--force",
        f"--socket={folder}/munge.socket",
        f"--key-file={folder}/munge.key",
        f"--pid-file={folder}/munge.pid",
        f"--seed-file={folder}/munge.seed",
        f"--log-file={folder}/munged.log",
        "--num-threads=2",
    ]


@contextmanager
def daemon(cluster: Cluster, name: str, *options: str) -> Iterator[None]:
    """Run a daemon in the foreground of a process of its own, and end it."""
    path = program(name)
    assert path is not None, name
    with (cluster.folder / f"{name}.out.log").open("wb") as out:
        process = subprocess.Popen(
            [path, *options],
            env=cluster.environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    try:
        if name == "munged":
            wait_for_socket(cluster, process)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends, however that does."""
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)


def wait_for_socket(cluster: Cluster, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while not (cluster.folder / "munge.socket").exists():
        assert process.poll() is None, cluster.logs()
        assert time.monotonic() < deadline, cluster.logs()
        time.sleep(0.05)


def wait_for_node(cluster: Cluster) -> None:
    deadline = time.monotonic() + 60
    while True:
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"],
            env=cluster.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.stdout.strip() == "idle":
            return
        assert time.monotonic() < deadline, f"{done.stdout}{done.stderr}\n{cluster.logs()}"
        time.sleep(0.2)


def cancel_all(cluster: Cluster) -> None:
    """Cancel what still runs, and wait for its end: the daemons would leave it alone."""
    cluster.run("scancel", "--quiet", f"--user={getpass.getuser()}")
    deadline = time.monotonic() + 30
    while cluster.run("squeue", "--noheader").strip() and time.monotonic() < deadline:
        time.sleep(0.2)


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for entry in sockets:
            entry.bind(("127.0.0.1", 0))
        return [entry.getsockname()[1] for entry in sockets]
    finally:
        for entry in sockets:
            entry.close()
