# SPDX-License-Identifier: BSD-3-Clause
"""What a start of a run would do, without doing it: its points, those that are finished, the estimated time, and what is built first.
The estimate is that of a sweep (`speeds`)."""

import os
from typing import Any

from moscope.runs import directory, inputs
from moscope.runs.options import Plan
from moscope.sweeps import main, speeds
from moscope.sweeps.jobs.run import kind_of, work_of
from moscope.wording import number


def forecast(plan: Plan) -> tuple[dict[str, Any], str]:
    """The keys that the documents of a sweep's --dry-run have, too, and the same in words. Nothing is built or written. UserError if the
    folder of the run holds other options."""
    found = directory.kept(plan)
    left = [p for p in plan.points if p.name not in found]
    lacking = list(dict.fromkeys(what for p in left for what in inputs.lacking(p)))
    at_once = len(os.sched_getaffinity(0))
    time = speeds.estimate((kind_of(p), work_of(p)) for p in left)
    said = number(len(plan.points), "point") + (f", {len(found)} finished already" if found else "")
    said += main.time_text(time, len(left), at_once) if left else ""
    said += f"; built first: {', '.join(lacking)}" if lacking else ""
    return {"points": len(plan.points), "done": len(found), **main.estimated(time, len(left), at_once),
            **({"built_first": lacking} if lacking else {})}, said
