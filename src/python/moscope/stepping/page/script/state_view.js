// SPDX-License-Identifier: BSD-3-Clause
// The state after the present step, line by line: each cache's and the home's state, messages under way, accesses that wait.
import { cellKey } from "./history.js";
import { changedCells } from "./machine_view.js";
import { lineClass, stateClass, stateMeaning } from "./colours.js";
import { fill, h } from "./dom.js";
import { opName, receivers } from "./words.js";

export class StateView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    app.on((what) => {
      if (what !== "time") this.draw();
    });
  }

  draw() {
    if (this.panel.hidden) return;
    const { app } = this;
    const changed = changedCells(app);
    const lines = app.shownLines();
    fill(
      this.panel,
      lines.map((line) => this.line(line, changed)),
      this.waiting(),
      this.flight(),
    );
  }

  line(line, changed) {
    const { app } = this;
    const rows = [];
    for (const c of app.history.controllers.values()) {
      const state = app.fold.cell(line.address, c.name);
      if (state === undefined || !this.inPlace(c)) continue;
      const before = changed.get(cellKey(line.address, c.name));
      rows.push(
        h(
          "tr",
          { class: before === undefined ? "" : "changed" },
          h("th", { scope: "row" }, c.name),
          h(
            "td",
            null,
            before !== undefined && before !== state && [h("span", { class: "was" }, before), " → "],
            h(
              "span",
              { class: `state ${stateClass(app.history, c.name, state)} ${lineClass(app.history, line.address)}` },
              state,
            ),
          ),
          h("td", { class: "meaning" }, stateMeaning(app.history, c.machine, state)),
        ),
      );
    }
    return h(
      "section",
      { class: "line-state" },
      h(
        "h3",
        null,
        h("i", { class: `dot ${lineClass(app.history, line.address)}` }),
        line.name,
        h("small", null, line.name === line.address ? "" : line.address, line.home !== null ? ` · home node ${line.home}` : ""),
      ),
      rows.length
        ? h("table", null, h("caption", null, `States of ${line.name}`), h("tbody", null, rows))
        : h("p", { class: "hint" }, "No controller holds this line."),
    );
  }

  inPlace(controller) {
    const { place } = this.app;
    if (place.controller && place.controller !== controller.name) return false;
    return place.chip === "" || String(controller.chip) === place.chip;
  }

  waiting() {
    const { app } = this;
    const ids = Object.keys(app.fold.state.pending).map(Number);
    return h(
      "section",
      null,
      h("h3", null, "Accesses that wait"),
      ids.length
        ? h(
            "ul",
            { class: "plain" },
            ids.map((id) => {
              const a = app.history.trace.accesses[id];
              return h(
                "li",
                null,
                `core ${a.core}: ${opName(a.op)} of ${a.line}, for ${app.text(app.history.timeAt(app.k) - a.issued)}`,
              );
            }),
          )
        : h("p", { class: "hint" }, "none"),
    );
  }

  flight() {
    const { app } = this;
    const ids = Object.keys(app.fold.state.flight).map(Number);
    return h(
      "section",
      null,
      h("h3", null, "Messages under way"),
      ids.length
        ? h(
            "table",
            null,
            h(
              "tbody",
              null,
              ids.map((id) => {
                const m = app.history.trace.messages[id];
                return h(
                  "tr",
                  { title: m.fields },
                  h("th", { scope: "row" }, h("i", { class: `dot ${lineClass(app.history, m.base)}` }), m.type),
                  h("td", null, `${m.from} → ${receivers(m)}`),
                  h("td", { class: "number" }, `at ${app.now(Math.max(...m.deliveries.map((d) => d.at)), false)}`),
                );
              }),
            ),
          )
        : h("p", { class: "hint" }, "none"),
    );
  }
}
