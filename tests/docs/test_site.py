# SPDX-License-Identifier: BSD-3-Clause
"""`moscope docs`: the site holds every page, and its generator finds nothing to complain about."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import jsonio, paths
from moscope._version import VERSION

Moscope = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, moscope_in: Callable[[Path], Moscope]) -> tuple[dict, Path]:
    folder = tmp_path_factory.mktemp("site")
    got = moscope_in(folder)("docs", "--json", timeout=600)
    assert got.returncode in (0, 1), got.stderr
    return json.loads(got.stdout), folder / "moscope-out/docs"


def test_the_site_builds_without_a_warning(built: tuple[dict, Path]) -> None:
    document, _ = built
    jsonio.validate(document)
    assert document["warnings"] == [] and document["ok"]


def test_the_site_has_every_page_and_the_version(built: tuple[dict, Path]) -> None:
    document, site = built
    docs = paths.root() / "docs"
    names = {p.relative_to(docs).with_suffix(".html") for p in docs.rglob("*.md")}
    assert document["pages"] == len(names) and all((site / name).is_file() for name in names)
    assert f"moscope {VERSION}" in (site / "index.html").read_text(encoding="utf-8")


def test_every_page_can_be_reached_from_the_navigation(built: tuple[dict, Path]) -> None:
    _, site = built
    front = (site / "index.html").read_text(encoding="utf-8")
    assert not [p.name for p in (paths.root() / "docs").glob("*.md") if p.stem != "index" and f'href="{p.stem}.html"' not in front]
