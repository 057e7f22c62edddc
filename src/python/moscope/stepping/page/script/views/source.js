// SPDX-License-Identifier: BSD-3-Clause
// Lines of a protocol's source, with their numbers.
import { h } from "../dom.js";

const KEYWORDS = /\b(transition|action|peek|enqueue|if|else|return|true|false|out_msg|in_msg|address|tbe|cache_entry)\b/;

export function excerpt(sources, place, what) {
  const text = sources?.[place.file];
  if (!text || !place.line) return null;
  const lines = text.split("\n").slice(place.line - 1, place.last_line || place.line);
  return h(
    "figure",
    { class: "source", "aria-label": `source of the ${what}` },
    h("figcaption", null, `${place.file}:${place.line}`),
    h(
      "pre",
      null,
      lines.map((line, i) => h("code", { "data-line": place.line + i }, coloured(line), "\n")),
    ),
  );
}

/** Comments and keywords; the rest as it is. */
function coloured(line) {
  const at = line.indexOf("//");
  const code = at < 0 ? line : line.slice(0, at);
  const parts = code.split(KEYWORDS).map((part, i) => (i % 2 ? h("b", null, part) : part));
  return at < 0 ? parts : [...parts, h("i", null, line.slice(at))];
}
