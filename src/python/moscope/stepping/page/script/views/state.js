// SPDX-License-Identifier: BSD-3-Clause
// The state after the present step, line by line: each cache's and the home's state, with entry, pending transaction and way; the bytes;
// then messages under way and accesses that wait. What the last step changed is marked.
import { bytesOf } from "./bytes.js";
import { lineClass, lineName, stateClass, stateMeaning } from "../model/colours.js";
import { fill, h } from "../dom.js";
import { cellKey } from "../model/history.js";
import { messageName, opName, placeName, receivers, who } from "../model/words.js";

const FEW_LINES = 3; // all of them are shown in full
const MANY_ROWS = 10; // beyond it, caches without a copy are counted

export class StateView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.opened = new Set();
    app.on((what) => {
      if (what !== "time") this.draw();
    });
  }

  draw() {
    if (this.panel.hidden) return;
    const { app } = this;
    const step = app.stepChanges();
    const lines = app.shownLines();
    const open = (line) => lines.length <= FEW_LINES || this.opened.has(line.address) || app.moment?.line === line.address;
    fill(
      this.panel,
      lines.filter(open).map((line) => this.line(line, step)),
      this.others(lines.filter((line) => !open(line))),
      this.waiting(),
      this.flight(),
    );
  }

  line(line, step) {
    const { app } = this;
    const held = [...app.history.controllers.values()].filter(
      (c) => app.fold.cell(line.address, c.name) !== undefined && this.inPlace(c),
    );
    const plain = (c) => {
      const key = cellKey(line.address, c.name);
      const empty = stateClass(app.history, c.name, app.fold.cell(line.address, c.name)) === "empty";
      return empty && !step.touched.has(key) && app.fold.state.tbes[key] === undefined;
    };
    const left = held.length > MANY_ROWS ? held.filter(plain) : [];
    const rows = held.filter((c) => !left.includes(c)).map((c) => this.row(line, c, app.fold.cell(line.address, c.name), step));
    if (left.length)
      rows.push(h("tr", null, h("td", { colspan: 3, class: "hint" }, `${left.length} further caches have no copy.`)));
    const name = line.name === line.address ? "" : line.address;
    const written = app.history.hasBytes && bytesOf(app, app.fold.state.bytes[line.address], step.bytes.get(line.address));
    const home = line.home !== null && line.home !== undefined ? ` · home node ${line.home}` : "";
    return h(
      "section",
      { class: "line-state", "data-line": line.address },
      h("h3", null, h("i", { class: `dot ${lineClass(app.history, line.address)}` }), line.name, h("small", null, name, home)),
      rows.length
        ? h("table", null, h("caption", null, `States of ${line.name}`), h("tbody", null, rows))
        : h(
            "p",
            { class: "hint" },
            app.history.trace.transitions.length ? "No controller holds this line." : "No states are recorded.",
          ),
      written,
    );
  }

  /** Lines that the present step does not concern, where there are many: one row each, which opens the line. */
  others(lines) {
    const { app } = this;
    if (!lines.length) return null;
    return h(
      "section",
      null,
      h("h3", null, "Other lines"),
      h(
        "ul",
        { class: "plain" },
        lines.map((line) => {
          const copies = [...app.history.controllers.values()].filter((c) => {
            const state = app.fold.cell(line.address, c.name);
            return state !== undefined && !/^(empty|home)/.test(stateClass(app.history, c.name, state));
          });
          const text = copies
            .slice(0, 3)
            .map((c) => `${app.fold.cell(line.address, c.name)} at ${c.name}`)
            .join(", ");
          const more = copies.length > 3 ? ` and ${copies.length - 3} more` : "";
          const open = () => {
            this.opened.add(line.address);
            this.draw();
          };
          return h(
            "li",
            null,
            h(
              "button",
              { type: "button", class: "open-line", "data-key": `open ${line.address}`, on: { click: open } },
              h("i", { class: `dot ${lineClass(app.history, line.address)}` }),
              h("b", null, line.name),
              ` ${text || "no copy"}${more}`,
            ),
          );
        }),
      ),
    );
  }

  row(line, c, state, step) {
    const { app } = this;
    const key = cellKey(line.address, c.name);
    const before = step.cells.get(key);
    const { fields, tbes } = app.fold.state;
    const ways = app.fold.waysOf(line.address, c.name);
    const replaced = step.replaced.get(key);
    const extra = (mark, ...text) => h("div", { class: `extra${step.kinds.has(`${key} ${mark}`) ? " changed-part" : ""}` }, text);
    const cleared = (mark, held, text) => !held && step.kinds.has(`${key} ${mark}`) && extra(mark, text);
    return h(
      "tr",
      { class: step.touched.has(key) ? "changed" : "" },
      h("th", { scope: "row" }, placeName(app.history, c.name), h("small", null, c.name)),
      h(
        "td",
        null,
        before !== undefined && before !== state && [h("span", { class: "was" }, before), " → "],
        h("span", { class: `state ${stateClass(app.history, c.name, state)} ${lineClass(app.history, line.address)}` }, state),
      ),
      h(
        "td",
        { class: "meaning" },
        stateMeaning(app.history, c.machine, state),
        fields[key] && extra("entry", h("b", null, "entry "), fieldsOf(fields[key])),
        tbes[key] !== undefined && extra("tbe", h("b", null, "pending transaction "), fieldsOf(tbes[key])),
        cleared("tbe", tbes[key] !== undefined, "transaction finished"),
        ways.map(([array, [set, way]]) => extra("way", `${array}: set ${set}, way ${way}`)),
        replaced && extra("way", h("b", null, `replaces ${lineName(app.history, replaced)}`)),
      ),
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
                `${who(a)}: ${opName(a.op)} of ${a.line}, for ${app.text(app.history.timeAt(app.k) - a.issued)}`,
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
                  h("th", { scope: "row" }, h("i", { class: `dot ${lineClass(app.history, m.base)}` }), messageName(m)),
                  h("td", null, `${m.from} → ${receivers(m)}`),
                  h("td", { class: "number" }, `until ${app.now(Math.max(...m.deliveries.map((d) => d.at)), false)}`),
                );
              }),
            ),
          )
        : h("p", { class: "hint" }, "none"),
    );
  }
}

/** Fields of an entry or TBE, without those that are empty; all of them as a tool tip. */
function fieldsOf(fields) {
  const kept = fields.split(/, (?=\w+=)/).filter((field) => !/=(false|NULL|0|\{\})$|^TBEState=|State=/.test(field));
  return h("code", { title: fields }, kept.join(", ") || "–");
}
