# SPDX-License-Identifier: BSD-3-Clause
"""The notebooks of examples/ run from their first cell to their last, and are committed without outputs."""

import json
import os
import subprocess
import sysconfig

import pytest

from moscope import bootstrap, paths

FOLDER = paths.root() / "examples"
LONG = {"run_tables.ipynb"}  # notebooks that boot a guest
# Runs one notebook and prints the text of its outputs; a cell that fails ends it with a traceback.
RUN = """
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
for cell in notebook.cells:
    for output in cell.get("outputs", []):
        print(output.get("text") or "".join(output.get("data", {}).values()))
"""
SHOWS = {
    "run_tables.ipynb": ["lines: ", "counter:shared_counter", "counter:shared_release", "chip 0 -> chip 1", "memory stall, %",
                         "<Figure size"],
    "topology_study.ipynb": ["ring             mean", "twisted ladder   mean", "idle load latency in core cycles", "<svg", "<Figure size"],
}
NOTEBOOKS = sorted(p.name for p in FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in NOTEBOOKS])
def test_the_notebook_runs_and_shows_its_results(name: str) -> None:
    python = bootstrap.extra_venv("notebooks", bootstrap.Voice(quiet=True)) / "bin" / "python"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(paths.import_dir()), sysconfig.get_path("purelib")]), "IPYTHONDIR": os.devnull}
    env.pop("MPLBACKEND", None)
    got = subprocess.run([python, "-c", RUN, FOLDER / name, FOLDER], env=env, capture_output=True, text=True, check=False, timeout=2400)
    assert got.returncode == 0, got.stderr
    for text in SHOWS[name]:
        assert text in got.stdout, got.stdout


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_is_committed_without_outputs(name: str) -> None:
    cells = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]
    assert not [c for c in cells if c["cell_type"] == "code" and (c["outputs"] or c["execution_count"])]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_is_in_the_readme(name: str) -> None:
    assert f"`{name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")
