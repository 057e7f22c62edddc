# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site: Sphinx with myst-parser, in the environment of requirements-docs.txt; docs/conf.py configures it."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from moscope import bootstrap, paths
from moscope.errors import SimulatorBug

PURPOSE = "docs"


def build(folder: Path, report: Callable[[str], None]) -> list[str]:
    """Writes the site into `folder`; returns Sphinx's warnings, such as links that lead nowhere."""
    voice = bootstrap.Relay(report)
    python = bootstrap.extra_venv(PURPOSE, voice) / "bin" / "python"
    source = paths.root() / "docs"
    with tempfile.TemporaryDirectory() as scratch:
        found, log = Path(scratch, "warnings.txt"), Path(scratch, "sphinx.log")
        command = [str(python), "-m", "sphinx", "-b", "html", "-q", "-E", "-d", f"{scratch}/doctrees", "-w", str(found), str(source),
                   str(folder)]
        report(f"building the site from {source}")
        if bootstrap.run_logged(command, log, voice, bootstrap.clean_environment()) != 0:
            raise SimulatorBug(f"Sphinx: failed:\n{bootstrap.tail(log)}")
        warnings = found.read_text(encoding="utf-8").splitlines() if found.exists() else []
    (folder / ".buildinfo").unlink(missing_ok=True)
    return [w.replace(f"{paths.root()}/", "") for w in warnings if w.strip()]
