// SPDX-License-Identifier: BSD-3-Clause
// The machine as it is: chips, cores, L3s, homes, DRAM, links. Each place shows its state of the lines in play; what the last step
// changed has a frame.
import { cellKey } from "../model/history.js";
import { layoutOf } from "../model/layout.js";
import { lineClass, lineName, stateClass, stateMeaning } from "../model/colours.js";
import { fill, h, s } from "../dom.js";
import { Traffic } from "./traffic.js";

const NAMED = 8; // lines in the legend
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
    this.drawLegend();
    const height = this.panel.clientHeight - this.legend.offsetHeight;
    if (width < 50 || height < 50) return;
    const layout = layoutOf(this.app.history, width, height);
    this.layout = layout;
    this.tags = new Map();
    this.svg.setAttribute("viewBox", `0 0 ${width} ${layout.height}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    const chips = [...layout.chips].map(([chip, box]) => this.chip(chip, box));
    fill(this.svg, [...layout.links.values()].filter(Boolean).map(drawnLink), chips, this.traffic.layer);
    this.traffic.place(layout);
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
      s("text", { x: box.x + 10, y: box.y + (box.low ? 11 : 13), class: "chip-name" }, `chip ${chip}`),
      cells,
    );
  }

  cell(name, cell, names) {
    const label = cell.core !== null ? `${cell.core}` : roleName(cell.kind);
    const centred = cell.core !== null && !cell.low;
    const margin = cell.narrow ? 2 : cell.low ? 3 : 5;
    const tags = s("g", { class: "tags" });
    const group = s(
      "g",
      { class: `${cell.core !== null ? "core" : "unit"}${cell.narrow ? " narrow" : ""}`, "data-place": names.at(-1) },
      s("rect", { x: cell.x, y: cell.y, width: cell.w, height: cell.h, rx: 3, class: "cell-box" }),
      s(
        "text",
        {
          x: centred ? cell.x + cell.w / 2 : cell.x + margin,
          y: cell.y + (cell.core !== null ? (cell.low ? 9 : 12) : cell.h / 2 + 4),
          class: cell.low && cell.core !== null ? "cell-name low" : "cell-name",
          "text-anchor": centred ? "middle" : "start",
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
    const place = { tags, cell, names, key: "", boxes: [] };
    for (const one of names) this.tags.set(one, place);
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
          const untouched = kind.startsWith("home") && state === app.history.initial.get(cellKey(line.address, controller));
          if ((kind === "empty" || untouched) && !marked) continue;
          shown.push({ controller, line, state, marked, kind, machine });
        }
      }
      const key = shown.map((tag) => `${tag.controller} ${tag.line.address} ${tag.state} ${tag.marked}`).join(",");
      if (key === one.key) continue;
      one.key = key;
      const tags = this.stateTags(one.cell, shown);
      one.boxes = tags.filter((tag) => tag.box).map((tag) => tag.box);
      fill(
        one.tags,
        tags.map((tag) => tag.drawn),
      );
    }
    const chipNames = [...this.layout.chips.values()].map((box) => ({ x: box.x + 10, y: box.y + 1, w: 38, h: 12 }));
    this.traffic.labels = [...chipNames, ...[...new Set(this.tags.values())].flatMap((one) => one.boxes)];
    this.traffic.update();
  }

  /** Labels of states: below each other in a core, from the right in a unit. What does not fit is counted. */
  stateTags(cell, shown) {
    const line = this.app.moment?.line;
    const rank = (tag) => 2 * tag.marked + (tag.line.address === line);
    const first = [...shown].sort((a, b) => rank(b) - rank(a));
    const tags = cell.core !== null ? this.coreTags(cell, first) : this.unitTags(cell, first);
    const left = shown.length - tags.length;
    if (left > 0) {
      const spot =
        cell.core !== null
          ? { x: cell.x + cell.w - (cell.narrow ? 0.5 : 2), y: cell.y + (cell.low ? 9 : 11) }
          : { x: tags.at(-1).box.x - 2, y: cell.y + cell.h / 2 + 4 };
      const count = cell.core !== null && cell.narrow ? "+" : `+${left}`;
      tags.push({ drawn: s("text", { ...spot, "text-anchor": "end", class: "more" }, count) });
    }
    return tags;
  }

  coreTags(cell, shown) {
    const { low } = cell;
    const room = low ? 1 : Math.max(1, Math.floor((cell.h - 16) / (TAG + 1)));
    return shown.slice(0, room).map((tag, i) => {
      const y = low ? cell.y + cell.h - TAG - 0.5 : cell.y + 16 + i * (TAG + 1);
      return this.tag(tag, cell.x + 2, y, cell.w - 4);
    });
  }

  unitTags(cell, shown) {
    const tags = [];
    let right = cell.x + cell.w - 3;
    for (const [i, tag] of shown.entries()) {
      const width = (cell.narrow ? 6 : 10) + 6.4 * tag.state.length;
      const needed = width + (i < shown.length - 1 ? 15 : 0); // the count of those that do not fit
      if (i > 0 && right - needed < cell.x + (cell.narrow ? 29 : 36)) break; // "home" and its margin
      tags.push(this.tag(tag, right - width, cell.y + (cell.h - TAG) / 2, width));
      right -= width + 2;
    }
    return tags;
  }

  tag(tag, x, y, width) {
    const { history } = this.app;
    const meaning = stateMeaning(history, tag.machine, tag.state);
    const title = `${tag.controller}: ${lineName(history, tag.line.address)} in ${tag.state}: ${meaning}`;
    const kind = `tag ${lineClass(history, tag.line.address)} ${tag.kind}${tag.marked ? " marked" : ""}`;
    const text = s("text", { x: x + width / 2, y: y + 10.5, "text-anchor": "middle" }, tag.state);
    const drawn = s("g", { class: kind }, s("title", null, title), s("rect", { x, y, width, height: TAG, rx: 3 }), text);
    return { drawn, box: { x, y, w: width, h: TAG } };
  }

  drawLegend() {
    const { app } = this;
    const box = (kind, text) => h("span", null, h("i", { class: `box ${kind}` }), text);
    const dot = (kind, text, attributes = null) => h("span", attributes, h("i", { class: `dot ${kind}` }), text);
    const name = (line) =>
      dot(lineClass(app.history, line.address), line.name, { class: "line-name", title: line.name });
    const lines = app.shownLines();
    fill(
      this.legend,
      box("writable", "may write"),
      box("readable", "may read"),
      box("busy", "waits"),
      box("marked", "changed"),
      dot("filled", "message with data"),
      dot("hollow", "without"),
      lines.slice(0, NAMED).map(name),
      lines.length > NAMED && h("span", null, `and ${lines.length - NAMED} more lines: see Filters`),
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
