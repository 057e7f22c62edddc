# SPDX-License-Identifier: BSD-3-Clause
"""The report in headless Chromium, on a desktop's and a telephone's width, light and dark."""

from pathlib import Path

import browser
import pytest
import synthetic_run

pytestmark = pytest.mark.skipif(browser.find() is None, reason="no Chromium here")


@pytest.mark.parametrize("width, dark", [(1280, False), (400, False), (1280, True), (400, True), (700, False)])
def test_no_script_error_and_nothing_cut_off(whole: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with browser.Page(whole / "report.html", width, dark=dark, profile=tmp_path / "profile") as page:
        assert browser.faults(page) == []


def test_no_table_scrolls_sideways_on_a_desktop_page(tmp_path: Path) -> None:
    from analysis.report import write_report

    # Large numbers and a long kernel name; of a line the longest names.
    folder = synthetic_run.write_run(tmp_path / "run", cores=(48,), kernels=("stock+2,7,14",))
    for file in (folder / "run.json", *folder.glob("points/*/point.json")):
        file.write_text(file.read_text().replace('"messages"', '"connections"'))
    (target,) = folder.glob("points/*")
    record, stats, found = synthetic_run.point("exim", "stock+2,7,14", 48)
    for pair in found["pairs"]:
        if pair["waiter_function"] == "lookup_mnt":
            pair["waiter_function"] = "exim:__anon_vma_interval_tree_augment_rotate.constprop.0"
    synthetic_run.write_files(target, {**record, "operation": "connections"}, stats, found)
    with browser.Page(write_report(folder), 1280, profile=tmp_path / "profile") as page:
        page.ask('document.querySelectorAll("details").forEach(d => d.open = true)')
        tables = '[...document.querySelectorAll("div.scroll")].filter(t => t.clientWidth)'
        assert page.ask(f"{tables}.length") > 10
        assert page.ask(f'{tables}.filter(t => t.scrollWidth > t.clientWidth).map(t => t.getAttribute("aria-label"))') == []


def test_a_button_shows_another_point(whole: Path, tmp_path: Path) -> None:
    with browser.Page(whole / "report.html", 400, profile=tmp_path / "profile") as page:
        shown = '[...new Set([...document.querySelectorAll(".point:not([hidden])")].map(e => e.dataset.of))]'
        assert page.ask(shown) == ["p-exim-distro-48"]
        page.ask('document.querySelector("button[data-point=p-exim-pk-1]").click()')
        assert page.ask(shown) == ["p-exim-pk-1"]
        assert page.ask(browser.CUT_OFF) == [] and page.errors == []
