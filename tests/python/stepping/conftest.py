# SPDX-License-Identifier: BSD-3-Clause
"""A local server for the tests of a module, and random scripts."""

import random
import threading
from collections.abc import Callable, Iterator

import pytest

from moscope.stepping import server
from moscope.stepping.history import history, run
from moscope.stepping.spec import Spec
from moscope.stepping.subject import prepared


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the history of the module's SPEC is served."""
    spec = request.module.SPEC
    made: list[str] = []
    there = threading.Event()

    def ready(where: str) -> None:
        made.append(where)
        there.set()

    threading.Thread(target=server.serve, args=(server.Session(run(spec), spec), 0, ready), daemon=True).start()
    assert there.wait(120)
    yield made[0]


def random_timed_script(rng: random.Random, protocol: str) -> str:
    """Accesses of cores and devices with moments and sizes of their own, and delays of three of their messages."""
    devices, steps = protocol != "MSI", []
    for _ in range(rng.randint(2, 4)):
        accesses = []
        for _ in range(rng.randint(1, 4)):
            device = devices and rng.random() < 0.3
            who, op = ("d0", rng.choice(["ld", "st"])) if device else (f"c{rng.randrange(12)}", rng.choice(["ld", "st", "rmw", "if"]))
            place = f"{rng.choice('AB')}@n{rng.randrange(2)}+{8 * rng.randrange(7)}:{rng.choice([1, 4, 8, 16])}"
            accesses.append(f"{who} {op} {place} at {rng.randrange(0, 300)}ns")
        steps.append(accesses)
    flat = [(i, k) for i, step in enumerate(steps) for k in range(len(step))]
    plain = Spec("; ".join(" | ".join(step) for step in steps), "opteron48", sets=(f"protocol={protocol}",))
    sent = [m for m in history(prepared(plain)[0], plain)["trace"]["messages"] if m["network"] and m["access"] is not None]
    for m in {(m["access"], m["type"]): m for m in rng.sample(sent, 3)}.values():
        i, k = flat[m["access"]]
        steps[i][k] += f" {m['type']}>{m['deliveries'][0]['to']}+{rng.randrange(10, 90)}ns"
    return "; ".join(" | ".join(step) for step in steps)


@pytest.fixture(scope="session")
def timed_script() -> Callable[[random.Random, str], str]:
    return random_timed_script
