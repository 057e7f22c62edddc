# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of two nodes on this machine: munged, slurmctld and a slurmd for each node, from Debian's packages, in a folder of its own.

It needs root: slurmd starts jobs as their user, and munged wants a key of its own user.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
NODES = ("n1", "n2")
CONFIGURATION = """ClusterName=moscope
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=2,batch_sched_delay=1
SlurmdTimeout=10
InactiveLimit=0
MinJobAge=600
JobRequeue=1
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> list[str]:
    return [p for p in PROGRAMS if shutil.which(p, path=f"{os.environ['PATH']}:/usr/sbin") is None]


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        host, ports = socket.gethostname(), free_ports(1 + len(NODES))
        lines = [f"NodeName={n} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=8000 State=UNKNOWN"
                 for n, port in zip(NODES, ports[1:], strict=True)]
        (folder / "state").mkdir(parents=True)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, port=ports[0], folder=folder, nodes="\n".join(lines)))
        # Snakemake takes SLURM_CONF out of the environment of jobs; where it is no default place, srun needs it.
        (folder / "bin").mkdir()
        (folder / "bin" / "srun").write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
        (folder / "bin" / "srun").chmod(0o755)
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"),
                            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}:/usr/sbin"}

    def __enter__(self) -> "Cluster":
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        self._start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                    f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                    f"--seed-file={self.folder}/munged.seed")
        limit = time.monotonic() + 20
        while not (self.folder / "munge.socket").exists() and time.monotonic() < limit:
            time.sleep(0.1)
        self._start("slurmctld", "-D")
        for node in NODES:
            (self.folder / f"spool-{node}").mkdir()
            self._start("slurmd", "-D", "-N", node)
        limit = time.monotonic() + 60
        while self.states().count("idle") < len(NODES):
            if time.monotonic() > limit:
                raise RuntimeError(f"nodes: {self.states()}\n{(self.folder / 'slurmctld.log').read_text()[-3000:]}")
            time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()

    def _start(self, *words: str) -> None:
        name = " ".join(words[:1] + words[3:]) if words[0] == "slurmd" else words[0]
        with (self.folder / f"{name}.out").open("wb") as out:
            self.processes[name] = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def states(self) -> list[str]:
        return self._ask("sinfo", "-h", "-N", "-o", "%t").split()

    def running(self) -> dict[str, str]:
        """Node of each running job."""
        return dict(line.split() for line in self._ask("squeue", "-h", "-t", "running", "-o", "%A %N").splitlines())

    def log(self) -> str:
        return (self.folder / "slurmctld.log").read_text()

    def kill_node(self, node: str) -> None:
        """Ends the node's daemon as a crash does."""
        self.processes[f"slurmd {node}"].send_signal(signal.SIGKILL)

    def _ask(self, *words: str) -> str:
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False).stdout


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports
