# SPDX-License-Identifier: BSD-3-Clause
"""A page that the local server serves: added accesses, delayed messages and forks, by mouse and by keyboard, compared side by side.
The states of a changed history are those of a run with the same changes from the start."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from moscope.stepping.examples import names
from moscope.stepping.history import run
from moscope.stepping.spec import LONGEST_DELAY_FS, Added, Delay, Spec

SPEC = Spec("c0 st A@n0; c2 st A@n0; c0 st A@n0", "small")
PERIOD = 1_250_000 / 3


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


def states(page: Any) -> dict[str, Any]:
    page.evaluate("moscope.seek(moscope.app.history.moments.length)")
    shown: dict[str, Any] = page.evaluate("moscope.state().states")
    return shown


def states_of(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for change in document["changes"]:
        if change["kind"] == "entry":
            found.setdefault(change["line"], {})[change["controller"]] = change["state"]
    return found


def wait_for_fork(page: Any, count: int = 2) -> None:
    page.wait_for_function("count => moscope.app.branches.length === count", arg=count)


def add_access(page: Any, core: str, op: str) -> None:
    """Adds an access of a core at the present moment, with the keyboard, which forks the history."""
    page.keyboard.press("s")
    page.locator("#ask input").fill(core)
    page.keyboard.press("Enter")
    page.locator("#ask [name=op]").select_option(op)
    page.get_by_role("button", name="Apply").click()
    wait_for_fork(page)


def test_a_click_on_a_core_adds_an_access_at_this_moment(session: Any) -> None:
    at = round(session.evaluate("moscope.app.time"))
    session.get_by_role("button", name="core 4: add an access").click()
    session.locator("#ask [name=op]").select_option("st")
    session.get_by_label("address").fill("0x10008")
    session.get_by_role("button", name="Apply").click()
    wait_for_fork(session)
    assert round(session.evaluate("moscope.app.time")) == at
    assert "core 4: store" in session.locator("#accesses").inner_text()
    assert states(session) == states_of(run(replace(SPEC, added=(Added(at, 4, "st", "0x10008"),))))


def test_a_click_on_a_message_delays_it(session: Any) -> None:
    session.keyboard.press("m")
    message = session.locator("g.message").first
    number = int(message.get_attribute("data-message"))
    at = round(session.evaluate("moscope.app.time"))
    message.click()
    session.get_by_label("by cycles").fill("300")
    session.get_by_role("button", name="Apply").click()
    wait_for_fork(session)
    late = session.evaluate("id => moscope.app.history.trace.messages[id].deliveries[0].at", number)
    first = session.evaluate("id => moscope.app.branches[0].history.trace.messages[id].deliveries[0].at", number)
    assert late - first == round(300 * PERIOD)
    assert states(session) == states_of(run(replace(SPEC, delays=(Delay(number, round(300 * PERIOD), at),))))


def test_two_histories_stand_side_by_side_from_the_moment_at_which_they_part(session: Any) -> None:
    at = session.evaluate("moscope.app.time")
    add_access(session, "6", "rmw")
    session.keyboard.press("3")
    compare = session.locator("#compare")
    assert compare.locator(".compare-list").count() == 2
    session.get_by_role("button", name="go there").click()
    assert at < session.evaluate("moscope.app.time") <= at + 2 * PERIOD
    session.keyboard.press("End")
    assert "added" in compare.locator("tr", has_text="c6 rmw").inner_text()
    session.keyboard.press("h")
    assert session.evaluate("moscope.app.branch") == 0


def test_a_controller_without_a_transition_in_one_history_differs_only_once_it_has_another_state(session: Any) -> None:
    add_access(session, "5", "ld")
    session.keyboard.press("3")
    row = session.locator("#compare tr.changed", has_text="L1Cache-5")
    assert row.count() == 0
    session.evaluate("moscope.seekTime(moscope.app.history.trace.accesses.find((a) => a.core === 5).done)")
    assert row.count() == 1 and row.locator("td").all_inner_texts()[0] == "I"


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


def test_a_fork_before_the_moment_of_a_delay_drops_it(session: Any) -> None:
    delays = session.evaluate("""async () => {
      const live = moscope.page.live;
      const { app } = moscope;
      const message = app.history.trace.messages.find((m) => m.hops.length && m.deliveries[0].at > app.time);
      const after = message.deliveries[0].at - 1e6;
      moscope.seekTime(after);
      await live.change({ ...live.specHere(), delays: [{ message: message.id, extra_fs: 1e8, after }] }, "delayed");
      const kept = async (fs) => {
        moscope.app.show(1, fs);
        await live.fork();
        return moscope.app.history.spec.delays.length;
      };
      return [await kept(after), await kept((message.sent + after) / 2)];
    }""")
    assert delays == [1, 0]


def test_two_changes_at_a_time_between_moments_are_both_kept(session: Any) -> None:
    session.evaluate("""async () => {
      const { app, page } = moscope;
      const gap = app.history.moments.findIndex((m, k) => k > app.k && m.at > app.history.timeAt(k) + 1e6);
      app.moveTo(app.history.moments[gap].at - 5e5 + 0.3);
      for (const core of [5, 7]) {
        const spec = page.live.specHere();
        spec.added.push({ at: Math.round(app.time), core, op: "ld", address: "A@n0" });
        await page.live.change(spec, `core ${core}`);
      }
    }""")
    assert [a["core"] for a in session.evaluate("moscope.app.history.spec.added")] == [5, 7]


def test_a_link_to_a_fork_of_an_example_with_small_caches_opens_it(session: Any) -> None:
    session.evaluate("moscope.page.live.openExample('msi-race-silent-drop')")
    session.wait_for_function("moscope.app.history.document.example?.name === 'msi-race-silent-drop'")
    moments = session.evaluate("moscope.length")
    session.evaluate("async () => { moscope.seek(moscope.length); await moscope.page.live.fork(); moscope.seek(moscope.length); }")
    assert session.evaluate("moscope.length") == moments
    session.wait_for_function("location.hash.includes('spec=') && location.hash.includes('moment=' + moscope.length)")
    session.reload()
    session.wait_for_function("window.moscope && moscope.app.history.trace.protocol === 'MSI'")
    assert session.evaluate("moscope.length") == moments


def test_an_impossible_change_is_refused_with_its_reason(session: Any) -> None:
    session.get_by_role("button", name="core 4: add an access").click()
    session.get_by_label("address").fill("A@n99")
    session.get_by_role("button", name="Apply").click()
    session.wait_for_function("document.querySelector('#ask .error').textContent.includes('expected')")
    assert session.evaluate("moscope.app.branches.length") == 1


def test_a_field_refuses_an_empty_core_and_a_delay_that_the_server_would_refuse(session: Any) -> None:
    session.keyboard.press("s")
    session.locator("#ask input").fill("")
    session.get_by_role("button", name="Next", exact=True).click()
    assert session.evaluate("document.querySelector('#ask input').validity.valueMissing")
    session.get_by_role("button", name="Cancel").click()
    session.keyboard.press("m")
    session.locator("g.message").first.click()
    cycles = session.get_by_label("by cycles")
    cycles.fill("1000000000")
    session.get_by_role("button", name="Apply").click()
    assert cycles.evaluate("e => e.validity.rangeOverflow")
    assert LONGEST_DELAY_FS / PERIOD - 1 < int(cycles.get_attribute("max")) <= LONGEST_DELAY_FS / PERIOD
    assert session.evaluate("moscope.app.branches.length") == 1


@pytest.mark.parametrize(("fragment", "says"), [
    ("moment=abc", "moment: abc: expected a whole number from 0 to"), ("moment=-1", "moment: -1: expected"),
    ("example=nosuch", re.compile("^example: no example called \"nosuch\"")),
    ("spec=garbage", "spec is damaged"), ("spec=3", "spec is damaged")])
def test_a_damaged_address_is_reported(session: Any, address: str, fragment: str, says: str | re.Pattern[str]) -> None:
    session.goto(f"{address}#{fragment}")
    session.reload()
    session.wait_for_function("window.moscope")
    session.locator("#notice", has_text=says).wait_for()
    assert "NaN" not in session.locator("#transport").inner_text()


def test_a_mistake_in_the_script_of_an_address_is_marked_below_the_script(session: Any, address: str) -> None:
    session.goto(f"{address}#script=c0+xx+A%40n0")
    session.reload()
    session.wait_for_function("window.moscope")
    notice = session.locator("#notice", has_text="trace script")
    notice.wait_for()
    _, script, carets = notice.inner_text().splitlines()
    assert script[carets.index("^"):carets.rindex("^") + 1] == "xx"
    assert notice.evaluate("element => getComputedStyle(element).fontFamily").endswith("monospace")


def test_examples_are_listed_by_title_with_their_names(session: Any) -> None:
    session.keyboard.press("g")
    session.locator("#ask [name=example]").wait_for()
    shown = session.locator("#ask [name=example] option").all_inner_texts()
    races = [text for text in shown if "race" in text and text.startswith("MSI")]
    assert [text.rpartition(" ")[2] for text in races] == ["(msi-race-write-back)", "(msi-race-upgrade)", "(msi-race-silent-drop)"]
    assert len(shown) == len(names())


def test_an_address_with_another_script_runs_it(session: Any, address: str) -> None:
    session.goto(address + "#script=c1+ld+B%40n1&moment=5")
    session.reload()
    session.wait_for_function("window.moscope && moscope.app.history.trace.script === 'c1 ld B@n1'")
    assert session.evaluate("moscope.state().k") == 5


def test_an_address_set_while_the_page_is_about_to_write_its_own_is_kept(session: Any) -> None:
    session.evaluate("""() => {
      moscope.step('invalidation', -1);  // 300 ms later the page writes its position
      location.hash = '#script=c1+ld+B%40n1&moment=5';
      moscope.page.link.write();  // sooner than the event that announces the new address
    }""")
    assert session.evaluate("location.hash") == "#script=c1+ld+B%40n1&moment=5"
    session.wait_for_function("moscope.app.history.trace.script === 'c1 ld B@n1' && moscope.state().k === 5")


def test_a_link_to_a_fork_runs_its_changes_and_shows_its_view(session: Any) -> None:
    session.keyboard.press("s")
    session.keyboard.type("4")  # replaces the core that the field proposes
    session.keyboard.press("Enter")
    session.locator("#ask [name=op]").wait_for()
    session.locator("#ask [name=address]").press("Enter")
    wait_for_fork(session)
    session.locator("#ask").wait_for(state="hidden")
    session.keyboard.press("2")
    session.keyboard.press("End")
    session.wait_for_function("location.hash.includes('view=sequence') && location.hash.includes('moment=' + moscope.length)")
    shown = session.evaluate("[moscope.length, moscope.app.history.spec.added]")
    assert shown[1][0]["core"] == 4
    session.reload()
    session.wait_for_function("window.moscope && moscope.app.history.spec.added.length === 1 && moscope.state().k === moscope.length")
    assert session.evaluate("[moscope.length, moscope.app.history.spec.added]") == shown
    assert session.locator("#sequence").is_visible()


def test_a_link_to_an_example_opens_it_with_its_protocol_and_text(session: Any) -> None:
    session.keyboard.press("g")
    session.locator("#ask [name=example]").select_option("msi-life")
    session.get_by_role("button", name="Open").click()
    session.wait_for_function("moscope.app.history.trace.protocol === 'MSI'")
    session.locator("#ask").wait_for(state="hidden")
    session.keyboard.press("End")
    session.wait_for_function("location.hash.includes('example=msi-life') && location.hash.includes('moment=' + moscope.length)")
    session.reload()
    session.wait_for_function("window.moscope && moscope.app.history.trace.protocol === 'MSI' && moscope.state().k === moscope.length")
    assert session.evaluate("moscope.app.history.document.example.name") == "msi-life"


def test_an_example_of_the_server_opens_with_its_text(session: Any) -> None:
    session.keyboard.press("g")
    session.locator("#ask [name=example]").select_option("false-sharing")
    session.get_by_role("button", name="Open").click()
    session.wait_for_function("moscope.app.history.document.example?.name === 'false-sharing'")
    assert session.evaluate("moscope.state().k") == 0
    assert session.locator("#note").inner_text().startswith("False sharing")
