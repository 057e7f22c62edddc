# SPDX-License-Identifier: BSD-3-Clause
"""`moscope docs`: builds the documentation site from docs/."""

from pathlib import Path

from moscope import errors
from moscope.cli import SIMULATED, Shared, command

DEFAULT_OUT = Path("moscope-out/docs")


@command(fills_out=True, unused=SIMULATED)
def docs(shared: Shared) -> int:
    """Build the documentation site. The first call installs Sphinx in its own environment."""
    from moscope import jsonio
    from moscope.docs import build

    out = (shared.out or DEFAULT_OUT).absolute()
    jsonio.check_replaceable(out)
    with jsonio.atomic_dir(out) as folder:
        warnings = build(folder, shared.say)
        pages = len([p for p in folder.rglob("*.html") if p.name not in ("genindex.html", "search.html")])
    shared.result({"schema": "moscope.docs/1", "ok": not warnings, "site": str(out / "index.html"), "pages": pages, "warnings": warnings})
    if not shared.json:
        for warning in warnings:
            print(warning)
        print(out / "index.html")
    return errors.FOUND if warnings else errors.OK
