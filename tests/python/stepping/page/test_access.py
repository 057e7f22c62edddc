# SPDX-License-Identifier: BSD-3-Clause
"""The page is for everyone: no part overlaps or leaves the window at two sizes, every action has a key, names are there for screen
readers, and text keeps its contrast on a light and a dark page."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

RACE = "c0 ld A@n0 | c1 st A@n0 | c13 st B@n3; c6 rmw A@n0 | c7 ld A@n0; c0 ld B@n3; c42 st A@n0"
SIZES = [(1280, 800), (1920, 1080)]
Document = dict[str, Any]
Open = Callable[..., Any]
# Elements whose box leaves the window or that of the panel around it, and header and footer buttons that overlap.
STRAYS = """() => {
  const name = (e) => e.id || e.className.baseVal || e.className || e.tagName;
  const box = (e) => e.getBoundingClientRect();
  const seen = [...document.querySelectorAll("header *, footer *, .tabs *, #now > p, #machine svg *")].filter((e) => box(e).width > 0);
  const outside = seen.filter((e) => box(e).left < -0.5 || box(e).right > innerWidth + 0.5 || box(e).bottom > innerHeight + 0.5).map(name);
  const drawing = box(document.querySelector("#machine svg"));
  const cut = [...document.querySelectorAll("#machine .chip-box, #machine .cell-box")].filter((e) =>
    box(e).bottom > drawing.bottom + 0.5 || box(e).right > drawing.right + 0.5 || box(e).top < drawing.top - 0.5).map(name);
  const buttons = [...document.querySelectorAll("header button, header input, header code, footer button, footer select")];
  const over = buttons.flatMap((a, i) => buttons.slice(i + 1).filter((b) => box(a).left < box(b).right - 0.5
    && box(b).left < box(a).right - 0.5 && box(a).top < box(b).bottom - 0.5 && box(b).top < box(a).bottom - 0.5)
    .map((b) => `${name(a)}/${name(b)}`));
  return [...outside, ...cut, ...over, document.documentElement.scrollHeight > innerHeight + 1 ? "page scrolls" : ""].filter(Boolean);
}"""
# Text of which the contrast with the nearest opaque background is below 4.5.
PALE = """() => {
  const channel = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data; };
  const light = (colour) => { const [r, g, b] = [...rgb(colour)].map((v) => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] > 250) return c; }
    return "white"; };
  return [...document.querySelectorAll("header *, footer *, #state *, #accesses *, #now *")].filter((e) =>
    [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) && e.checkVisibility({ opacityProperty: true })
    && e.closest(".unseen, caption, option, :not(.done):not(.pending) > .access") === null).map((e) => {
      const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), `${e.tagName} ${e.className}: ${e.textContent.slice(0, 30)}`]; }).filter(([c]) => c < 4.5);
}"""


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_nothing_overlaps_or_leaves_the_window(open_page: Open, history_of: Callable[[str], Document], size: tuple[int, int]) -> None:
    document = {**history_of(RACE), "example": {"name": "a", "title": "A race", "steps": [{"text": "Three cores want one line. " * 6}]}}
    page = open_page(document, size)
    assert page.evaluate(STRAYS) == []
    page.evaluate("moscope.seek(30)")
    assert page.evaluate(STRAYS) == []


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_legend_names_every_line_whole(open_page: Open, history_of: Callable[[str], Document], size: tuple[int, int]) -> None:
    page = open_page(history_of(RACE), size)
    names = page.evaluate("""() => { const panel = document.querySelector("#machine").getBoundingClientRect();
      return [...document.querySelectorAll(".legend .line-name")].map((e) => [e.textContent,
        e.scrollWidth <= e.clientWidth && e.getBoundingClientRect().right <= panel.right]); }""")
    assert names == [["A@n0", True], ["B@n3", True]]


def test_the_legend_counts_the_lines_that_it_does_not_name(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of("; ".join(f"c0 ld {name}@n0" for name in "ABCDEFGHIJ")))
    assert page.locator(".legend .line-name").count() == 8
    assert "and 2 more lines" in page.locator(".legend").inner_text()


@pytest.mark.parametrize("width", [900, 600, 400])
def test_a_narrow_page_does_not_scroll_sideways(open_page: Open, history_of: Callable[[str], Document], width: int) -> None:
    page = open_page(history_of(RACE), (width, 768))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate("[...document.querySelectorAll('header *, footer button, footer select, .tabs button')].filter((e) =>"
                            " e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.id || e.textContent)")
    assert outside == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_keeps_its_contrast(open_page: Open, history_of: Callable[[str], Document], scheme: str) -> None:
    page = open_page(history_of(RACE), scheme=scheme)
    page.keyboard.press("x")
    page.evaluate("moscope.seek(60)")
    page.wait_for_function("!document.getAnimations().some((a) => a instanceof CSSTransition)")  # of colour
    assert page.evaluate(PALE) == []


def test_the_keyboard_alone_steps_plays_and_changes_views(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(RACE))

    def state(of: str) -> Any:
        return page.evaluate(of)

    press = page.keyboard.press
    press("ArrowRight")
    assert state("moscope.app.moment.kind") == "transition"
    press("i")
    assert state("moscope.app.moment.lost")
    press("Shift+A")
    assert state("moscope.app.moment.kind") in ("issue", "done")
    press("End")
    assert state("moscope.state().k") == state("moscope.length")
    press("Home")
    assert state("moscope.state().k") == 0
    press("u")
    press("ArrowRight")
    assert state("moscope.app.unit") == "message"
    press(" ")
    page.wait_for_function("moscope.app.playing && moscope.state().k > 3")
    press(" ")
    assert not state("moscope.app.playing")
    for key, panel in zip("123456", ["machine", "sequence", "compare", "state", "protocol", "filters"], strict=True):
        press(key)
        assert page.locator(f"#{panel}").is_visible()
    press("x")
    assert page.locator("#accesses li.open").count() == 1
    press("d")
    assert state("document.documentElement.dataset.theme") == "dark"
    press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    press("Escape")
    assert not page.get_by_role("dialog", name="Keys").is_visible()


def test_the_keys_step_after_a_kind_of_step_was_chosen(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(RACE))
    unit = page.locator("#unit")
    unit.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[moscope.app.unit, moscope.app.moment?.kind, document.activeElement.id]") == ["transition", "transition", "unit"]
    unit.dispatch_event("pointerdown")
    unit.select_option("access")
    k = page.evaluate("moscope.state().k")
    page.keyboard.press("a")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[moscope.app.unit, moscope.app.moment.kind]") == ["access", "done"]
    assert page.evaluate("moscope.state().k") > k


def test_tab_reaches_every_panel_and_shows_where_it_is(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(RACE))
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(document.activeElement.closest('header, #accesses, #stage, #side, #timeline, #transport') || {}).id"
                                  " || document.activeElement.closest('header')?.tagName"))
        assert page.evaluate("document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle != 'none'")
    assert {"HEADER", "accesses", "stage", "side", "timeline", "transport"} <= reached


def test_every_control_has_a_name_and_steps_are_announced(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(RACE))
    nameless = page.evaluate("[...document.querySelectorAll('button, select, input, [role=slider], [role=tab], table')].filter((e) =>"
                             " !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)")
    assert nameless == []
    page.keyboard.press("t")
    assert page.locator("#live-region").inner_text().endswith("it goes from I to IS.")
    assert "event" in page.get_by_role("slider", name="Time line").get_attribute("aria-valuetext")


def test_the_time_line_is_dragged_to_a_moment(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(RACE))
    box = page.locator("#timeline").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 20)
    page.mouse.up()
    assert page.evaluate("moscope.state().k") > 0.9 * page.evaluate("moscope.length")


def test_the_time_line_has_a_bar_of_its_own_for_each_parallel_access(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page(history_of(" | ".join(f"c{6 * i} ld A@n0" for i in range(8))))
    bars = page.evaluate("[...document.querySelectorAll('#timeline .span')].map((e) => [e.y.baseVal.value, e.height.baseVal.value])")
    bars.sort()
    assert len(bars) == 8
    assert all(y + height <= after for (y, height), (after, _) in itertools.pairwise(bars))
    assert page.evaluate("document.querySelector('#timeline .ticks').getBBox().y") > sum(bars[-1])


# Texts of the machine view that cover each other: names of chips and places, states, counts and names of messages.
COVERED = """() => {
  const texts = [...document.querySelectorAll("#machine svg text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
  const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4;
  return texts.flatMap(([name, a], i) => texts.slice(i + 1).filter(([, b]) => over(a, b)).map(([other]) => `${name}/${other}`));
}"""
SHARED = "c30 st A@n0; c0 ld B@n0 | c30 ld B@n0"
NOTE = {"name": "a", "title": "A note", "steps": [{"text": "The text takes room from the machine."}]}


@pytest.mark.parametrize("size", [(1366, 768), (1024, 768)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_a_state_beside_a_text_covers_neither_number_nor_name(open_page: Open, history_of: Callable[[str], Document],
                                                              size: tuple[int, int]) -> None:
    page = open_page({**history_of(SHARED), "example": NOTE}, size)
    page.keyboard.press("End")
    assert page.locator("#machine .tag").count() >= 3
    assert page.locator("#machine .more").count() >= 1
    assert page.evaluate(COVERED) == []
    bottom = page.evaluate("Math.max(...[...document.querySelectorAll('#machine .chip-box')].map(b => b.getBoundingClientRect().bottom))")
    assert bottom <= page.locator("#machine .legend").bounding_box()["y"]


def test_a_messages_name_leaves_states_and_chip_names_free(open_page: Open, history_of: Callable[[str], Document]) -> None:
    page = open_page({**history_of("c0 st A@n0; c6 ld A@n0; c6 st A@n0"), "example": NOTE}, (1366, 768))
    found = page.evaluate("""covered => { const found = [];
      for (let k = 0; k <= moscope.length; k += 4) { moscope.seek(k); found.push(...eval(covered)()); }
      return [...new Set(found)].filter((pair) => /chip|^[A-Z]{1,2}[/]|[/][A-Z]{1,2}$/.test(pair)); }""", COVERED)
    assert found == []
