// SPDX-License-Identifier: BSD-3-Clause
// The row of buttons below: to the ends, back and forth by the chosen kind of step, play, speed; and the sentence on the present step.
import { grouped, KINDS } from "../model/app.js";
import { byId, fill, h } from "../dom.js";
import { sentence } from "../model/words.js";

export class Transport {
  constructor(app, player, panel) {
    this.app = app;
    this.player = player;
    const button = (name, label, title, action) =>
      h("button", { type: "button", "aria-label": title, title, "data-key": name, on: { click: action } }, label);
    this.play = button("play", "▶", "Play (space)", () => player.toggle());
    this.unit = h(
      "select",
      { "aria-label": "Kind of step (u)", id: "unit", on: { change: () => this.choose(this.unit.value) } },
      KINDS.map((kind) => h("option", { value: kind }, kind === "moment" ? "any moment" : kind)),
    );
    this.speed = h("output", { class: "speed" });
    this.invalidation = button(
      "invalidation",
      [h("i", { class: "lost-mark" }), "next invalidation"],
      "To the next invalidation, red on the time line (i)",
      () => app.step("invalidation", 1),
    );
    this.position = h("output", { class: "position" });
    fill(
      panel,
      h(
        "div",
        { class: "group" },
        button("first", "|◀", "To the beginning (Home)", () => app.seek(0)),
        button("back", "◀ back", "Step back (←)", () => app.step(app.unit, -1)),
        button("next", "next ▶", "Step forward (→)", () => app.step(app.unit, 1)),
        button("last", "▶|", "To the end (End)", () => app.seek(app.history.moments.length)),
      ),
      h("label", { class: "group" }, "step by", this.unit),
      h(
        "div",
        { class: "group" },
        this.play,
        button("slower", "−", "Slower (−)", () => player.faster(-1)),
        this.speed,
        button("faster", "+", "Faster (+)", () => player.faster(1)),
      ),
      h(
        "div",
        { class: "group" },
        this.invalidation,
        button("break", "run to breakpoint", "To the next breakpoint (c)", () => app.run?.(1)),
      ),
      this.position,
    );
    app.on((what) => this.draw(what));
  }

  choose(kind) {
    this.app.unit = kind;
    this.unit.value = kind;
    this.app.changed("show");
  }

  next() {
    this.choose(KINDS[(KINDS.indexOf(this.app.unit) + 1) % KINDS.length]);
  }

  draw(what) {
    const { app } = this;
    this.position.textContent = `${app.now(app.time)} · moment ${grouped(app.k)} of ${grouped(app.history.moments.length)}`;
    if (what === "time") return;
    this.play.textContent = app.playing ? "❚❚ pause" : "▶ play";
    this.play.setAttribute("aria-pressed", String(app.playing));
    this.speed.textContent = this.player.text;
    if (this.unit.value !== app.unit) this.unit.value = app.unit;
    if (what !== "show") this.say();
  }

  say() {
    const { app } = this;
    const text = sentence(app, app.moment);
    byId("now-time").textContent = app.now(app.history.timeAt(app.k));
    byId("now-text").textContent = text;
    byId("now").classList.toggle("lost", Boolean(app.moment?.lost));
    if (!app.playing) byId("live-region").textContent = `${app.now(app.time)}. ${text}`;
  }
}
