// SPDX-License-Identifier: BSD-3-Clause
// The machine as it is: chips, cores, L3s, homes, DRAM, links. Each place shows its state of the lines in play; what the last step
// changed has a frame.
import { cellKey } from "../model/history.js";
import { layoutOf } from "../model/layout.js";
import { lineClass, lineName, stateClass, stateMeaning } from "../model/colours.js";
import { fill, h, s } from "../dom.js";
import { Traffic } from "./traffic.js";

const TAG = 14; // height of a state's label

export class MachineView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.svg = s("svg", { role: "group", "aria-label": "Machine: chips, caches, homes, links and messages under way" });
    this.legend = h("div", { class: "legend" });
    fill(panel, this.svg, this.legend);
    this.traffic = new Traffic(app);
    app.on((what) => this.changed(what));
    new ResizeObserver(() => this.draw()).observe(panel);
  }

  changed(what) {
    if (what === "history" || what === "show") this.draw();
    else if (what === "position") this.update();
    else this.traffic.move();
  }

  draw() {
    const width = this.panel.clientWidth;
    const height = this.panel.clientHeight - 26;
    if (width < 50 || height < 50) return;
    const layout = layoutOf(this.app.history, width, height);
    this.layout = layout;
    this.tags = new Map();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    const chips = [...layout.chips].map(([chip, box]) => this.chip(chip, box));
    fill(this.svg, [...layout.links.values()].filter(Boolean).map(drawnLink), chips, this.traffic.layer);
    this.traffic.place(layout);
    this.drawLegend();
    this.update();
  }

  chip(chip, box) {
    const places = [...this.layout.places].filter(([, cell]) => cell.chip === chip);
    const drawn = new Set();
    const cells = [];
    for (const [name, cell] of places) {
      if (drawn.has(cell)) continue;
      drawn.add(cell);
      cells.push(
        this.cell(
          name,
          cell,
          places.filter(([, other]) => other === cell).map(([n]) => n),
        ),
      );
    }
    return s(
      "g",
      { class: "chip" },
      s("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: 6, class: "chip-box" }),
      s("line", { x1: box.x + 8, x2: box.x + box.w - 8, y1: box.bar, y2: box.bar, class: "crossbar" }),
      s("text", { x: box.x + 10, y: box.y + 13, class: "chip-name" }, `chip ${chip}`),
      cells,
    );
  }

  cell(name, cell, names) {
    const label = cell.core !== null ? `${cell.core}` : roleName(cell.kind);
    const tags = s("g", { class: "tags" });
    const group = s(
      "g",
      { class: cell.core !== null ? "core" : "unit", "data-place": names.at(-1) },
      s("rect", { x: cell.x, y: cell.y, width: cell.w, height: cell.h, rx: 3, class: "cell-box" }),
      s(
        "text",
        {
          x: cell.core !== null ? cell.x + cell.w / 2 : cell.x + 5,
          y: cell.y + (cell.core !== null ? (cell.h < 32 ? 10 : 12) : cell.h / 2 + 4),
          class: "cell-name",
          "text-anchor": cell.core !== null ? "middle" : "start",
        },
        label,
      ),
      tags,
    );
    if (cell.core !== null && this.app.settings.live) {
      group.classList.add("pick");
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `core ${cell.core}: add an access`);
      const pick = () => this.onCore?.(cell.core);
      group.addEventListener("click", pick);
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter") pick();
      });
    }
    for (const one of names) this.tags.set(one, { tags, cell, names, key: "" });
    return group;
  }

  update() {
    if (!this.layout) return;
    const { app } = this;
    const changed = app.stepChanges().cells;
    const lines = app.shownLines();
    for (const one of new Set(this.tags.values())) {
      const shown = [];
      for (const controller of one.names) {
        for (const line of lines) {
          const state = app.fold.cell(line.address, controller);
          if (state === undefined) continue;
          const marked = changed.has(cellKey(line.address, controller));
          const machine = app.history.controllers.get(controller)?.machine;
          const kind = stateClass(app.history, controller, state);
          const untouched = kind === "home" && state === app.history.initial.get(cellKey(line.address, controller));
          if ((kind === "empty" || untouched) && !marked) continue;
          shown.push({ controller, line, state, marked, kind, machine });
        }
      }
      const key = shown.map((tag) => `${tag.controller} ${tag.line.address} ${tag.state} ${tag.marked}`).join(",");
      if (key === one.key) continue;
      for (const name of one.names) this.tags.get(name).key = key;
      fill(one.tags, this.stateTags(one.cell, shown));
    }
    this.traffic.update();
  }

  stateTags(cell, shown) {
    const core = cell.core !== null;
    const room = core ? Math.max(1, Math.floor((cell.h - 16) / (TAG + 1))) : Math.max(1, Math.floor((cell.w - 40) / 30));
    const first =
      shown.length > room ? [...shown].sort((a, b) => b.marked - a.marked).slice(0, room - (room > 1 ? 1 : 0)) : shown;
    const width = core ? cell.w - 4 : 28;
    const tags = first.map((tag, i) => {
      const x = core ? cell.x + 2 : cell.x + cell.w - (i + 1) * 30;
      const y = core ? cell.y + (cell.h < 32 ? cell.h - TAG - 1 : 16 + i * (TAG + 1)) : cell.y + (cell.h - TAG) / 2;
      const meaning = stateMeaning(this.app.history, tag.machine, tag.state);
      const title = `${tag.controller}: ${lineName(this.app.history, tag.line.address)} in ${tag.state}: ${meaning}`;
      return s(
        "g",
        { class: `tag ${lineClass(this.app.history, tag.line.address)} ${tag.kind}${tag.marked ? " marked" : ""}` },
        s("title", null, title),
        s("rect", { x, y, width, height: TAG, rx: 3 }),
        s("text", { x: x + width / 2, y: y + 10.5, "text-anchor": "middle" }, tag.state),
      );
    });
    if (first.length < shown.length) {
      const text = `+${shown.length - first.length}`;
      const spot = core
        ? { x: cell.x + cell.w / 2, y: cell.y + cell.h - 2 }
        : { x: cell.x + cell.w - 30 * first.length - 8, y: cell.y + 18 };
      tags.push(s("text", { ...spot, "text-anchor": "middle", class: "more" }, text));
    }
    return tags;
  }

  drawLegend() {
    const { app } = this;
    const box = (kind, text) => h("span", null, h("i", { class: `box ${kind}` }), text);
    const dot = (kind, text) => h("span", null, h("i", { class: `dot ${kind}` }), text);
    fill(
      this.legend,
      box("writable", "may write"),
      box("readable", "may read"),
      box("busy", "waits"),
      box("marked", "changed"),
      dot("filled", "message with data"),
      dot("hollow", "without"),
      app
        .shownLines()
        .slice(0, 8)
        .map((line) => dot(lineClass(app.history, line.address), line.name)),
    );
  }
}

function roleName(kind) {
  return { L3Cache: "L3", Directory: "home", DRAM: "DRAM", DMA: "DMA" }[kind] || kind;
}

/** The ends lie below the chips, which are drawn later. */
function drawnLink(link) {
  const { start, end } = link;
  const name = `${link.from}→${link.to}`;
  const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
  const [dx, dy] = [((end.x - start.x) / length) * 14, ((end.y - start.y) / length) * 14];
  return s(
    "line",
    { x1: start.x - dx, y1: start.y - dy, x2: end.x + dx, y2: end.y + dy, class: "link", "data-link": `${link.from}-${link.to}` },
    s("title", null, `link ${name}`),
  );
}
