// SPDX-License-Identifier: BSD-3-Clause
// The text of an example, beside the step that each part belongs to.
import { byId, fill, h } from "../dom.js";

export class Notes {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    app.on((what) => {
      if (what === "history") this.read();
      else if (what === "position") this.draw();
    });
  }

  /** Parts in the order of the positions of which they speak; a part without one stands with the part before it. */
  read() {
    const { history } = this.app;
    let k = 0;
    this.parts = (history.document.example?.steps || []).map((step) => {
      if (step.at !== undefined && step.at !== null)
        k = history.countAt(nearest(history, history.start + step.at * history.period));
      return { text: step.text, k };
    });
    this.parts.sort((a, b) => a.k - b.k);
    this.draw();
  }

  /** The part that leads to the present position or to the next one that has a text. */
  current() {
    const next = this.parts.findIndex((part) => part.k >= this.app.k);
    return next < 0 ? this.parts.length - 1 : next;
  }

  go(dir) {
    if (!this.parts.length) return;
    const positions = [...new Set(this.parts.map((part) => part.k))].sort((a, b) => a - b);
    const next = dir > 0 ? positions.find((k) => k > this.app.k) : positions.findLast((k) => k < this.app.k);
    if (next !== undefined) this.app.seek(next);
  }

  /** What stands there for a history without an example's text: violations of a check, the note of a run. */
  notes() {
    const { app } = this;
    const { trace, run } = app.history.document;
    const found = [...(trace.violations || []), ...(trace.protocol_error ? [trace.protocol_error] : [])];
    const texts = found.map((one) => {
      const access = typeof one === "object" ? one.access : null;
      const own = access === null || access === undefined ? null : app.history.moments.findLast((m) => m.access === access);
      const end = own ?? app.history.moments.at(-1); // an error ends the history
      const go = end && h("button", { type: "button", on: { click: () => app.seek(end.index + 1) } }, "go there");
      // The lines after the first one are a list, such as the last transitions.
      const [first, ...list] = shortened(app, typeof one === "object" ? one.text : one).split("\n");
      return h("p", { class: "violation" }, h("b", null, "Violation: "), first, " ", go, list.map((line) => `\n${line}`).join(""));
    });
    return run?.note ? [...texts, h("p", null, run.note)] : texts;
  }

  draw() {
    const notes = this.notes();
    byId("now").classList.toggle("with-note", Boolean(this.parts?.length || notes.length));
    const title = this.app.history.document.example?.title;
    if (notes.length || !this.parts?.length) {
      fill(this.panel, notes.length > 0 && title && h("div", { class: "note-head" }, h("b", null, title)), notes);
      return;
    }
    const at = this.current();
    const shown = this.parts.filter((part) => part.k === this.parts[at].k);
    const button = (label, title, dir) =>
      h(
        "button",
        { type: "button", title, "aria-label": title, "data-key": `note ${dir}`, on: { click: () => this.go(dir) } },
        label,
      );
    fill(
      this.panel,
      h(
        "div",
        { class: "note-head" },
        h("b", null, this.app.history.document.example.title),
        h("span", null, `${this.parts.indexOf(shown.at(-1)) + 1} of ${this.parts.length}`),
        button("◀", "previous part of the text (⇧o)", -1),
        button("▶", "next part of the text (o)", 1),
      ),
      shown.map((part) => h("p", null, part.text)),
    );
  }
}

/** A message of the engine with the script's names of lines. */
function shortened(app, text) {
  return text.replace(/\b0x[0-9a-f]+\b/g, (address) => app.history.lineByAddress.get(address)?.name ?? address);
}

/** The time of the moment nearest to a time: texts give times in rounded cycles. */
function nearest(history, time) {
  const k = history.countAt(time);
  const [before, after] = [history.moments[k - 1], history.moments[k]];
  if (!before || !after) return (before ?? after ?? { at: time }).at;
  return time - before.at <= after.at - time ? before.at : after.at;
}
