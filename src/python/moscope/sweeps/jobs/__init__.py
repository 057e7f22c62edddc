# SPDX-License-Identifier: BSD-3-Clause
"""The kinds of job that a sweep's points can be, one module each. A module declares `JOB`; it is found by its place in this folder."""

import pkgutil

from moscope import contributed
from moscope.errors import unknown_name
from moscope.sweeps.jobs import base
from moscope.sweeps.jobs.base import Job


def all_jobs() -> dict[str, Job]:
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name != "base"]
    found: list[Job] = [contributed.declared(f"{__name__}.{m}", "JOB", Job, "JOB, an instance of a subclass of Job") for m in modules]
    return {job.name: job for job in found}


def look_again() -> None:
    """Forgets what an earlier sweep in this process has read, because files may have changed since."""
    base.forget()
    for job in all_jobs().values():
        job.forget()


def find(name: str, where: str = "job") -> Job:
    jobs = all_jobs()
    if name not in jobs:
        raise unknown_name(where, "job", name, jobs)
    return jobs[name]
