#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows that `protocol check` catches a broken protocol.

Copies MSI and changes one word: a cache in M that answers a read of another core stays in M instead of going
to S, so it still believes that it may write. Prints the first violation, the short script that repeats it, and the
result of the original. The copy and the script's file are deleted at the end. To step through such a script in the
browser, change a copy of your own: docs/protocol-msi.md, "Exercises".
"""

import shutil
import tempfile
from pathlib import Path

from moscope_json import LAUNCHER, moscope

SOURCES = LAUNCHER.parent / "src/mem/ruby/protocol"
RIGHT, WRONG = "transition(M, Fwd_GetS, S)", "transition(M, Fwd_GetS, M)"

with tempfile.TemporaryDirectory() as folder:
    for source in SOURCES.glob("MSI*"):
        shutil.copy(source, folder)
    cache = Path(folder, "MSI-cache.sm")
    text = cache.read_text()
    assert text.count(RIGHT) == 1
    cache.write_text(text.replace(RIGHT, WRONG))
    broken = moscope("protocol", "check", f"{folder}/MSI.slicc", "--ops", "20000", "--cores", "8",
                     "--counterexample", f"{folder}/MSI.counterexample.toml")
original = moscope("protocol", "check", "MSI", "--ops", "20000", "--cores", "8")
print("broken copy: ", "passed" if broken["ok"] else f"caught after {broken['ops']} accesses: {broken['violations'][0].splitlines()[0]}")
if found := broken.get("counterexample"):
    print(f"shortest script: {found['script']}: {found['what']}")
print("original MSI:", "passed" if original["ok"] else "caught", f"after {original['ops']} accesses")
