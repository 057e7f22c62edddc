# SPDX-License-Identifier: BSD-3-Clause
"""Runs a sweep's workflow with Snakemake, which lives in the environment of requirements-sweep.txt and is never imported here."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from moscope import bootstrap, groups
from moscope.errors import INTERRUPTED, UserError, unknown_name

PURPOSE = "sweep"
LOCAL, SLURM = "local", "slurm"
EXECUTORS = (LOCAL, SLURM)
LOG = "snakemake.log"
REFUSED = re.compile(r"SLURM sbatch failed\. The error message was '(.+?)'\.?\n", re.DOTALL)  # a message of Snakemake's plug-in
KILLED = re.compile(r"moscope\.sweeps\.worker (?:point|batch|boot) (\w+)' (?:died with <Signals\.\w+: (\d+)>|"
                    rf"returned non-zero exit status {INTERRUPTED})\.")
GRACE_S = 20.0
POLL_S = 0.2
LATENCY_S = 60  # until files of other machines appear on a shared file system
TRIES = 3  # for a job that was lost with its node
FIRST_LOOK_S = 10  # until the states of jobs are first requested
QUERY_S = 20.0
PR_SET_PDEATHSIG = 1


def check_executor(name: str) -> None:
    if name not in EXECUTORS:
        raise unknown_name("--executor", "executor", name, EXECUTORS)
    if name == SLURM and shutil.which("sbatch") is None:
        raise UserError("--executor slurm: sbatch not found: expected a host that can submit jobs to the cluster")


def arguments(root: Path, executor: str, at_once: int, memory_mb: int) -> list[str]:
    common = ["--snakefile", str(root / "workflow" / "Snakefile"), "--directory", str(root), "--keep-going", "--nolock",
              "--ignore-incomplete", "--rerun-triggers", "mtime", "--drop-metadata", "--nocolor", "--scheduler", "greedy"]
    if executor == LOCAL:  # `at_once` points, regardless of their threads
        return [*common, "--cores", str(at_once), "--set-threads", "point=1", "--resources", f"mem_mb={memory_mb}", "--latency-wait", "5"]
    return [*common, "--executor", "slurm", "--jobs", str(at_once), "--latency-wait", str(LATENCY_S), "--retries", str(TRIES - 1),
            "--slurm-requeue", "--slurm-init-seconds-before-status-checks", str(FIRST_LOOK_S), *without_accounting()]


def without_accounting() -> list[str]:
    """Options for the plug-in on a Slurm without accounting: it reads the states of jobs from squeue and gives no account."""
    try:
        got = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=QUERY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    kept = re.search(r"^AccountingStorageType\s*=\s*(\S+)", got.stdout, re.MULTILINE)
    none = kept is not None and kept[1] in ("(null)", "accounting_storage/none")
    return ["--slurm-status-command", "squeue", "--slurm-no-account"] if none else []


def run(root: Path, words: list[str], say: Callable[[str], None], watch: Callable[[], None], lock: int) -> int:
    """Runs Snakemake with its output in `snakemake.log`, and calls `watch` from time to time; returns the exit code. Snakemake
    inherits the lock's descriptor. It dies with this process; the workers notice this and end."""
    python = bootstrap.extra_venv(PURPOSE, bootstrap.Relay(say)) / "bin" / "python"
    environment = {**bootstrap.clean_environment(), "PATH": f"{python.parent}:{os.environ.get('PATH', '')}"}
    with (root / LOG).open("ab") as log:
        process = subprocess.Popen([str(python), "-P", "-m", "snakemake", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd=root, env=environment, start_new_session=True, pass_fds=(lock,), preexec_fn=_dies_with_parent)
        try:
            while True:
                try:
                    return process.wait(POLL_S)
                except subprocess.TimeoutExpired:
                    watch()
        except BaseException:
            groups.end(process, signal.SIGINT, GRACE_S)  # with its workers
            raise


_LIBC = ctypes.CDLL(None)


def _dies_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def last_words(root: Path, lines: int = 30) -> str:
    return bootstrap.tail(root / LOG, lines)


def log_size(root: Path) -> int:
    with (root / LOG).open("ab") as log:
        return log.tell()


def refusal(root: Path, since: int) -> str | None:
    """Slurm's message about a job that it does not accept, from the part of the log after `since`."""
    said = REFUSED.search(_log(root, since))
    return "; ".join(line.removeprefix("sbatch: error: ").rstrip(".") for line in said[1].split("\n")) if said else None


def killed(root: Path, since: int) -> dict[str, int]:
    """The points, batches and boots whose process a signal has ended, with the negative signal, from the part of the log after `since`.
    A worker answers SIGTERM by its exit code."""
    return {found[1]: -int(found[2] or signal.SIGTERM) for found in KILLED.finditer(_log(root, since))}


def _log(root: Path, since: int) -> str:
    with (root / LOG).open("rb") as log:
        log.seek(since)
        return log.read().decode(errors="replace")
