# SPDX-License-Identifier: BSD-3-Clause
"""The page that shows a history, as one self-contained file."""

import html as escape
from typing import Any

from moscope import jsonio


def html(document: dict[str, Any]) -> str:
    """The page with the history in it."""
    data = jsonio.dumps(document).replace("<", "\\u003c")
    title = escape.escape(str(document["spec"]["script"]))
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f'<script type="application/json" id="history">{data}</script><pre>{title}</pre></html>\n')
