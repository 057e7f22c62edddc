// SPDX-License-Identifier: BSD-3-Clause
// The top row: script, machine, protocol, and buttons that concern the whole page.
import { byId, fill, h } from "../dom.js";

export class Header {
  constructor(page) {
    this.page = page;
    const { app } = page;
    page.theme = () => this.theme();
    fill(
      byId("tools"),
      this.button("Copy link", "copy a link to this moment (l)", () => page.link.copy()),
      this.button("Cycles/ns", "times in cycles or ns (y)", () => {
        app.inCycles = !app.inCycles;
        app.changed("show");
        app.changed("position");
      }),
      this.button("Light/dark", "light or dark page (d)", () => this.theme()),
      this.button("Keys ?", "list of keys (?)", () => page.keys.show()),
    );
    app.on((what) => {
      if (what === "history") this.draw();
    });
  }

  button(label, title, action) {
    return h("button", { type: "button", title, on: { click: action } }, label);
  }

  draw() {
    const { trace } = this.page.app.history;
    this.drawBranches();
    byId("script").textContent = trace.script;
    byId("script").title = trace.script;
    byId("facts").textContent = `${trace.machine} · ${trace.protocol}`;
  }

  /** In a session: which of its histories is shown, and a button that forks it. */
  drawBranches() {
    const { app, live } = this.page;
    if (!live) return;
    const pick = h(
      "select",
      { "aria-label": "History shown", "data-key": "branch" },
      app.branches.map((one, i) => h("option", { value: i, selected: i === app.branch }, one.name)),
    );
    pick.addEventListener("change", () => app.show(Number(pick.value), app.time));
    fill(
      byId("branches"),
      this.button("Examples", "open an example with its text (g)", () => live.askExample()),
      pick,
      this.button("Fork here", "a second history from this moment on (f)", () => live.fork()),
    );
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  }
}
