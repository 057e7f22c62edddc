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

  /** Times of the parts; a part without one stands with the part before it. */
  read() {
    const { history } = this.app;
    let time = history.start;
    this.parts = (history.document.example?.steps || []).map((step) => {
      if (step.at !== undefined && step.at !== null) time = history.start + step.at * history.period;
      return { text: step.text, k: time === history.start ? 0 : history.countAt(nearest(history, time)) };
    });
    this.draw();
  }

  current() {
    let at = 0;
    for (const [i, part] of this.parts.entries()) if (part.k <= this.app.k && part.k > this.parts[at].k) at = i;
    return at;
  }

  go(dir) {
    if (!this.parts.length) return;
    const positions = [...new Set(this.parts.map((part) => part.k))].sort((a, b) => a - b);
    const next = dir > 0 ? positions.find((k) => k > this.app.k) : positions.findLast((k) => k < this.app.k);
    if (next !== undefined) this.app.seek(next);
  }

  draw() {
    const note = this.app.history.document.run?.note;
    byId("now").classList.toggle("with-note", Boolean(this.parts?.length || note));
    if (!this.parts?.length) {
      fill(this.panel, note && h("p", null, note));
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

/** The time of the moment nearest to a time: texts give times in rounded cycles. */
function nearest(history, time) {
  const k = history.countAt(time);
  const [before, after] = [history.moments[k - 1], history.moments[k]];
  if (!before || !after) return (before ?? after ?? { at: time }).at;
  return time - before.at <= after.at - time ? before.at : after.at;
}
