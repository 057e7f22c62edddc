# SPDX-License-Identifier: BSD-3-Clause
"""Chromium for the tests of the page: the distribution's, driven by Playwright from an environment of its own
(requirements-browser.txt). Each page that a test opens must stay without script errors and without requests."""

import os
import shutil
import site
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moscope import bootstrap, paths
from moscope.errors import MoscopeError
from moscope.stepping.history import run
from moscope.stepping.page import html
from moscope.stepping.spec import Spec

QUIET = bootstrap.Voice(quiet=True)
SMALL = (1280, 800)
WAIT_MS = 180_000  # for what a page waits for: on a busy host, Playwright's 30 s are too few

Open = Callable[..., Any]


def missing_chromium() -> list[str]:
    return [] if shutil.which("chromium") else ["chromium"]


class Browser:
    """Opens pages that wait for WAIT_MS."""

    def __init__(self, started: Any) -> None:
        self.started = started

    def new_page(self, **settings: Any) -> Any:
        page = self.started.new_page(**settings)
        page.set_default_timeout(WAIT_MS)  # also for navigation
        return page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        with bootstrap.locked(paths.cache_dir() / "chromium.lock", QUIET, "installing Chromium"):  # tests run side by side
            bootstrap.install_packages(QUIET, missing_chromium)
        packages = bootstrap.extra_venv("browser", QUIET)
    except MoscopeError as error:
        pytest.skip(f"Chromium or Playwright cannot be installed: {error}")
    for folder in packages.glob("lib/python*/site-packages"):
        site.addsitedir(str(folder))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses one to root
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox, timeout=WAIT_MS)
        yield Browser(started)
        started.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a document from a file: `open_page(document, SMALL, scheme="dark")`."""
    pages, errors, requests = [], [], []

    def opened(document: dict[str, Any], size: tuple[int, int] = SMALL, scheme: str = "light", fragment: str = "") -> Any:
        file = tmp_path / f"page{len(pages)}.html"
        file.write_text(html(document), encoding="utf-8")
        page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        pages.append(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri() + fragment)
        page.wait_for_function("window.moscope")
        return page

    yield opened
    for page in pages:
        page.close()
    assert not errors
    assert not [url for url in requests if not url.startswith(("file:", "data:"))]


@pytest.fixture(scope="session")
def history_of() -> Callable[..., dict[str, Any]]:
    """The history of a script, made once: `history_of(script, protocol="MSI")`."""
    made: dict[tuple[str, str], dict[str, Any]] = {}

    def of(script: str, **settings: Any) -> dict[str, Any]:
        key = (script, repr(settings))
        if key not in made:
            made[key] = run(Spec(script, **settings))
        return made[key]

    return of
