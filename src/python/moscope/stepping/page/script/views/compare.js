// SPDX-License-Identifier: BSD-3-Clause
// Two histories of a session side by side at the same simulated time: where they part, what each does around the present time, the
// states of their lines, and the latencies of their accesses.
import { lineClass, stateClass } from "../model/colours.js";
import { fill, h } from "../dom.js";
import { Fold } from "../model/fold.js";
import { cellKey } from "../model/history.js";
import { brief } from "../model/words.js";

const AROUND = 7; // moments before and after the present time

export class CompareView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.folds = new Map();
    app.on((what) => {
      if (what !== "time") this.draw();
    });
  }

  foldOf(history) {
    if (!this.folds.has(history)) this.folds.set(history, new Fold(history));
    return this.folds.get(history);
  }

  draw() {
    const { app, panel } = this;
    if (panel.hidden) return;
    if (app.branches.length < 2) {
      fill(
        panel,
        h(
          "p",
          { class: "hint" },
          app.settings.live
            ? "There is one history. Click a core to add an access, or a message to delay it: either makes a second history."
            : "This page is a file with one history. ./moscope step serves a page that can make a second one and compare the two here.",
        ),
      );
      return;
    }
    const sides = [app.other, app.branch].map((i) => ({ ...app.branches[i], index: i }));
    for (const side of sides) {
      side.k = side.history.countAt(app.time);
      side.fold = this.foldOf(side.history);
      side.fold.seek(side.k);
    }
    const parting = firstDifference(...sides.map((side) => side.history));
    fill(panel, this.choice(sides), this.parting(sides, parting), this.moments(sides), this.states(sides), this.accesses(sides));
  }

  choice(sides) {
    const { app } = this;
    const pick = h(
      "select",
      { "aria-label": "compared with", "data-key": "other" },
      app.branches.map((one, i) => h("option", { value: i, selected: i === app.other }, one.name)),
    );
    pick.addEventListener("change", () => {
      app.other = Number(pick.value);
      this.draw();
    });
    return h("div", { class: "sides" }, pick, h("b", null, sides[1].name));
  }

  parting(sides, at) {
    const { app } = this;
    if (at === null) return h("p", null, "The two histories are the same.");
    return h(
      "p",
      null,
      `They are the same up to ${app.now(at)}. `,
      h("button", { type: "button", "data-key": "parting", on: { click: () => app.moveTo(at) } }, "go there"),
    );
  }

  moments(sides) {
    const { app } = this;
    return h(
      "section",
      null,
      h("h3", null, `Around ${app.now(app.time)}`),
      h(
        "div",
        { class: "sides" },
        sides.map((side) => {
          const from = Math.max(0, side.k - AROUND);
          const list = side.history.moments.slice(from, side.k + AROUND);
          const view = { ...app, history: side.history };
          return h(
            "ol",
            { class: "compare-list" },
            list.map((moment) =>
              h(
                "li",
                { class: moment.index < side.k ? "" : "later" },
                h("span", { class: "number" }, app.now(moment.at, false)),
                h("i", { class: `dot ${lineClass(side.history, moment.line)}` }),
                brief(view, moment),
              ),
            ),
          );
        }),
      ),
    );
  }

  states(sides) {
    const { app } = this;
    const rows = [];
    for (const line of sides[1].history.lines) {
      for (const name of sides[1].history.controllers.keys()) {
        const first = (side) => side.history.initial.get(cellKey(line.address, name));
        // A controller that takes no transition on the line in one history keeps the state with which the other history begins.
        const [a, b] = sides.map((side, i) => side.fold.cell(line.address, name) ?? first(sides[1 - i]));
        const empty = (side, state) => state === undefined || stateClass(side.history, name, state) === "empty";
        if (a === b && empty(sides[0], a) && empty(sides[1], b)) continue;
        const cell = (side, state) =>
          h(
            "td",
            null,
            state === undefined
              ? "–"
              : h(
                  "span",
                  { class: `state ${stateClass(side.history, name, state)} ${lineClass(side.history, line.address)}` },
                  state,
                ),
          );
        rows.push(
          h(
            "tr",
            { class: a === b ? "" : "changed" },
            h("th", { scope: "row" }, `${line.name} at ${name}`),
            cell(sides[0], a),
            cell(sides[1], b),
          ),
        );
      }
    }
    rows.sort((x, y) => y.classList.contains("changed") - x.classList.contains("changed"));
    return h(
      "section",
      null,
      h("h3", null, `States at ${app.now(app.time)}`),
      h("table", { class: "compare" }, h("caption", null, "States in both histories"), h("tbody", null, rows)),
    );
  }

  accesses(sides) {
    const { app } = this;
    const key = (a) => `${a.text} ${a.issued}`;
    const texts = [...new Set(sides.flatMap((side) => side.history.trace.accesses.map((a) => a.text)))];
    const rows = texts
      .flatMap((text) => {
        const [left, right] = sides.map((side) =>
          side.history.trace.accesses.filter((a) => a.text === text).sort((a, b) => a.issued - b.issued),
        );
        return Array.from({ length: Math.max(left.length, right.length) }, (_, i) => [left[i], right[i]]);
      })
      .sort((x, y) => (x[1] ?? x[0]).issued - (y[1] ?? y[0]).issued);
    const cell = (a) => h("td", { class: "number" }, a ? app.text(a.latency_fs || 0, false) : "–");
    return h(
      "section",
      null,
      h("h3", null, `Latencies in ${app.inCycles ? "cycles" : "ns"}`),
      h(
        "table",
        { class: "compare" },
        h("caption", null, "Latencies in both histories"),
        h(
          "tbody",
          null,
          rows.map(([a, b]) =>
            h(
              "tr",
              { class: a && b && a.latency_fs === b.latency_fs ? "" : "changed", "data-key": key(b ?? a) },
              h("th", { scope: "row" }, (b ?? a).text),
              cell(a),
              cell(b),
              h(
                "td",
                { class: "number" },
                a && b ? signed(b.latency_fs - a.latency_fs, app) : a ? "absent" : "added",
              ),
            ),
          ),
        ),
      ),
    );
  }
}

function signed(fs, app) {
  const text = app.text(Math.abs(fs), false);
  return /[1-9]/.test(text) ? (fs > 0 ? "+" : "-") + text : text;
}

/** The time of the first moment that one history has and the other has not; null if they are the same. */
export function firstDifference(a, b) {
  const text = (history, moment) => `${moment.at} ${moment.kind} ${brief({ history }, moment)}`;
  for (let i = 0; i < Math.max(a.moments.length, b.moments.length); i += 1) {
    const [x, y] = [a.moments[i], b.moments[i]];
    if (!x || !y || text(a, x) !== text(b, y)) return Math.min(x?.at ?? Infinity, y?.at ?? Infinity);
  }
  return null;
}
