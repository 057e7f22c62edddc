// SPDX-License-Identifier: BSD-3-Clause
// The sequence diagram: a column per place, time downwards. A stretch in which nothing happens is folded into a short gap that states its
// length. Only the part in sight is drawn, so that a long trace costs no more than a short one.
import { lineClass } from "../model/colours.js";
import { fill, h, s } from "../dom.js";
import { brief, messageName } from "../model/words.js";

const HEAD = 46; // height of the head with one row of labels
const HEAD_ROW = 34; // of each further row
const HEAD_LETTER = 7; // width of a letter of a column's name, at most
const PLACE_LETTER = 5.8; // and of the line below it
const ROW = 17; // least distance of two times
const FOLD = 44; // greatest distance; longer stretches are folded
const CYCLES = 0.9; // pixels per cycle between the two
const EDGE = 58;
const TIMES = 64; // width of the column of times
const BESIDE = 3; // between transitions of one controller at one time
const LABEL_LETTER = 7; // width of a letter of an arrow's label, at most

function stepText(t) {
  return t.state === t.next ? t.state : `${t.state}→${t.next}`;
}

function stepWidth(t) {
  return stepText(t).length * 6.6 + 8;
}

export class SequenceView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.scale = 1;
    this.head = s("svg", { class: "sequence-head" });
    this.body = s("svg", {
      class: "sequence-body",
      role: "img",
      "aria-label": "sequence diagram; each moment is also in the list of steps",
    });
    this.space = h("div", { class: "sequence-space" }, this.body);
    fill(panel, this.head, this.space);
    panel.addEventListener("scroll", () => this.scrolled());
    app.on((what) => {
      if (panel.hidden) return;
      if (what === "history" || what === "show") this.draw();
      else if (what === "position") this.follow();
    });
    new ResizeObserver(() => this.draw()).observe(panel);
  }

  zoom(by) {
    this.scale = Math.max(0.35, Math.min(4, this.scale * by));
    this.draw();
    this.follow();
  }

  draw() {
    const { app, panel } = this;
    if (panel.hidden || !panel.clientWidth) return;
    const { trace } = app.history;
    this.moments = app.history.moments.filter((m) => app.shows(m));
    const used = new Set(this.moments.flatMap((m) => m.places));
    const order = [...app.history.controllers.values()].filter((c) => used.has(c.name));
    order.sort(
      (a, b) => a.chip - b.chip || (a.core === null) - (b.core === null) || a.name.localeCompare(b.name, "en", { numeric: true }),
    );
    const gap = Math.max(79 * Math.min(1, this.scale), (panel.clientWidth - TIMES - 2 * EDGE) / Math.max(1, order.length - 1));
    this.columns = new Map(order.map((c, i) => [c.name, TIMES + EDGE + i * gap]));
    this.width = Math.max(panel.clientWidth, TIMES + 2 * EDGE + (order.length - 1) * gap);
    this.placeTimes();
    this.boxes = this.placeBoxes();
    this.messages = trace.messages.filter(
      (m) =>
        !app.hiddenLines.has(m.base) &&
        m.structure !== "RubyRequest" &&
        m.deliveries.some((d) => this.columns.has(d.to)) &&
        this.columns.has(m.from) &&
        this.ys.has(m.sent),
    );
    this.drawHead(order, gap);
    this.space.style.height = `${this.height}px`;
    this.space.style.width = `${this.width}px`;
    this.follow();
  }

  /** The labels of the columns, in as many rows as they need to stand apart. */
  drawHead(order, gap) {
    const placeOf = (c) => (c.core !== null ? `chip ${c.chip}, core ${c.core}` : `chip ${c.chip}`);
    const widths = order.map((c) => Math.max(c.name.length * HEAD_LETTER, placeOf(c).length * PLACE_LETTER));
    const rows = Math.ceil((Math.max(0, ...widths) + BESIDE) / gap);
    this.headHeight = HEAD + (rows - 1) * HEAD_ROW;
    this.head.setAttribute("width", this.width);
    this.head.setAttribute("height", this.headHeight);
    fill(
      this.head,
      s("rect", { width: this.width, height: this.headHeight, class: "head-back" }),
      order.map((c, i) => {
        const [x, top] = [this.columns.get(c.name), (i % rows) * HEAD_ROW];
        return s(
          "g",
          null,
          s("line", { x1: x, x2: x, y1: top + 40, y2: this.headHeight, class: "life" }),
          s("text", { x, y: top + 18, "text-anchor": "middle", class: "actor" }, c.name),
          s("text", { x, y: top + 34, "text-anchor": "middle", class: "actor-place" }, placeOf(c)),
        );
      }),
    );
  }

  /** y of every time at which something shown happens; folds between far ones. */
  placeTimes() {
    const { history } = this.app;
    const times = [...new Set(this.moments.map((m) => m.at))];
    this.ys = new Map();
    this.folds = [];
    let y = 34;
    let last = null;
    for (const time of times) {
      if (last !== null) {
        const cycles = history.cycles(time - last);
        const wanted = cycles * CYCLES;
        const step = Math.max(ROW, Math.min(FOLD, wanted)) * this.scale;
        if (wanted > FOLD * 1.5) this.folds.push({ y: y + step / 2, span: time - last });
        y += step;
      }
      this.ys.set(time, y);
      last = time;
    }
    this.height = y + 30;
  }

  /** How far the boxes of a controller's transitions at one time reach to the left and to the right of its column. */
  placeBoxes() {
    const boxes = new Map();
    for (const m of this.moments) {
      if (m.kind !== "transition") continue;
      const t = this.app.history.trace.transitions[m.transition];
      const key = `${t.controller} ${m.at}`;
      const width = stepWidth(t);
      const [left, right] = boxes.get(key) ?? [width / 2, -width / 2 - BESIDE];
      boxes.set(key, [left, right + width + BESIDE]);
    }
    return boxes;
  }

  /** The middle of an arrow's label: clear of the box of the transition that sends the message, and if there is room of the receiver's. */
  labelAt(message, delivery, middle, text) {
    const [x1, x2] = [this.columns.get(message.from), this.columns.get(delivery.to)];
    const sender = this.boxes.get(`${message.from} ${message.sent}`);
    const receiver = this.boxes.get(`${delivery.to} ${delivery.at}`) ?? [0, 0];
    const toRight = x2 >= x1;
    const away = BESIDE + (text.length * LABEL_LETTER) / 2;
    const first = sender ? sender[toRight ? 1 : 0] + away : 0;
    const last = Math.abs(x2 - x1) - receiver[toRight ? 0 : 1] - away;
    return x1 + (toRight ? 1 : -1) * Math.max(first, Math.min(Math.abs(x2 - x1) * middle, last));
  }

  /** After scrolling by the user; `follow` draws by itself. */
  scrolled() {
    const { scrollTop, scrollLeft } = this.panel;
    if (this.drawnAt && this.drawnAt[0] === scrollTop && this.drawnAt[1] === scrollLeft) return;
    this.drawPart();
  }

  drawPart() {
    const { panel, app } = this;
    if (panel.hidden || !this.columns) return;
    const top = Math.max(0, panel.scrollTop - 100);
    const bottom = panel.scrollTop + panel.clientHeight + 100;
    const inPart = (y) => y >= top && y <= bottom;
    const [left, right] = [panel.scrollLeft - 120, panel.scrollLeft + panel.clientWidth + 120];
    const within = (...xs) => Math.max(...xs) >= left && Math.min(...xs) <= right;
    this.body.setAttribute("width", this.width);
    this.body.setAttribute("height", bottom - top);
    this.body.setAttribute("viewBox", `0 ${top} ${this.width} ${bottom - top}`);
    this.body.style.top = `${top}px`;
    this.spots = new Map();
    this.drawnAt = [panel.scrollTop, panel.scrollLeft];
    const current = app.moment;
    const now = this.ys.get(app.history.timeAt(app.k));
    fill(
      this.body,
      now !== undefined && s("rect", { x: 0, y: now - 8, width: this.width, height: 16, class: "present" }),
      [...this.columns.values()]
        .filter((x) => within(x))
        .map((x) => s("line", { x1: x, x2: x, y1: top, y2: Math.min(bottom, this.height), class: "life" })),
      this.folds
        .filter((fold) => inPart(fold.y))
        .map((fold) =>
          s(
            "g",
            { class: "fold" },
            s("line", { x1: TIMES, x2: this.width, y1: fold.y, y2: fold.y }),
            s("text", { x: TIMES + 4, y: fold.y + 3.5 }, `${app.text(fold.span)}`),
          ),
        ),
      this.messages.flatMap((m) => this.arrows(m, { top, bottom, within }, current)),
      this.moments.filter((m) => inPart(this.ys.get(m.at))).map((m) => this.mark(m, current, within)),
      s("rect", { x: panel.scrollLeft, y: top, width: TIMES, height: bottom - top, class: "times-back" }),
      now !== undefined && s("rect", { x: panel.scrollLeft, y: now - 8, width: TIMES, height: 16, class: "present" }),
      [...this.ys]
        .filter(([, y]) => inPart(y))
        .map(([time, y]) =>
          s("text", { x: panel.scrollLeft + TIMES - 4, y: y + 4, "text-anchor": "end", class: "time" }, app.now(time, false)),
        ),
    );
  }

  arrows(message, part, current) {
    const { top, bottom, within } = part;
    const { app } = this;
    const y1 = this.ys.get(message.sent);
    if (y1 > bottom) return null;
    const middle = message.from.startsWith("DRAM") ? 0.4 : 0.57; // away from the label of the transition at its end
    return message.deliveries.map((delivery, i) => {
      const y2 = this.ys.get(delivery.at) ?? y1 + 10;
      const [x1, x2] = [this.columns.get(message.from), this.columns.get(delivery.to)];
      if (x2 === undefined || y2 < top || !within(x1, x2)) return null;
      const on = current && current.message === message.id && current.kind !== "transition";
      const away = x2 >= x1 ? -1 : 1;
      const turn = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
      const links = message.hops.length ? ` (${message.hops.length} link${message.hops.length > 1 ? "s" : ""})` : "";
      const text = messageName(message) + links;
      return s(
        "g",
        { class: `arrow ${lineClass(app.history, message.base)}${message.data ? " data" : ""}${on ? " on" : ""}` },
        s("title", null, `${message.type}: ${message.fields}`),
        s("line", { x1, y1, x2: x2 + away * 6, y2 }),
        s("polygon", { points: "0,0 -9,-4 -9,4", transform: `translate(${x2 + away * 4} ${y2}) rotate(${turn.toFixed(1)})` }),
        i === 0 &&
          s(
            "text",
            { x: this.labelAt(message, delivery, middle, text), y: y1 + (y2 - y1) * middle - 3, "text-anchor": "middle" },
            text,
          ),
      );
    });
  }

  /** A transition as a label on its column; issue and done at the core's. */
  mark(moment, current, within) {
    const { app } = this;
    const y = this.ys.get(moment.at);
    const on = current === moment;
    if (moment.kind === "transition") {
      const t = app.history.trace.transitions[moment.transition];
      const width = stepWidth(t);
      if (!within(this.columns.get(t.controller))) return null;
      const x = this.columns.get(t.controller) + this.beside(t, y, width);
      return s(
        "g",
        {
          class: `step ${lineClass(app.history, moment.line)}${moment.lost ? " lost" : ""}${on ? " on" : ""}`,
          on: { click: () => app.seek(moment.index + 1) },
        },
        s("title", null, brief(app, moment)),
        s("rect", { x: x - width / 2, y: y - 8, width, height: 16, rx: 3 }),
        s("text", { x, y: y + 4, "text-anchor": "middle" }, stepText(t)),
      );
    }
    if (moment.kind !== "issue" && moment.kind !== "done") return null;
    const access = app.history.trace.accesses[moment.access];
    const place = moment.places.find((name) => this.columns.has(name));
    if (!place) return null;
    const issue = access.run ? `c${access.core} ${access.op}` : access.text; // a run's text names functions: the title holds it
    const text = moment.kind === "issue" ? issue : `done: ${app.text(access.latency_fs, false)}`;
    const below = moment.kind === "issue" ? -8 : access.run ? 4 : 20; // below the transition, which a run has not recorded
    return s(
      "g",
      {
        class: `access-mark ${lineClass(app.history, moment.line)}${on ? " on" : ""}`,
        on: { click: () => app.seek(moment.index + 1) },
      },
      s("title", null, access.text),
      s("text", { x: this.columns.get(place), y: y + below, "text-anchor": "middle" }, text),
    );
  }

  /** Transitions of one controller at one time stand side by side. */
  beside(t, y, width) {
    const key = `${t.controller} ${y}`;
    const taken = this.spots.get(key);
    this.spots.set(key, (taken ?? width / 2) + (taken === undefined ? 0 : width + BESIDE));
    return taken === undefined ? 0 : taken + BESIDE + width / 2;
  }

  /** Keeps the present time in sight. */
  follow() {
    const y = this.ys?.get(this.app.history.timeAt(this.app.k));
    const { panel } = this;
    if (y !== undefined && (y < panel.scrollTop + 40 || y > panel.scrollTop + panel.clientHeight - this.headHeight - 60)) {
      panel.scrollTop = y - panel.clientHeight / 2;
    }
    const xs = (this.app.moment?.places || []).map((name) => this.columns?.get(name)).filter((x) => x !== undefined);
    if (xs.length && !xs.some((x) => x > panel.scrollLeft + TIMES + 30 && x < panel.scrollLeft + panel.clientWidth - 30)) {
      panel.scrollLeft = xs[0] - panel.clientWidth / 2;
    }
    this.drawPart();
  }
}
