// SPDX-License-Identifier: BSD-3-Clause
// The time line: a bar per access, with its text where there is room, a mark per transition, a red mark per invalidation, and the
// present time, which can be dragged.
import { lineClass } from "../model/colours.js";
import { fill, s } from "../dom.js";
import { plainly, sentence } from "../model/words.js";

const TIMELINE_HEIGHT = 54;
const AXIS = 46;
const BARS_TOP = 15; // where the rows of bars begin
const BAR_ROOM = 21; // height of all rows of bars
const BAR_PITCH = 7; // height of one, at most
const LETTER = 6.2; // width of one, of the labels
const MARGIN_X = 10;

export class Timeline {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.head = s("g", { class: "playhead" }, s("line", { y1: 0, y2: TIMELINE_HEIGHT }), s("path", { d: "M-5 0H5L0 7Z" }));
    this.still = s("g");
    this.svg = s("svg", { height: TIMELINE_HEIGHT, "aria-hidden": "true" }, this.still, this.head);
    fill(panel, this.svg);
    panel.addEventListener("pointerdown", (event) => this.drag(event));
    app.on((what) => {
      if (what === "history" || what === "show") this.draw();
      this.move();
    });
    new ResizeObserver(() => this.draw()).observe(panel);
  }

  x(time) {
    const { start, end } = this.app.history;
    return MARGIN_X + ((time - start) / Math.max(1, end - start)) * (this.width - 2 * MARGIN_X);
  }

  draw() {
    const { app } = this;
    this.width = this.panel.clientWidth;
    if (!this.width) return;
    this.svg.setAttribute("width", this.width);
    const ends = [];
    const placed = app.history.trace.accesses
      .filter((a) => a.issued !== null && !app.hiddenLines.has(a.base))
      .map((a) => {
        const free = ends.findIndex((end) => end <= a.issued);
        const row = free < 0 ? ends.length : free;
        ends[row] = a.done ?? app.history.end;
        return { a, row, end: ends[row] };
      });
    const pitch = Math.min(BAR_PITCH, BAR_ROOM / Math.max(1, ends.length)); // all rows fit, however many accesses overlap
    const bars = placed.map(({ a, row, end }) => {
      const x = this.x(a.issued);
      const width = Math.max(1.5, this.x(end) - x);
      const text = plainly(a);
      const height = Math.max(0.7 * pitch, pitch - 2);
      return [
        s("rect", { x, y: BARS_TOP + row * pitch, width, height, rx: height / 3, class: `span ${lineClass(app.history, a.base)}` }),
        row === 0 && width > LETTER * text.length && s("text", { x: x + 1, y: 11 }, text),
      ];
    });
    const shown = app.history.moments.filter((moment) => moment.kind === "transition" && app.shows(moment));
    const path = (list) => list.map((moment) => `M${this.x(moment.at).toFixed(1)} ${AXIS - 6}V${AXIS}`).join("");
    fill(
      this.still,
      s("line", { x1: MARGIN_X, x2: this.width - MARGIN_X, y1: AXIS + 0.5, y2: AXIS + 0.5, class: "axis" }),
      bars,
      s("path", { d: path(shown.filter((moment) => !moment.lost)), class: "ticks" }),
      s("path", { d: path(shown.filter((moment) => moment.lost)).replaceAll(` ${AXIS - 6}V`, ` ${AXIS - 9}V`), class: "ticks lost" }),
      app.hits &&
        s("path", {
          d: app.hits.map((i) => `M${this.x(app.history.moments[i].at).toFixed(1)} ${AXIS + 2}V${TIMELINE_HEIGHT - 1}`).join(""),
          class: "ticks hits",
        }),
    );
    this.move();
  }

  move() {
    const { app } = this;
    if (!this.width) return;
    this.head.setAttribute("transform", `translate(${this.x(app.time).toFixed(1)} 0)`);
    const { panel } = this;
    panel.setAttribute("aria-valuemin", "0");
    panel.setAttribute("aria-valuemax", String(app.history.moments.length));
    panel.setAttribute("aria-valuenow", String(app.k));
    panel.setAttribute("aria-valuetext", `${app.now(app.time)}: ${sentence(app, app.moment)}`);
  }

  drag(event) {
    const { app, panel } = this;
    panel.setPointerCapture(event.pointerId);
    const to = (e) => {
      const share = (e.clientX - panel.getBoundingClientRect().left - MARGIN_X) / (this.width - 2 * MARGIN_X);
      app.moveTo(app.history.start + share * (app.history.end - app.history.start));
    };
    const stop = () => {
      panel.removeEventListener("pointermove", to);
      panel.removeEventListener("pointerup", stop);
    };
    panel.addEventListener("pointermove", to);
    panel.addEventListener("pointerup", stop);
    to(event);
  }
}
