#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows how to describe a machine of your own: `small` with its four chips in a line, and faster links.

Writes four_in_a_line.py into the folder given (default: a temporary one), runs `latency` on it, and prints its
rows beside those of `small`. The farthest node is now three hops away, but each hop costs less.
"""

import sys
import tempfile
from pathlib import Path

from moscope_json import moscope

DESCRIPTION = '''
"""Four chips of two cores in a line."""
from moscope.config import Frequency, Topology, load_machine, replace

small = load_machine("small")
machine = replace(small, name="four_in_a_line", topology=Topology.parse("0-1 1-2 2-3", "chosen"),
                  links=replace(small.links, clock=Frequency("2.4GHz", "chosen: HyperTransport 3")))
'''

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
(folder / "four_in_a_line.py").write_text(DESCRIPTION)
for machine in ("small", str(folder / "four_in_a_line.py")):
    result = moscope("latency", "--machine", machine)
    print(f"{result['machine']:<15}", ", ".join(f"{row['name']} {row['measured']:.0f}" for row in result["rows"]), "cycles")
