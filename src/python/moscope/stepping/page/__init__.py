# SPDX-License-Identifier: BSD-3-Clause
"""The page that steps through a history: one self-contained HTML file, which requests nothing.

The page uses no library. It consists of tables, lists and a few hundred SVG shapes whose places come from the machine's topology;
a drawing library would do none of that placement, and a rendering library would be larger than the twenty lines of `dom.js`.
Its modules are ordinary ES modules in `script/`. `bundle.py` joins them in the order of their imports into one script element.
"""

import html as markup
import json
from pathlib import Path
from typing import Any

from moscope.schema.enumerations import SEGMENT
from moscope.stepping.page.bundle import bundle
from moscope.stepping.spec import LONGEST_DELAY_FS

FOLDER = Path(__file__).parent
STYLES = ("base", "frame", "machine", "panels", "protocol", "sequence")


def html(history_document: dict[str, Any], live: bool = False) -> str:
    """The page for a history document (`moscope.history/1`, or `moscope.trace/1` alone).

    With `live`, the page also offers functions that need the server of `moscope step`: added accesses, changed
    delays and forks.
    """
    document = history_document if "trace" in history_document else {"trace": history_document}
    title = f"moscope: {document['trace'].get('script', 'history')}"
    parts = {
        "TITLE": markup.escape(title),
        "STYLE": "\n".join([*((FOLDER / "style" / f"{name}.css").read_text(encoding="utf-8") for name in STYLES), segment_colours()]),
        "HISTORY": embedded(document),
        "SETTINGS": embedded({
            "live": live,
            "longest_delay_fs": LONGEST_DELAY_FS,
            "segments": {name: SEGMENT.label(name) for name in SEGMENT.names},
            "meanings": {name: SEGMENT[name].sentence for name in SEGMENT.names},
        }),
        "SCRIPT": bundle(FOLDER / "script", "main.js").replace("</script", "<\\/script"),
    }
    page = (FOLDER / "page.html").read_text(encoding="utf-8")
    before, *rest = page.split("@@")
    return before + "".join(parts[part] if i % 2 == 0 else part for i, part in enumerate(rest))


def embedded(value: Any) -> str:
    """JSON text that is safe within a script element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def segment_colours() -> str:
    """The colours of the segments of a latency, on a light and on a dark page."""
    found = [(name, SEGMENT[name].colours or ("#888888", "#888888")) for name in SEGMENT.names]
    return "\n".join(f".segment.{name} {{ --segment: light-dark({light}, {dark}); }}" for name, (light, dark) in found)
