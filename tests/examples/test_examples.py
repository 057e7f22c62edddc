# SPDX-License-Identifier: BSD-3-Clause
"""Every example runs as its README says, and prints what its first lines promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moscope import paths

FOLDER = paths.root() / "examples"
LONGEST = 40
# What the output of each example has to contain, as a regular expression.
SHOWS = {
    "broken_protocol.py": r"broken copy:  caught .*no transition.*\nshortest script: c.*no transition.*\noriginal MSI: passed",
    "check_with_three_seeds.sh": r"seed 1\n(.*\n)+seed 2\n(.*\n)+seed 3\n(.*\n)*no violation",
    "dram_channels.py": r"channels per node: 1   node .*limit: DRAM\n(.*\n)*.*channels per node: 2   machine ",
    "false_sharing.py": r"falseshare .*\n  hottest line: falseshare:packed_counters, false_sharing.*\n"
                        r"falseshare-padded .*memory stall [0-5]%",
    "false_sharing_trace.sh": r"c6 st 0x200008: .* supplied by another core's cache",
    "latency_by_topology.py": r"fully_connected .* 1 hops .*\n(.*\n)*ring .* 4 hops",
    "machine_file.py": r"four_in_a_line .*DRAM 3 hops",
    "probe_filter.py": r"on .* 0 probes.*\n.*off .* 8 probes",
    "protocols_compared.py": r"MSI: (.*\n)+.*MOESI_HTAssist: (.*\n)+.*c12 ld A@n3 .*line from L1Cache-0",
    "transactions.py": r"L1Cache +0 hops +\d+ transactions, .*\nL1Cache +2 hops",
}
SHARED = {"moscope_json.py"}
LONG = {"false_sharing.py", "transactions.py"}  # they boot a guest


def scripts() -> list[str]:
    return sorted(p.name for p in FOLDER.iterdir() if p.suffix in (".py", ".sh") and p.name not in SHARED)


def run_example(name: str, folder: Path) -> str:
    program = [sys.executable] if name.endswith(".py") else ["sh"]
    got = subprocess.run([*program, FOLDER / name], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert got.returncode == 0, got.stdout + got.stderr
    return got.stdout


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in scripts()])
def test_the_example_shows_what_it_says(name: str, tmp_path: Path) -> None:
    output = run_example(name, tmp_path)
    assert re.search(SHOWS[name], output), output


def test_every_example_is_short_executable_and_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in scripts():
        lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) < LONGEST, name
        assert lines[0].startswith("#!") and os.access(FOLDER / name, os.X_OK), name
        assert re.match(r'("""|# )(Shows|Checks|Runs)', lines[2]), f"{name}: the third line says what it shows"
        assert f"`{name}`" in readme, name


def test_every_example_of_the_readme_exists() -> None:
    named = re.findall(r"^\| `(.*?)`", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert named and all((FOLDER / name).is_file() for name in named)
