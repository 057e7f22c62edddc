# SPDX-License-Identifier: BSD-3-Clause
"""Programs with a planted defect: a run names its field, its source line and its kind first, and a what-if run predicts the gain of the
program without the defect."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio
from moscope.guest import initramfs, kernel, packages

sys.path.insert(0, str(Path(__file__).parent))
from programs import PLANTED, Planted

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("array_of_structs",)

pytestmark = pytest.mark.skipif(not all(
    (packages.cache() / "chosen" / f"{name}.json").is_file() for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)),
    reason="the distribution's kernel is not in the cache: `moscope boot` fetches it")


def called(moscope: Moscope, *words: str) -> dict[str, Any]:
    got = moscope(*words, "--json", "--quiet", timeout=1200)
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


@pytest.mark.parametrize("program", [
    pytest.param(one, id=one.stem, marks=() if one.stem in QUICK else pytest.mark.long) for one in PLANTED])
def test_the_defect_is_named_first_and_its_gain_is_predicted(program: Planted, tmp_path: Path,
                                                             moscope_in: Callable[[Path], Moscope]) -> None:
    if program.missing():
        pytest.skip(f"without {program.missing()}")
    moscope = moscope_in(tmp_path)
    points = {}
    for mended in (False, True):
        file = program.build(tmp_path, mended)
        run = called(moscope, "run", "--program", f"{file.name} {{cores}}", "--cores", str(program.cores), "--begin", program.begin,
                     "--warmup", "100us", "--window", "100us", "--out", "mended" if mended else "run")
        points[mended] = run["points"][0]
    hottest = points[False]["top_names"][0]
    assert hottest["name"].startswith(program.name)
    assert hottest["class"] in program.misses
    first = [place for role in ("waited_at", "written_at", "called_at") for place in hottest.get(role, [])[:2]]
    assert program.place in {Path(place["source"]).name for place in first} | {
        part for place in first for one in place["inlined"] for part in one.split()}
    gain = points[True]["throughput_per_s"] / points[False]["throughput_per_s"] - 1
    line = f"{program.stem}:{program.line}" if program.line else hottest["name"]
    (found,) = called(moscope, "what-if", "run", "--line", line, "--as", program.how)["results"]
    assert gain > 0.02 and found["gain"] == pytest.approx(gain, rel=0.15)
