// SPDX-License-Identifier: BSD-3-Clause
// The top row: script, machine, protocol, and buttons that concern the whole page.
import { byId, fill, h } from "./dom.js";

export class Header {
  constructor(page) {
    this.page = page;
    const { app } = page;
    page.theme = () => this.theme();
    fill(
      byId("tools"),
      this.button("Units", "times in cycles or ns (y)", () => {
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
    byId("script").textContent = trace.script;
    byId("script").title = trace.script;
    byId("facts").textContent = `${trace.machine} · ${trace.protocol}`;
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  }
}
