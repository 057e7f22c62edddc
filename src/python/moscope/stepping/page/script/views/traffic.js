// SPDX-License-Identifier: BSD-3-Clause
// Messages on their way over the drawing of the machine, at the present time, and the way of the message that the last step concerns.
import { lineClass } from "../model/colours.js";
import { fill, s } from "../dom.js";
import { middle, placeAt, wayOf } from "../model/layout.js";
import { messageName } from "../model/words.js";

const NAME_HEIGHT = 12;
const NAME_ROW = 14; // to the name above or below a message
const NAME_LETTER = 7; // width of one, of a message's name
// Where a name may be, the best first: right or left of its message (1, -1), and a row above or below it.
const SPOTS = [
  [1, 0],
  [-1, 0],
  [1, -1],
  [1, 1],
  [-1, -1],
  [-1, 1],
];

export class Traffic {
  constructor(app) {
    this.app = app;
    this.ways = s("g", { class: "ways" });
    this.dots = s("g", { class: "messages" });
    this.layer = s("g", null, this.ways, this.dots);
    this.moving = [];
    this.labels = []; // boxes of states and chip names, which names of messages leave free
  }

  place(layout) {
    this.layout = layout;
  }

  /** After a change of position: which messages are under way. */
  update() {
    const { app } = this;
    const { trace } = app.history;
    this.moving = [];
    for (const id of Object.keys(app.fold.state.flight)) {
      const message = trace.messages[id];
      if (app.hiddenLines.has(message.base)) continue;
      for (const delivery of message.deliveries) {
        if (delivery.at < app.time) continue;
        this.moving.push({ message, points: wayOf(this.layout, message, delivery), dot: this.dot(message) });
      }
    }
    fill(
      this.dots,
      this.moving.map((one) => one.dot),
    );
    this.drawWays();
    this.move();
  }

  dot(message) {
    const kind = lineClass(this.app.history, message.base);
    const text = s("text", { x: 9, y: 4 }, messageName(message));
    const dot = s(
      "g",
      { class: `message ${kind} ${message.data ? "filled" : "hollow"}`, "data-message": message.id },
      s("title", null, `${message.type}: ${message.fields}`),
      s("circle", { r: 5.5 }),
      text,
    );
    if (this.app.settings.live) {
      dot.classList.add("pick");
      dot.addEventListener("click", () => this.onMessage?.(message));
    }
    return dot;
  }

  drawWays() {
    const { app } = this;
    if (!app.history.trace.messages.length) return fill(this.ways, this.supplies());
    const moment = app.moment;
    const message =
      moment && moment.message !== undefined && moment.message !== null ? app.history.trace.messages[moment.message] : null;
    if (!message || !app.shows(moment)) return fill(this.ways);
    const deliveries =
      moment.kind === "deliver"
        ? [message.deliveries[moment.delivery]]
        : moment.kind === "transition"
          ? message.deliveries.filter((d) => d.to === moment.places[0])
          : message.deliveries;
    const kind = lineClass(app.history, message.base);
    return fill(
      this.ways,
      deliveries.slice(0, 64).map((delivery) => {
        const points = wayOf(this.layout, message, delivery);
        return points.length > 1 && s("polyline", { class: `way ${kind}`, points: points.map((p) => `${p.x},${p.y}`).join(" ") });
      }),
    );
  }

  /** Where no messages are recorded: from the supplier of each access that waits to its core. */
  supplies() {
    const { app } = this;
    return Object.keys(app.fold.state.pending).map((id) => {
      const access = app.history.trace.accesses[id];
      const from = this.layout.places.get(`${access.supplier}-${access.supplier_number}`);
      const to = this.layout.places.get(`core ${access.core}`);
      if (!from || !to || from === to) return null;
      const [p, q] = [middle(from), middle(to)];
      return s("line", { class: `way supply ${lineClass(app.history, access.base)}`, x1: p.x, y1: p.y, x2: q.x, y2: q.y });
    });
  }

  move() {
    const taken = [];
    for (const one of this.moving) {
      const at = placeAt(one.points, this.app.time);
      if (!at) continue;
      // Messages at one spot are drawn below each other, so that each name can be read.
      while (taken.some((spot) => Math.abs(spot.x - at.x) < 40 && Math.abs(spot.y - at.y) < 11)) at.y += 12;
      taken.push(at);
      one.dot.setAttribute("transform", `translate(${at.x.toFixed(1)} ${at.y.toFixed(1)})`);
      one.at = at;
    }
    this.moveNames(this.moving.filter((one) => one.at));
  }

  /** The name of a message goes where it covers least, and stays where it is while it covers nothing there. */
  moveNames(moving) {
    const covered = [...this.labels, ...moving.map(({ at }) => ({ x: at.x - 5, y: at.y - 5, w: 10, h: 10 }))];
    for (const one of moving) {
      const name = one.dot.lastChild;
      const box = (spot) => nameBox(spot, one.at, name.textContent.length * NAME_LETTER);
      const cost = (spot) => {
        const own = box(spot);
        const outside = own.x < 0 || own.y < 0 || own.x + own.w > this.layout.width || own.y + own.h > this.layout.height;
        return covered.filter((other) => overlap(own, other)).length + (outside ? covered.length : 0);
      };
      if (!one.spot || cost(one.spot) > 0) one.spot = SPOTS.reduce((best, spot) => (cost(spot) < cost(best) ? spot : best));
      const [side, row] = one.spot;
      name.setAttribute("x", 9 * side);
      name.setAttribute("y", 4 + row * NAME_ROW);
      name.setAttribute("text-anchor", side < 0 ? "end" : "start");
      covered.push(box(one.spot));
    }
  }
}

function nameBox([side, row], at, w) {
  return { x: side > 0 ? at.x + 9 : at.x - 9 - w, y: at.y - 6 + row * NAME_ROW, w, h: NAME_HEIGHT };
}

function overlap(a, b) {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}
