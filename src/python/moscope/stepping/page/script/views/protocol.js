// SPDX-License-Identifier: BSD-3-Clause
// The protocol's transition table, one machine at a time. The cell that the present step took is marked, cells that the trace took have
// a count; a click on one goes to where the trace took it. Below: the actions of the cell, with their lines of the .sm source.
import { fill, h, reveal } from "../dom.js";
import { grouped } from "../model/app.js";
import { excerpt } from "./source.js";

const SHOWN = 24; // times at which a transition was taken
const NARROW = 12; // events; a wider table begins with those that the trace has

export class ProtocolView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.machine = null;
    this.follow = true;
    this.all = null;
    app.on((what) => {
      if (what === "history") this.reset();
      else if (what !== "time") this.update();
    });
  }

  reset() {
    this.machine = null;
    this.drawn = "";
    this.chosen = null;
    this.taken = new Map(); // machine, state and event: the moments that took it
    const { trace, moments } = this.app.history;
    for (const moment of moments) {
      if (moment.kind !== "transition") continue;
      const t = trace.transitions[moment.transition];
      const key = `${t.machine} ${t.state} ${t.event}`;
      if (!this.taken.has(key)) this.taken.set(key, []);
      this.taken.get(key).push(moment.index);
    }
    this.update();
  }

  /** The transition of the present step, or the last one before it. */
  present() {
    const { history, k } = this.app;
    for (let i = k - 1; i >= 0; i -= 1) {
      if (history.moments[i].kind === "transition" && this.app.shows(history.moments[i])) {
        return history.trace.transitions[history.moments[i].transition];
      }
    }
    return null;
  }

  update() {
    if (this.panel.hidden) return;
    const { protocol } = this.app.history;
    if (!protocol?.machines?.length) {
      fill(this.panel, h("p", { class: "hint" }, "This history holds no protocol."));
      return;
    }
    const now = this.present();
    if (this.follow || !this.machine) this.machine = now?.machine || protocol.machines[0].type;
    const of = protocol.machines.find((m) => m.type === this.machine);
    if (!of) return;
    this.draw(of);
    this.mark(of, now);
  }

  draw(of) {
    const all = this.all ?? of.events.length <= NARROW;
    const drawn = `${of.type} ${all}`;
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    this.cells = new Map();
    const has = (event) => of.states.some((state) => this.taken.has(`${of.type} ${state.name} ${event.name}`));
    const events = all ? of.events : of.events.filter(has);
    const byCell = new Map(of.transitions.map((t) => [`${t.state} ${t.event}`, t]));
    const table = h(
      "table",
      { class: "protocol" },
      h("caption", null, `Transitions of ${of.type}`),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("td"),
          events.map((event) => h("th", { scope: "col", title: event.description }, h("span", null, event.name))),
        ),
      ),
      h(
        "tbody",
        null,
        of.states.map((state) => this.row(of, state, events, byCell)),
      ),
    );
    this.wrap = h("div", { class: "protocol-scroll" }, table);
    this.below = h("div", { class: "taken", tabindex: -1, "data-scroll": true, "data-key": "taken" });
    fill(this.panel, this.controls(of, all), this.wrap, this.below);
  }

  controls(of, all) {
    const { machines } = this.app.history.protocol;
    const pick = h(
      "select",
      { "aria-label": "Machine", "data-key": "machine" },
      machines.map((m) => h("option", { value: m.type, selected: m.type === of.type }, m.type)),
    );
    pick.addEventListener("change", () => {
      this.machine = pick.value;
      this.follow = false;
      this.chosen = null;
      this.update();
    });
    const toggle = (label, on, title, action) =>
      h("button", { type: "button", "aria-pressed": String(on), title, "data-key": label, on: { click: action } }, label);
    return h(
      "div",
      { class: "controls" },
      pick,
      toggle("follow", this.follow, "show the machine of the present step", () => {
        this.follow = !this.follow;
        this.chosen = null;
        this.drawn = "";
        this.update();
      }),
      toggle("all events", all, "also events that this trace does not have", () => {
        this.all = !all;
        this.update();
      }),
    );
  }

  row(of, state, events, byCell) {
    return h(
      "tr",
      null,
      h("th", { scope: "row", title: state.description }, state.name),
      events.map((event) => {
        const t = byCell.get(`${state.name} ${event.name}`);
        if (!t) return h("td", { class: "none" });
        const key = `${of.type} ${state.name} ${event.name}`;
        const count = this.taken.get(key)?.length || 0;
        const times = count === 1 ? "once" : `${grouped(count)} times`;
        const text = t.stall ? "stall" : t.next === state.name ? "·" : t.next;
        const cell = h(
          "td",
          { class: count ? "was-taken" : "" },
          h(
            "button",
            {
              type: "button",
              tabindex: count ? "0" : "-1",
              on: { click: () => this.choose(key, t) },
              "aria-label": `${state.name}, ${event.name}: ${t.stall ? "stall" : t.next}; taken ${times}`,
              title: `${state.name} × ${event.name}: ${t.stall ? "stall" : t.next}; taken ${grouped(count)}×`,
            },
            text,
          ),
        );
        this.cells.set(key, cell);
        return cell;
      }),
    );
  }

  /** A click on a cell: its source, and where the trace took it. */
  choose(key, transition) {
    const { app } = this;
    this.chosen = { key, transition };
    const hits = this.taken.get(key) || [];
    app.hits = hits.length ? hits : null;
    if (hits.length) {
      this.follow = false;
      app.seek((hits.find((index) => index >= app.k) ?? hits[0]) + 1);
    }
    app.changed("show");
  }

  mark(of, now) {
    const current = now && now.machine === of.type ? `${now.machine} ${now.state} ${now.event}` : null;
    for (const [key, cell] of this.cells) cell.classList.toggle("now", key === current);
    if (this.chosen && this.chosen.key !== current && (this.taken.get(this.chosen.key)?.length || 0) > 0) this.chosen = null;
    const shown =
      this.chosen ||
      (current && { key: current, transition: of.transitions.find((t) => `${of.type} ${t.state} ${t.event}` === current) });
    if (current && this.cells.get(current)) reveal(this.wrap, this.cells.get(current));
    this.describe(of, shown);
  }

  describe(of, shown) {
    if (!shown || !shown.transition) {
      fill(
        this.below,
        h("p", { class: "hint" }, "No transition of this machine has been taken. A cell shows its actions and source."),
      );
      return;
    }
    const { transition: t, key } = shown;
    const hits = this.taken.get(key) || [];
    const before = hits.filter((index) => index < this.app.k).length;
    const first = Math.max(0, Math.min(before - SHOWN / 2, hits.length - SHOWN)); // the present moment is in their middle
    const actions = t.actions.map((name) => of.actions.find((a) => a.name === name) || { name });
    const { sources } = this.app.history.protocol;
    fill(
      this.below,
      h("h3", null, `${of.type}: ${t.state} × ${t.event} → ${t.stall ? "stall" : t.next}`),
      hits.length > 0 &&
        h(
          "p",
          { class: "hits" },
          `taken ${grouped(hits.length)}×: `,
          first > 0 && "… ",
          hits.slice(first, first + SHOWN).map((index) =>
            h(
              "button",
              {
                type: "button",
                "data-key": `hit ${index}`,
                class: index + 1 === this.app.k ? "current" : "",
                on: { click: () => this.app.seek(index + 1) },
              },
              this.app.now(this.app.history.moments[index].at, false),
            ),
          ),
          first + SHOWN < hits.length && " …",
        ),
      excerpt(sources, t, "transition"),
      actions.map((action) =>
        h(
          "section",
          { class: "action" },
          h("h4", null, action.name, h("small", null, action.description || "")),
          excerpt(sources, action, "action"),
        ),
      ),
    );
  }
}
