# SPDX-License-Identifier: BSD-3-Clause
"""From one moment of a guest to the next, and what its programs tell on the way; run by gem5. A work item of 0 bounds the
region of interest, the end of another is one operation (docs/platform.md)."""

import time

import m5

import machine_system

LIMIT, BEGINS, ENDS = "simulate() limit reached", "the region of interest begins", "the region of interest ends"
WORK_BEGINS, WORK_ENDS, CHECKPOINT = "workbegin", "workend", "checkpoint"


def prepare(system):
    """gem5 counts the end of an item only where it has seen its begin, so each comes here."""
    system.exit_on_work_items = True


class Drive:
    """Counts operations and the host's seconds from its making on."""

    def __init__(self):
        self.operations = 0
        self._began, self._processor = time.monotonic(), time.process_time()

    def seconds(self):
        return time.monotonic() - self._began

    def ended(self, cause):
        """Tells the launcher why the window ended and what was counted; its statistics go to stats.txt."""
        seconds, processor = self.seconds(), time.process_time() - self._processor
        m5.stats.dump()
        machine_system.say(f"region: operations: {self.operations}")
        machine_system.say(f"region: processor: {processor:.3f} s")
        machine_system.say(f"ended: {cause}: {seconds:.3f} s")

    def until(self, tick, step=m5.MaxTick, watch=lambda: None):
        """Up to `tick`, and why it ended there or before. In steps, after each of which `watch` may tell a reason to end."""
        while (left := tick - m5.curTick()) > 0:
            event = m5.simulate(min(left, step))
            cause, item = event.getCause(), event.getCode()
            if cause == LIMIT:
                if (reason := watch()) is not None:
                    return reason
            elif cause == WORK_BEGINS and item == 0:
                return BEGINS
            elif cause == WORK_ENDS and item == 0:
                return ENDS
            elif cause == WORK_ENDS:
                self.operations += 1
            elif cause not in (WORK_BEGINS, CHECKPOINT):
                return cause
        return LIMIT
