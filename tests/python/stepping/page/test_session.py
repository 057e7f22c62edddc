# SPDX-License-Identifier: BSD-3-Clause
"""A page that the local server serves: changed histories, forks, examples."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from moscope.stepping import server
from moscope.stepping.history import run
from moscope.stepping.spec import Spec

SPEC = Spec("c0 st A@n0; c2 st A@n0; c0 st A@n0", "small")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    made: list[str] = []
    there = threading.Event()

    def ready(where: str) -> None:
        made.append(where)
        there.set()

    threading.Thread(target=server.serve, args=(server.Session(run(SPEC), SPEC), 0, ready), daemon=True).start()
    assert there.wait(30)
    yield made[0]


@pytest.fixture
def session(browser: Any, address: str) -> Iterator[Any]:
    """The served page at the first invalidation. It may ask its own server and nothing else."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    errors: list[str] = []
    requests: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_function("window.moscope")
    page.evaluate("moscope.step('invalidation', 1)")
    yield page
    page.close()
    assert not errors
    assert not [url for url in requests if not url.startswith((address, "data:"))]


def wait_for_fork(page: Any, count: int = 2) -> None:
    page.wait_for_function("count => moscope.app.branches.length === count", arg=count)


def test_a_fork_keeps_the_changes_before_its_moment_and_drops_later_ones(session: Any) -> None:
    session.evaluate("""async () => {
      const live = moscope.page.live;
      const change = async (fs, core) => {
        moscope.seekTime(fs);
        const spec = live.specHere();
        spec.added.push({ at: fs, core, op: "ld", address: "A@n0" });
        await live.change(spec, `core ${core}`);
      };
      await change(40000000, 5);
      await change(90000000, 7);
      moscope.seekTime(60000000);
      await live.fork();
    }""")
    wait_for_fork(session, 4)
    assert [a["core"] for a in session.evaluate("moscope.app.history.spec.added")] == [5]


def test_an_address_with_another_script_runs_it(session: Any, address: str) -> None:
    session.goto(address + "#script=c1+ld+B%40n1&moment=5")
    session.reload()
    session.wait_for_function("window.moscope && moscope.app.history.trace.script === 'c1 ld B@n1'")
    assert session.evaluate("moscope.state().k") == 5


def test_an_example_of_the_server_opens_with_its_text(session: Any) -> None:
    session.keyboard.press("g")
    session.locator("#ask [name=example]").select_option("false-sharing")
    session.get_by_role("button", name="Apply").click()
    session.wait_for_function("moscope.app.history.document.example?.name === 'false-sharing'")
    assert session.evaluate("moscope.state().k") == 0
    assert session.locator("#note").inner_text().startswith("False sharing")
