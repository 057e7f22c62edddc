// SPDX-License-Identifier: BSD-3-Clause
// Filters by line, controller and chip, and the list of breakpoints with a form that adds one.
import { BREAKPOINTS, choices, describe, nextStop } from "../model/breakpoints.js";
import { lineClass } from "../model/colours.js";
import { byId, fill, h } from "../dom.js";

export class FiltersView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.kind = "state";
    app.stopBetween = (from, to) => nextStop(app, from, to);
    app.run = (dir) => this.run(dir);
    app.on((what) => {
      if (what === "history" || what === "show") this.draw();
    });
  }

  run(dir) {
    const { app } = this;
    const k = dir > 0 ? nextStop(app, app.k, app.history.moments.length) : nextStop(app, app.k - 2, 0, -1);
    if (k !== null) {
      app.seek(k);
      app.say(`Breakpoint: ${app.moment ? describeAt(app) : ""}`);
    } else
      app.say(
        app.breakpoints.some((point) => point.on)
          ? `No ${dir > 0 ? "later" : "earlier"} moment meets a breakpoint.`
          : "No breakpoint is set: see Filters and breakpoints.",
      );
  }

  draw() {
    this.drawNote();
    if (this.panel.hidden) return;
    fill(this.panel, this.lines(), this.places(), h("h3", null, "Breakpoints"), this.points(), this.form());
  }

  /** Above every panel: that a filter is on, and a button that ends it. */
  drawNote() {
    const { app } = this;
    const all = () => {
      app.hiddenLines.clear();
      app.place = { controller: "", chip: "" };
      app.changed("show");
      app.changed("position");
    };
    const button = h("button", { type: "button", on: { click: all } }, "Show all");
    fill(byId("filtered"), app.filtered && ["Filters hide lines, controllers or chips.", button]);
  }

  lines() {
    const { app } = this;
    return h(
      "section",
      null,
      h("h3", null, "Lines"),
      h(
        "ul",
        { class: "plain checks" },
        app.history.lines.map((line) => {
          const box = h("input", {
            type: "checkbox",
            checked: !app.hiddenLines.has(line.address),
            "data-key": `line ${line.address}`,
          });
          box.addEventListener("change", () => {
            if (box.checked) app.hiddenLines.delete(line.address);
            else app.hiddenLines.add(line.address);
            app.changed("show");
            app.changed("position");
          });
          return h(
            "li",
            null,
            h(
              "label",
              null,
              box,
              h("i", { class: `dot ${lineClass(app.history, line.address)}` }),
              line.name,
              line.name !== line.address && h("small", null, line.address),
            ),
          );
        }),
      ),
    );
  }

  places() {
    const { app } = this;
    const used = [...new Set(app.history.moments.flatMap((moment) => moment.places))].sort((a, b) =>
      a.localeCompare(b, "en", { numeric: true }),
    );
    const pick = (label, key, values) => {
      const select = h(
        "select",
        { "data-key": `place ${key}` },
        h("option", { value: "" }, "all"),
        values.map(([value, text]) => h("option", { value, selected: app.place[key] === value }, text)),
      );
      select.addEventListener("change", () => {
        app.place = { ...app.place, [key]: select.value };
        app.changed("show");
        app.changed("position");
      });
      return h("label", { class: "field" }, label, select);
    };
    return h(
      "section",
      null,
      h("h3", null, "Places"),
      pick(
        "controller",
        "controller",
        used.map((name) => [name, name]),
      ),
      pick(
        "chip",
        "chip",
        app.history.machine.chips.map((c) => [String(c.chip), `chip ${c.chip}`]),
      ),
      h("p", { class: "hint" }, "Steps, states and the time line show only what the filters let through."),
    );
  }

  points() {
    const { app } = this;
    if (!app.breakpoints.length)
      return h("p", { class: "hint" }, "None. Playing stops at breakpoints; c runs to the next, ⇧c back to the previous one.");
    return h(
      "ul",
      { class: "plain" },
      app.breakpoints.map((point, i) => {
        const box = h("input", { type: "checkbox", checked: point.on, "data-key": `point ${i}` });
        box.addEventListener("change", () => {
          point.on = box.checked;
        });
        const remove = h(
          "button",
          {
            type: "button",
            "data-key": `remove ${i}`,
            "aria-label": `remove breakpoint: ${describe(app, point)}`,
            on: {
              click: () => {
                app.breakpoints.splice(i, 1);
                app.changed("show");
              },
            },
          },
          "remove",
        );
        return h("li", { class: "point" }, h("label", null, box, describe(app, point)), remove);
      }),
    );
  }

  form() {
    const { app } = this;
    const kind = h(
      "select",
      { "aria-label": "Kind of breakpoint", "data-key": "kind" },
      Object.entries(BREAKPOINTS).map(([name, one]) => h("option", { value: name, selected: name === this.kind }, one.label)),
    );
    kind.addEventListener("change", () => {
      this.kind = kind.value;
      this.draw();
    });
    const fields = BREAKPOINTS[this.kind].fields.map((field) =>
      h(
        "label",
        { class: "field" },
        field === "bound" ? "cycles" : field,
        field === "bound"
          ? h("input", { name: field, type: "number", min: "0", value: "200" })
          : h(
              "select",
              { name: field },
              h("option", { value: "" }, field === "state" ? "any other" : "any"),
              choices(app.history, field).map(([value, text]) => h("option", { value }, text)),
            ),
      ),
    );
    const form = h(
      "form",
      { class: "new-point" },
      h("label", { class: "field" }, "stop when", kind),
      fields,
      h("button", { "data-key": "add" }, "add breakpoint"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      app.breakpoints.push({ kind: this.kind, on: true, ...Object.fromEntries(new FormData(form)) });
      app.changed("show");
    });
    return form;
  }
}

function describeAt(app) {
  const stop = app.breakpoints.find(
    (point) => point.on && nextStop({ ...app, history: app.history, breakpoints: [point] }, app.k - 1, app.k) !== null,
  );
  return stop ? describe(app, stop) : "";
}
