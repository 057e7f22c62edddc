# SPDX-License-Identifier: BSD-3-Clause
"""moscope's SLICC compiler: text in, text out.

Layers, each of which reads only the output of earlier ones: `parse` (grammar.lark -> ast), `resolve` (names and types), `check`
(likely mistakes), `hits` (pure hits), then independent emitters: `tables` (text, Markdown, HTML), `interface_json` (NAME.json) and
`emit_cpp`. The folder `src/mem` must be on the path. This folder must not be, since its `ast` is not the standard library's.
"""
