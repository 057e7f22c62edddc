# SPDX-License-Identifier: BSD-3-Clause
"""moscope's SLICC compiler: text in, text out.

Layers, each reading only what the ones before it made: `parse` (grammar.lark -> ast), `resolve` (names and types), `check` (sense),
`hits` (which transitions are pure hits), then independent emitters: `tables` (text, Markdown, HTML), `interface_json`
(NAME.json) and `emit_cpp`. The folder `src/mem` has to be on the path; this folder must not be, since `ast` here is not the
standard library's.
"""
