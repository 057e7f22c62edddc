// SPDX-License-Identifier: BSD-3-Clause
// The keyboard: every action has a key, and the list of keys is a dialog.
import { byId, fill, h } from "../dom.js";

const GLOSSARY = [
  ["home", "the node whose memory has the line; it orders the transactions of the line"],
  ["home agent", "the part of a home that handles requests"],
  ["probe", "a message that asks a cache about a line; an invalidating probe takes its copy"],
  ["probe filter", "the home's table of the lines that caches hold, with the chip of the owner"],
  ["Owner=L3Cache-N", "a cache of chip N owns the line: the L3 or one of the cores; the home knows only the chip"],
  ["requestor", "the core or device that issued the access"],
  ["invalidation", "a cache loses its copy because another core or device wants the line"],
  ["crossbar", "connects cores, L3, home and links of a chip"],
  ["credits", "rights to send to the next buffer, one for each free place; a message waits for one"],
  ["pending transaction", "the fields in which a controller records a transaction until it ends"],
  ["event", "what a message or an access means to a controller; state and event select a transition"],
  ["I, NP, other states", "the state panel and the transition table describe each"],
];

export class Keys {
  constructor(dialog) {
    this.dialog = dialog;
    this.bindings = [];
    this.byPointer = false;
    document.addEventListener("pointerdown", () => this.pointed(), true);
    document.addEventListener("keydown", (event) => this.pressed(event));
    document.addEventListener("change", () => this.chosen());
  }

  pointed() {
    this.byPointer = true;
  }

  /** A list in which the pointer has chosen gives the keys back to the page. */
  chosen() {
    const { activeElement } = document;
    if (this.byPointer && activeElement?.matches("select") && !activeElement.closest("dialog")) activeElement.blur();
  }

  /** `keys`: as `event.key` gives them; `shown`: as the list shows them. */
  bind(keys, shown, text, action) {
    this.bindings.push({ keys, shown, text, action });
  }

  pressed(event) {
    this.byPointer = false;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target } = event;
    const arrow = event.key === "ArrowLeft" || event.key === "ArrowRight"; // in a list, ↑ and ↓ choose
    if (target.closest(arrow ? "input:not([type=checkbox]), textarea" : "input:not([type=checkbox]), textarea, select")) {
      if (event.key === "Escape") {
        if (target.type === "search") event.preventDefault(); // Chromium would empty it
        target.blur();
      }
      return;
    }
    if (event.key === " " && target.closest("button, a, input, [role=button]")) return;
    const found = this.bindings.find((one) => one.keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.action();
  }

  show() {
    fill(
      this.dialog,
      h("h2", null, "Keys"),
      h(
        "table",
        null,
        h(
          "tbody",
          null,
          this.bindings.map((one) =>
            h(
              "tr",
              null,
              h(
                "th",
                { scope: "row" },
                one.shown.split(" ").map((key) => h("kbd", null, key)),
              ),
              h("td", null, one.text),
            ),
          ),
        ),
      ),
      h("p", null, "Tab moves between buttons, Enter presses one. Page Up and Page Down scroll the panel that a number key opened."),
      h("h2", null, "Words"),
      h(
        "dl",
        null,
        GLOSSARY.map(([word, meaning]) => [h("dt", null, word), h("dd", null, meaning)]),
      ),
      h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close (Esc)")),
    );
    this.dialog.showModal();
    this.dialog.scrollTop = 0; // the focus is on the button at the end
  }
}

/** The bindings of the page. `page` holds its parts, see main.js. */
export function bindKeys(keys, page) {
  const { app, player, transport, stage, side } = page;
  const steps = [
    ["t", "transition"],
    ["m", "message"],
    ["a", "access"],
    ["i", "invalidation"],
  ];
  keys.bind(["ArrowRight"], "→", "next step of the chosen kind", () => app.step(app.unit, 1));
  keys.bind(["ArrowLeft"], "←", "previous step of the chosen kind", () => app.step(app.unit, -1));
  for (const [key, kind] of steps) {
    keys.bind([key], key, `next ${kind}`, () => app.step(kind, 1));
    keys.bind([key.toUpperCase()], `⇧${key}`, `previous ${kind}`, () => app.step(kind, -1));
  }
  keys.bind(["."], ".", "next moment of any kind", () => app.step("moment", 1));
  keys.bind([","], ",", "previous moment of any kind", () => app.step("moment", -1));
  keys.bind(["u"], "u", "change the kind of step", () => transport.next());
  keys.bind([" "], "space", "play, pause", () => player.toggle());
  keys.bind(["+", "="], "+", "play faster", () => player.faster(1));
  keys.bind(["-"], "−", "play slower", () => player.faster(-1));
  keys.bind(["Home"], "Home", "to the beginning", () => app.seek(0));
  keys.bind(["End"], "End", "to the end", () => app.seek(app.history.moments.length));
  keys.bind(["c"], "c", "run to the next breakpoint", () => app.run(1));
  keys.bind(["C"], "⇧c", "run back to the previous breakpoint", () => app.run(-1));
  for (const [i, [id, label]] of [
    ...stage.tabs.map((tab) => [...tab, stage]),
    ...side.tabs.map((tab) => [...tab, side]),
  ].entries()) {
    const tabs = i < stage.tabs.length ? stage : side;
    keys.bind([String(i + 1)], String(i + 1), `show: ${label.toLowerCase()}`, () => {
      tabs.select(id);
      const panel = byId(id);
      byId(`tab-${id}`).scrollIntoView(); // on a narrow page, the panels are below each other
      (panel.querySelector("[data-scroll]") ?? panel).focus({ preventScroll: true }); // page up and down scroll it
    });
  }
  keys.bind(["/"], "/", "search", () => byId("search").focus());
  keys.bind(["n"], "n", "next result of the search", () => page.search.go(1));
  keys.bind(["N"], "⇧n", "previous result of the search", () => page.search.go(-1));
  keys.bind(["x"], "x", "select the next access", () => page.accesses.next(1));
  keys.bind(["X"], "⇧x", "select the previous access", () => page.accesses.next(-1));
  keys.bind(["z"], "z", "zoom into the sequence diagram", () => page.sequence.zoom(1.4));
  keys.bind(["Z"], "⇧z", "zoom out", () => page.sequence.zoom(1 / 1.4));
  keys.bind(["w"], "w", "make the right panel wider or narrower", () => document.body.classList.toggle("wide-side"));
  keys.bind(["y"], "y", "times in cycles or ns", () => {
    app.inCycles = !app.inCycles;
    app.changed("show");
    app.changed("position");
  });
  keys.bind(["o"], "o", "next part of an example's text", () => page.notes.go(1));
  keys.bind(["O"], "⇧o", "previous part of an example's text", () => page.notes.go(-1));
  if (page.live) {
    keys.bind(["f"], "f", "fork the history at this moment", () => page.live.fork());
    keys.bind(["s"], "s", "add an access at this moment", () => page.live.askCore());
    keys.bind(["e"], "e", "delay a message under way", () => page.live.askDelays());
    keys.bind(["g"], "g", "open an example with its text", () => page.live.askExample());
    keys.bind(["h"], "h", "show the next history of the session", () =>
      app.show((app.branch + 1) % app.branches.length, app.time),
    );
  }
  keys.bind(["l"], "l", "copy a link to this moment", () => page.link.copy());
  keys.bind(["d"], "d", "light, dark", () => page.theme());
  keys.bind(["?"], "?", "this list", () => keys.show());
}
