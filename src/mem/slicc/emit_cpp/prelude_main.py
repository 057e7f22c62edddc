# SPDX-License-Identifier: BSD-3-Clause
"""Writes the header of the prelude's enumerations: `python3 prelude_main.py FILE.hh`; part of the engine's build."""
from __future__ import annotations

import sys
from pathlib import Path

MEM = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(MEM))

from slicc import emit_cpp, errors, parse, resolve  # noqa: E402


def main(target: str) -> int:
    diagnostics = errors.Diagnostics()
    try:
        program = parse.parse_protocol(str(MEM / "slicc/prelude/prelude.slicc"), diagnostics)
        resolve.resolve(program, diagnostics)
        diagnostics.stop_on_error()
    except errors.Stop:
        for found in diagnostics.errors():
            print(diagnostics.render(found), file=sys.stderr)
        return 2
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(emit_cpp.prelude_header(program))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
