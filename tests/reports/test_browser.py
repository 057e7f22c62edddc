# SPDX-License-Identifier: BSD-3-Clause
"""The report in headless Chromium, on a desktop's and a telephone's width, light and dark."""

from pathlib import Path

import browser
import pytest

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium here")

# Elements that reach beyond the page, and text that reaches beyond its figure; tables may scroll inside themselves.
CUT_OFF = """
(() => {
  const found = [], width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`page ${document.documentElement.scrollWidth} > ${width}`);
  for (const e of document.querySelectorAll("main *")) {
    if (e.closest(".scroll") && !e.matches(".scroll") || e.closest("svg") && !e.matches("svg") || e.matches("caption")) continue;
    const r = e.getBoundingClientRect();
    if (r.width && (r.right > width + 0.5 || r.left < -0.5)) found.push(`${e.tagName} ${e.className} ${r.left}..${r.right}`);
  }
  for (const s of document.querySelectorAll("svg")) {
    const f = s.getBoundingClientRect();
    if (!f.width) continue;
    for (const t of s.querySelectorAll("text")) {
      const r = t.getBoundingClientRect();
      if (r.left < f.left - 1 || r.right > f.right + 1 || r.top < f.top - 1 || r.bottom > f.bottom + 1)
        found.push(`text "${t.textContent}" of ${s.closest("figure").id}`);
    }
  }
  return found;
})()
"""


@pytest.mark.parametrize("width, dark", [(1280, False), (400, False), (1280, True), (400, True), (700, False)])
def test_no_script_error_and_nothing_cut_off(whole: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with browser.Page(whole / "report.html", width, dark=dark, profile=tmp_path / "profile") as page:
        for details in ("", 'document.querySelectorAll("details").forEach(d => d.open = true)'):
            if details:
                page.ask(details)
            assert page.ask(CUT_OFF) == []
        assert page.errors == []
        assert [r for r in page.requests if not r.startswith(("file:", "data:"))] == []


def test_another_point_is_a_press_away(whole: Path, tmp_path: Path) -> None:
    with browser.Page(whole / "report.html", 400, profile=tmp_path / "profile") as page:
        shown = '[...new Set([...document.querySelectorAll(".point:not([hidden])")].map(e => e.dataset.of))]'
        assert page.ask(shown) == ["p-exim-distro-48"]
        page.ask('document.querySelector("button[data-point=p-exim-pk-1]").click()')
        assert page.ask(shown) == ["p-exim-pk-1"]
        assert page.ask(CUT_OFF) == [] and page.errors == []
