# SPDX-License-Identifier: BSD-3-Clause
"""The report in headless Chromium, on a desktop's and a telephone's width, light and dark."""

from pathlib import Path

import browser
import pytest

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium here")


@pytest.mark.parametrize("width, dark", [(1280, False), (400, False), (1280, True), (400, True), (700, False)])
def test_no_script_error_and_nothing_cut_off(whole: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with browser.Page(whole / "report.html", width, dark=dark, profile=tmp_path / "profile") as page:
        assert browser.faults(page) == []


def test_another_point_is_a_press_away(whole: Path, tmp_path: Path) -> None:
    with browser.Page(whole / "report.html", 400, profile=tmp_path / "profile") as page:
        shown = '[...new Set([...document.querySelectorAll(".point:not([hidden])")].map(e => e.dataset.of))]'
        assert page.ask(shown) == ["p-exim-distro-48"]
        page.ask('document.querySelector("button[data-point=p-exim-pk-1]").click()')
        assert page.ask(shown) == ["p-exim-pk-1"]
        assert page.ask(browser.CUT_OFF) == [] and page.errors == []
