// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a line: a strip of 64 cells, coloured by the core that wrote each last, and the values of what has been written.
import { h } from "../dom.js";

const WORD = 8;
const WRITERS = 6; // colours

/** `before`: the bytes at the beginning of the last step, to mark what it changed. */
export function bytesOf(app, held, before) {
  if (!held) return h("p", { class: "hint" }, "No access has written to this line: its bytes are 0.");
  const { accesses } = app.history.trace;
  const cores = [...new Set(accesses.map((a) => a.core))].sort((a, b) => a - b);
  const core = (writer) => accesses[writer]?.core;
  const colour = (writer) => `line${cores.indexOf(core(writer)) % WRITERS}`;
  const changed = (i) => !before || before.data[i] !== held.data[i] || before.writers[i] !== held.writers[i];
  const cells = held.writers.map((writer, i) => {
    const mark = writer >= 0 && changed(i) ? " marked" : "";
    const who = writer < 0 ? "never written" : `last written by core ${core(writer)} (${accesses[writer].text})`;
    return h("i", {
      class: `byte ${writer < 0 ? "unwritten" : colour(writer)}${mark}${i % WORD === 0 ? " word" : ""}`,
      title: `byte ${i}: 0x${held.data[i]}, ${who}`,
    });
  });
  const runs = [];
  for (const [i, writer] of held.writers.entries()) {
    const last = runs.at(-1);
    if (last && last.writer === writer && i % WORD !== 0) last.to = i;
    else runs.push({ from: i, to: i, writer });
  }
  const rows = runs
    .filter((run) => run.writer >= 0)
    .map((run) => {
      const value = held.data
        .slice(run.from, run.to + 1)
        .reverse()
        .join("")
        .replace(/^(00)+(?=..)/, "");
      const mark = [...Array(run.to - run.from + 1).keys()].some((i) => changed(run.from + i));
      return h(
        "tr",
        { class: mark ? "changed" : "" },
        h("th", { scope: "row" }, run.to > run.from ? `bytes ${run.from}–${run.to}` : `byte ${run.from}`),
        h("td", null, h("code", null, `0x${value}`)),
        h(
          "td",
          { class: "meaning" },
          h("i", { class: `dot ${colour(run.writer)}` }),
          `written last by core ${core(run.writer)}: ${accesses[run.writer].text}`,
        ),
      );
    });
  return h(
    "div",
    { class: "bytes" },
    h("div", { class: "strip", role: "img", "aria-label": "bytes of the line by last writer" }, cells),
    h("table", null, h("caption", null, "Bytes that have been written"), h("tbody", null, rows)),
  );
}
