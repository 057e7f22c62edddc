# SPDX-License-Identifier: BSD-3-Clause
"""A fault in a protocol, from `protocol check` to the page: the script that it writes, what is wrong, and the state there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moscope import buildproto
from moscope.errors import ProtocolError

FILE, TEXT, FAULT = "MSI-cache.sm", "transition(M, Fwd_GetS, S)", "transition(M, Fwd_GetS, M)"
SIZES = [(1280, 800), (1920, 1080)]


def written(moscope: Callable[..., Any], folder: Path) -> Path:
    """The page of the counterexample that a check of MSI with the fault writes."""
    for path in buildproto.known_protocols()["MSI"].parent.glob("MSI*"):
        shutil.copy(path, folder)
    source = (folder / FILE).read_text(encoding="utf-8")
    assert source.count(TEXT) == 1
    (folder / FILE).write_text(source.replace(TEXT, FAULT), encoding="utf-8")
    checked = moscope("protocol", "check", "MSI.slicc", "--ops", "20000", "--cores", "8", "--caches", "tiny", "--json", timeout=500)
    found = json.loads(checked.stdout)["counterexample"]
    got = moscope("step", found["file"], "--html", "found.html", timeout=300)
    assert got.returncode == ProtocolError.exit_code, got.stderr  # as the check itself
    return folder / "found.html"


def test_a_failed_check_opens_in_the_page_at_what_is_wrong(moscope: Callable[..., Any], browser: Any, tmp_path: Path) -> None:
    file = written(moscope, tmp_path)
    for width, height in SIZES:
        page = browser.new_page(viewport={"width": width, "height": height})
        requests: list[str] = []
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_function("window.moscope")
        note = page.locator("#note")
        text = note.inner_text()
        assert "MSI: the protocol has no answer to a message" in text and "no transition: machine L1Cache-0, state M, event Inv" in text
        assert "0x" not in text and "tick" not in text and " ns" in text
        note.get_by_role("button", name="go there").click()
        state = page.evaluate("moscope.state()")
        assert state["k"] == page.evaluate("moscope.length") and state["tbes"] and state["bytes"]
        (line,) = state["states"]
        assert state["states"][line]["L1Cache-0"] == "M"  # and the other core waits for the line
        assert page.locator("#accesses li").last.inner_text().strip().endswith("no end")
        assert not [url for url in requests if not url.startswith(("file:", "data:"))]
        page.close()


def test_the_list_of_a_violation_keeps_its_lines_and_the_panel_its_height(open_page: Callable[..., Any],
                                                                          history_of: Callable[..., dict[str, Any]]) -> None:
    document = history_of("c0 ld A@n0")
    found = "no progress: a request is old\nlast transitions:\n" + "\n".join(f"  {i} ns  L1Cache-0" for i in range(40))
    page = open_page({**document, "trace": {**document["trace"], "protocol_error": found}}, (1400, 900))
    lines = page.locator(".violation").inner_text().splitlines()
    assert "no progress" in lines[0] and lines[1:3] == ["last transitions:", "  0 ns  L1Cache-0"] and len(lines) == 42
    assert page.locator("#now").bounding_box()["height"] <= 240
    assert page.get_by_role("button", name="go there").bounding_box()["y"] < page.locator("footer").bounding_box()["y"]
