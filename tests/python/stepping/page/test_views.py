# SPDX-License-Identifier: BSD-3-Clause
"""The views of the page in Chromium: protocol, breakpoints, search, filters, sequence diagram, an example's text, the address."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

RACE = "c0 ld A@n0 | c1 st A@n0 | c13 st B@n3; c6 rmw A@n0 | c7 ld A@n0; c0 ld B@n3; c42 st A@n0"
SHARING = "c0 st A@n0; c6 st 0x10008; c0 st A@n0; c6 st 0x10008"
EXAMPLE: dict[str, Any] = {"name": "sharing", "title": "False sharing", "steps": [
    {"text": "Core 0 writes."}, {"text": "Core 6 writes another word.", "at": 200.0}, {"text": "The line goes back.", "at": 400.0}]}
Document = dict[str, Any]
Open = Callable[..., Any]


@pytest.fixture
def race(open_page: Open, history_of: Callable[[str], Document]) -> Any:
    return open_page(history_of(RACE))


@pytest.fixture
def sharing(open_page: Open, history_of: Callable[[str], Document]) -> Any:
    return open_page({**history_of(SHARING), "example": EXAMPLE})


def test_an_access_shows_its_segments_and_they_add_up_to_its_latency(sharing: Any) -> None:
    access = sharing.locator("#accesses li", has_text="core 6: store").first
    access.get_by_role("button").first.click()
    numbers = [float(text) for text in sharing.locator("#accesses .segments td:nth-child(2)").all_inner_texts()]
    assert len(numbers) == 8 and numbers[-1] == 185.0
    assert abs(sum(numbers[:-1]) - numbers[-1]) < 0.06 * len(numbers)
    assert "HyperTransport links: 121.9 of 185.0 cycles (66 %)" in sharing.locator("#accesses .why").inner_text()


def test_the_list_of_accesses_follows_the_position(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of("; ".join(f"c{6 * (i % 8)} st A@n0" for i in range(24))))
    in_sight = """() => { const [list, row] = ["#accesses", "#accesses .current .access"].map((e) =>
      document.querySelector(e)?.getBoundingClientRect()); return row && row.top >= list.top && row.bottom <= list.bottom; }"""
    for _ in range(40):
        page.keyboard.press("a")
    page.wait_for_function(in_sight)
    page.keyboard.press("Home")
    page.wait_for_function("document.querySelector('#accesses').scrollTop < 100")


def test_an_accesss_links_and_steps_are_named_in_plain_words(sharing: Any) -> None:
    sharing.locator("#accesses li", has_text="core 6: store").first.get_by_role("button").first.click()
    assert "Store 1→0 takes 43.0; Data with the line 0→1 takes 79.0" in sharing.locator("#accesses .segments").inner_text()
    steps = sharing.locator("#accesses .way-list").inner_text()
    for step in ("core 6 finds no copy in its caches: I → IM", "L3 of chip 1 has no copy: stays in NP", "L3 of chip 1 → home 0: Store",
                 "home 0 looks up who has the line: EM → BU", "home 0 → L3 of chip 0: ProbeInv",
                 "core 0 gives up its copy: M → I", "core 6 receives the line: IM → M"):
        assert step in steps


def test_the_first_invalidation_is_one_button_away(sharing: Any) -> None:
    sharing.get_by_role("button", name="next invalidation").click()
    text = sharing.locator("#now-text").inner_text()
    assert text.endswith("Invalidation: core 0 loses its copy because core 6 writes.")
    at = sharing.evaluate("moscope.app.time")
    sharing.keyboard.press("x")  # opens the access of this moment and stays there
    assert "core 6: store" in sharing.locator("#accesses li.open .access").inner_text()
    assert sharing.evaluate("moscope.app.time") == at
    sharing.keyboard.press("End")
    sharing.keyboard.press("i")
    assert sharing.locator("#notice").inner_text() == "There is no further invalidation."


@pytest.mark.parametrize("zooms", [0, 4])
def test_labels_of_the_sequence_diagrams_columns_are_apart(open_page: Open, history_of: Callable[[str], Document], zooms: int) -> None:
    page = open_page(history_of("; ".join(f"c{core} st A@n{core % 8}" for core in (35, 36, 40, 41, 42, 43))))
    page.keyboard.press("2")
    for _ in range(zooms):
        page.keyboard.press("Z")
    boxes = page.evaluate("""[...document.querySelectorAll(".sequence-head text")].map((t) => t.getBoundingClientRect())
      .map(({left, right, top, bottom}) => [left, right, top, bottom])""")
    assert len(boxes) > 12
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]
                if min(a[1], b[1]) > max(a[0], b[0]) - 2 and min(a[3], b[3]) > max(a[2], b[2]) + 2]


def test_the_protocols_table_marks_the_cell_and_shows_the_source_with_its_actions(race: Any) -> None:
    race.keyboard.press("5")
    race.keyboard.press("t")
    assert race.locator("#protocol td.now button").get_attribute("aria-label").startswith("I, Load: IS")
    source = race.locator("#protocol .source").first.inner_text()
    assert re.search(r"\.sm:\d+", source) and "transition(" in source.replace(" ", "")
    assert race.locator("#protocol .action .source").count() >= 2


def test_a_click_on_a_cell_goes_where_the_trace_took_it(race: Any) -> None:
    race.keyboard.press("5")
    race.locator("#protocol .was-taken button").last.click()
    taken = race.evaluate("moscope.app.moment.kind + ' ' + moscope.app.hits.includes(moscope.app.moment.index)")
    assert taken == "transition true"


def test_playing_and_running_stop_at_breakpoints(race: Any) -> None:
    race.keyboard.press("6")
    form = race.locator("#filters form")
    form.locator("select").first.select_option("event")
    form.locator("select[name=event]").select_option("Probe_Inv")
    form.get_by_role("button", name="add breakpoint").click()
    race.locator("body").press("c")
    first = race.evaluate("[moscope.app.moment.kind, document.getElementById('now-text').textContent]")
    assert first[0] == "transition" and "event Probe_Inv" in first[1]
    k = race.evaluate("moscope.state().k")
    race.evaluate("moscope.seek(0); moscope.page.player.speed = 8; moscope.page.player.toggle(true)")
    race.wait_for_function("!moscope.app.playing")
    assert race.evaluate("moscope.state().k") == k


@pytest.mark.parametrize(("kind", "fields", "expected"), [
    ("message", {"type": "", "link": "1→0"}, "leaves chip 1 on link 1→0"),
    ("latency", {"bound": "400"}, "is done after"),
    ("state", {"line": "", "controller": "", "state": "M"}, "to M."),
])
def test_each_kind_of_breakpoint_finds_its_moment(race: Any, kind: str, fields: dict[str, str], expected: str) -> None:
    race.evaluate("point => { moscope.app.breakpoints = [point]; moscope.app.run(1); }", {"kind": kind, "on": True, **fields})
    assert expected in race.locator("#now-text").inner_text()


def test_search_goes_to_the_moments_that_hold_all_words(race: Any) -> None:
    race.keyboard.press("/")
    race.keyboard.type("probeinv l3cache-0")
    race.keyboard.press("Enter")
    assert "ProbeInv" in race.locator("#now-text").inner_text()
    assert re.fullmatch(r"1 of \d+", race.locator("#search-count").inner_text())


def test_one_and_many_have_their_own_words_and_none_is_said(race: Any) -> None:
    race.evaluate("""() => { const { moments, trace } = moscope.app.history;
      moscope.seek(moments.findIndex((m) => trace.messages[m.message]?.hops.length > 1) + 1); }""")
    assert re.search(r" over links \d→\d, \d→\d", race.locator("#now-text").inner_text())
    race.keyboard.press("5")
    assert race.locator("#protocol [aria-label$='taken once']").count()
    assert not race.locator("#protocol [aria-label$='taken 1 times']").count()
    race.keyboard.press("/")
    race.keyboard.type("nosuchword")
    assert race.locator("#search-count").inner_text() == "none"
    assert race.evaluate("moscope.step('foo', 1)") is False
    assert race.locator("#notice").inner_text() == (
        "There is no kind of step called foo: expected transition, message, access, invalidation or moment.")


@pytest.fixture
def long(open_page: Open, history_of: Callable[[str], Document]) -> Any:
    return open_page(history_of("; ".join(f"c{6 * (i % 8)} st A@n0" for i in range(40))))


def test_numbers_of_the_page_have_commas_between_thousands(long: Any) -> None:
    long.keyboard.press("End")
    assert re.fullmatch(r"1?\d,\d{3}\.\d cycles · moment 1,\d{3} of 1,\d{3}", long.locator("#transport .position").inner_text())
    for _ in range(9):
        long.keyboard.press("+")
    assert long.locator("#transport .speed").inner_text() == "2,000 cycles/s"


@pytest.mark.parametrize("share", [0.1, 0.6, 1])
def test_the_times_of_a_transition_are_those_around_the_present_one(long: Any, share: float) -> None:
    long.keyboard.press("5")
    long.evaluate("share => moscope.seek(Math.floor(share * (moscope.length - 1)))", share)
    long.keyboard.press("t" if share < 1 else "T")
    taken = long.locator("#protocol .hits")
    number = int(taken.inner_text().split("×")[0].removeprefix("taken "))
    assert taken.locator("button").count() == min(24, number) and number > 24
    assert taken.locator("button.current").count() == 1
    assert "…" not in "".join(taken.locator("button").all_inner_texts()) and "…" in taken.inner_text()


def test_a_search_keeps_its_words_when_escape_leaves_it(race: Any) -> None:
    race.keyboard.press("/")
    race.keyboard.type("Inv")
    race.keyboard.press("Escape")
    assert race.locator("#search").input_value() == "Inv"
    race.keyboard.press("n")
    assert race.locator("#search-count").inner_text().startswith("1 of ")


def test_the_focus_stays_where_a_breakpoint_is_added(race: Any) -> None:
    race.keyboard.press("6")
    race.get_by_role("button", name="add breakpoint").focus()
    race.keyboard.press("Enter")
    assert race.evaluate("moscope.app.breakpoints.length") == 1
    assert race.evaluate("document.activeElement.textContent") == "add breakpoint"


def test_a_hidden_line_is_not_stepped_to_nor_shown(race: Any) -> None:
    race.keyboard.press("6")
    race.locator("#filters .checks input").first.uncheck()
    lines = race.evaluate("(() => { moscope.seek(0); const seen = new Set();"
                          " while (moscope.step('moment', 1)) seen.add(moscope.app.moment.line); return [...seen]; })()")
    assert lines == ["0x600010040"]
    race.keyboard.press("4")
    assert race.locator("#state .line-state").count() == 1


def test_a_filter_is_named_where_it_acts(race: Any) -> None:
    note = race.locator("#filtered")
    assert note.inner_text() == ""
    race.keyboard.press("6")
    for box in race.locator("#filters .checks input").all():
        box.uncheck()
    for key in "45":
        race.keyboard.press(key)
        assert "Filters hide" in note.inner_text()
    race.keyboard.press("ArrowRight")
    assert race.locator("#notice").inner_text() == "There is no further transition that the filters show."
    race.get_by_role("button", name="Show all").click()
    assert note.inner_text() == ""
    race.keyboard.press("ArrowRight")
    assert race.evaluate("moscope.app.moment.kind") == "transition"


def test_the_state_panel_says_who_wrote_which_bytes(open_page: Open, history_of: Callable[[str], Document]) -> None:
    document = history_of(SHARING)
    written = [{"at": a["done"], "transition": None, "controller": f"L1Cache-{a['core']}", "line": "0x10000", "kind": "bytes",
                "offset": int(a["address"], 16) - 0x10000, "bytes": f"{a['id'] + 1:02x}" + 7 * "00", "access": a["id"]}
               for a in document["trace"]["accesses"]]
    page = open_page({**document, "changes": [*(c for c in document["changes"] if c["kind"] != "bytes"), *written]})
    page.keyboard.press("End")
    rows = page.locator("#state .bytes tr").all_inner_texts()
    assert [re.sub(r"\s+", " ", row) for row in rows] == [
        "bytes 0–7 0x03 written last by core 0: c0 st A@n0", "bytes 8–15 0x04 written last by core 6: c6 st A@n0+8"]


def test_the_sequence_diagram_draws_only_what_is_in_sight(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of("; ".join(f"c{6 * (i % 8)} st A@n0" for i in range(24))))
    page.keyboard.press("2")
    page.keyboard.press("End")
    assert page.evaluate("document.querySelector('.sequence-space').clientHeight") > 3000
    assert page.locator("#sequence .step").count() < 80
    assert page.locator("#sequence .step.on, #sequence .access-mark.on").count() <= 1
    assert page.locator("#sequence .fold").count() > 0


def test_the_text_of_an_example_stands_beside_the_step_it_belongs_to(sharing: Any) -> None:
    note = sharing.locator("#note p")
    assert note.all_inner_texts() == ["Core 0 writes."]
    sharing.keyboard.press("o")
    assert note.all_inner_texts() == ["Core 6 writes another word."]
    assert 195 < sharing.evaluate("moscope.app.history.cycles(moscope.state().at)") < 210
    sharing.keyboard.press("End")
    assert note.all_inner_texts() == ["The line goes back."]


def test_a_part_of_a_text_that_speaks_of_an_earlier_moment_is_reached_first(
        open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page({**history_of(SHARING), "example": {**EXAMPLE, "steps": [EXAMPLE["steps"][i] for i in (0, 2, 1)]}})
    shown = []
    for _ in range(3):
        shown += page.locator("#note p").all_inner_texts()
        page.keyboard.press("o")
    assert shown == [step["text"] for step in EXAMPLE["steps"]]


def test_the_address_names_script_and_position(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(RACE))
    page.evaluate("moscope.seek(40)")
    page.wait_for_function("location.hash.includes('moment=40')")
    fragment = page.evaluate("location.hash")
    other = open_page(history_of(RACE), fragment=fragment)
    assert other.evaluate("moscope.state().k") == 40
    foreign = open_page(history_of(SHARING), fragment=fragment)
    assert "names another script" in foreign.locator("#notice").inner_text()


def test_the_code_of_an_access_of_a_run_names_a_device_that_wrote(open_page: Open, history_of: Callable[[str], Document]) -> None:
    document = json.loads(json.dumps(history_of(SHARING)))
    run = {"function": "add", "pc": "0x401100", "process": "falseshare", "class": "true_sharing", "exposed_fs": 10**6, "writer_pc": None,
           "writer_function": None}
    for access, writer in zip(document["trace"]["accesses"], (254, 6, None, None), strict=True):
        access |= {"run": {**run, "writer": writer}, "text": "c0 st in add"}
    page = open_page(document)
    for key, said in (("access 0", "a device"), ("access 1", "core 6, unknown code")):
        page.locator(f"[data-key='{key}']").click()
        assert page.locator(".in-run tr", has_text="last written by").inner_text().split("\t")[-1].strip() == said
        page.locator(f"[data-key='{key}']").click()


def test_the_sequence_diagram_of_a_run_keeps_its_labels_within_their_columns(
        open_page: Open, history_of: Callable[[str], Document]) -> None:
    document = json.loads(json.dumps(history_of(SHARING)))
    run = {"function": "add", "pc": "0x401100", "process": "p", "class": "none", "exposed_fs": 10**6, "writer": 6, "writer_pc": None,
           "writer_function": "increment_all_of_the_counters"}
    for access in document["trace"]["accesses"]:
        access |= {"run": run, "text": f"c{access['core']} st in add, last written by core 6 in increment_all_of_the_counters"}
    page = open_page(document)
    page.keyboard.press("2")
    page.locator(".access-mark").first.wait_for()
    assert page.locator(".access-mark text").first.text_content() == "c0 st"
    assert "increment_all" in page.locator(".access-mark title").first.text_content()
    widths = "[...document.querySelectorAll('.access-mark text')].map((e) => e.getBoundingClientRect().width)"
    assert max(page.evaluate(widths)) < 78


def test_no_box_of_a_transition_hides_the_label_of_a_message(sharing: Any) -> None:
    sharing.keyboard.press("2")
    sharing.locator("#sequence .arrow text").first.wait_for()
    hidden = """(() => {
      const boxes = [...document.querySelectorAll("#sequence .step rect")].map((e) => e.getBoundingClientRect());
      return [...document.querySelectorAll("#sequence .arrow text")].filter((text) => {
        const r = text.getBoundingClientRect();
        return boxes.some((b) => r.left < b.right - 1 && b.left < r.right - 1 && r.top < b.bottom - 4 && b.top < r.bottom - 4);
      }).map((text) => text.textContent);
    })()"""
    for k in range(0, sharing.evaluate("moscope.length"), 20):
        sharing.evaluate(f"moscope.seek({k})")
        assert sharing.evaluate(hidden) == []


@pytest.mark.parametrize("size", [(640, 450), (390, 800)])
def test_the_footer_of_a_narrow_page_covers_neither_a_chosen_panel_nor_the_focus(
        open_page: Open, history_of: Callable[[str], Document], size: tuple[int, int]) -> None:
    page = open_page(history_of(SHARING), size)
    free = "document.querySelector('footer').getBoundingClientRect().top"
    for key, tab in enumerate(("machine", "sequence", "compare", "state", "protocol", "filters"), 1):
        page.keyboard.press(str(key))
        top, bottom = page.evaluate(f"(({{top, bottom}}) => [top, bottom])(document.getElementById('tab-{tab}')"
                                    ".getBoundingClientRect())")
        assert top > -1 and bottom <= page.evaluate(free), tab
    hidden = f"((e) => !e.closest('footer') && e.getBoundingClientRect().top >= {free})(document.activeElement)"
    for _ in range(12):
        page.keyboard.press("Tab")
        assert not page.evaluate(hidden)


def test_an_access_is_labelled_with_its_kind_of_sharing(sharing: Any) -> None:
    sharing.locator("[data-key='access 2']").click()
    assert sharing.locator("#accesses .remark").inner_text() == "false sharing"


def test_an_access_of_a_device_is_explained(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of("c6 st A@n0; d0 ld A@n0"))
    page.locator("[data-key='access 1']").click()
    detail = page.locator("#accesses .detail").inner_text()
    assert "The home serves the device. The access waits for messages over 2 links" in detail
    assert "DMA 0 starts the device's access: READY" in detail and "null" not in detail and "in its caches" not in detail


@pytest.mark.parametrize(("script", "said"), [
    ("c0 ld A@n0; c6 ld A@n0; c6 st A@n0 | c6 st A@n0+8",
     ["No data is needed: the core has the line, and waits for permission to write it.",
      "An older access or a prefetch of the core brings the line."]),
    ("c0 nt A@n1:64", ["No data is needed: the access writes the whole line."]),
    ("c0 st A@n0; c6 ld A@n0 | c12 ld A@n0 | c18 ld A@n0", ["A cache of chip 0 supplies the data."]),
    ("c0 nt A@n0:64; c0 st A@n0; c0 st 0x18000; c0 st 0x20000; c0 ld A@n0",
     ["No data is needed: the access writes the whole line.", "The core's own caches have the line."]),
    ("c0 st A@n0; c6 flush A@n0", ["A flush moves no data to the core."])])
def test_an_access_for_which_no_single_controller_sent_the_line_is_explained(
        open_page: Open, history_of: Callable[[str], Document], script: str, said: list[str]) -> None:
    page = open_page(history_of(script))
    shown = []
    for access in page.evaluate("moscope.app.history.trace.accesses.map((a) => a.id)"):
        page.locator(f"[data-key='access {access}']").click()
        shown.append(page.locator("#accesses .why").inner_text())
    assert "null" not in "".join(shown)
    assert [text for text in said if not any(text in one for one in shown)] == []
