// SPDX-License-Identifier: BSD-3-Clause
// The accesses of the script: each with its latency as a bar of segments. A selected access shows what each segment is, why it took its
// time, and the chain of messages that it waited for, each a button that goes to that moment.
import { grouped } from "../model/app.js";
import { chainOf } from "../model/chain.js";
import { lineClass } from "../model/colours.js";
import { fill, h, reveal } from "../dom.js";
import { crossingsOf, linksOf, messageName, onWay, opName, overLinks, plainly, reason, sentence, who } from "../model/words.js";

const DEVICE = 254; // as a writer of a run
const EXPLAINED = {
  responder: "the probed caches look the line up",
  home_queue: "the home is busy with other requests",
};

export class AccessesView {
  constructor(app, panel) {
    this.app = app;
    this.panel = panel;
    this.marked = undefined; // the access of the position that was marked last
    app.on((what) => {
      if (what === "time") return;
      if (what === "position") this.mark();
      else this.draw();
    });
  }

  draw() {
    const { app } = this;
    const { accesses } = app.history.trace;
    const longest = Math.max(1, ...accesses.map((a) => a.latency_fs || 0));
    const shown = accesses.filter((a) => !app.hiddenLines.has(a.base));
    fill(
      this.panel,
      h("h2", null, "Accesses", h("small", null, `${grouped(shown.length)} · latency in ${app.inCycles ? "cycles" : "ns"}`)),
      h("p", { class: "hint" }, "Select an access to see why it took so long.", this.notation(shown)),
      h(
        "ol",
        { class: "accesses" },
        shown.map((a) => this.row(a, longest)),
      ),
    );
    this.mark();
  }

  /** How to read the names of lines, by the first access that has one. */
  notation(accesses) {
    const parts = accesses.map((a) => /^(\w+)@n(\d+)(?:\+(\d+))?/.exec(a.line || "")).filter(Boolean);
    const [, name, home, offset] = parts.find((part) => part[3]) || parts[0] || [];
    if (!name) return null;
    const byte = offset ? `; +${offset} is its byte ${offset}` : "";
    return ` ${name}@n${home} is line ${name} with home node ${home}${byte}.`;
  }

  row(access, longest) {
    const { app } = this;
    const open = app.access === access.id;
    const dot = h("i", { class: `dot ${lineClass(app.history, access.base)}` });
    const head = h(
      "button",
      {
        class: "access",
        "data-key": `access ${access.id}`,
        "aria-expanded": String(open),
        type: "button",
        title: access.text,
        "aria-label": `${who(access)}, ${opName(access.op)} of ${access.line}, ${app.text(access.latency_fs || 0)}`,
        on: { click: () => this.select(open ? null : access.id) },
      },
      h("span", { class: "access-text" }, h("span", { class: "opens" }, open ? "▾ " : "▸ "), dot, plainly(access)),
      h("span", { class: "number" }, access.latency_fs ? app.text(access.latency_fs, false) : "no end"),
      h("span", { class: "bar", style: { width: `${(100 * (access.latency_fs || 0)) / longest}%` } }, this.bar(access)),
    );
    return h("li", { "data-access": access.id, class: open ? "open" : "" }, head, open && this.detail(access));
  }

  bar(access) {
    const total = access.latency_fs || 1;
    return access.segments.map((segment) =>
      h("i", {
        class: `segment ${segment.name}`,
        title: `${this.label(segment)}: ${this.app.text(segment.fs)}`,
        style: { width: `${(100 * segment.fs) / total}%` },
      }),
    );
  }

  label(segment) {
    return this.app.settings.segments[segment.name] || segment.name;
  }

  /** What a segment consists of: the crossings of links one by one, else the segment's description. */
  meaning(access, segment) {
    const { app } = this;
    const onLinks = (m) => m.hops.reduce((sum, hop) => sum + hop.arrive - hop.depart, 0);
    const crossing = (m) => `${messageName(m)}${m.data ? " with the line" : ""} ${linksOf(m)} takes ${app.text(onLinks(m), false)}`;
    const crossings = segment.name === "link" ? crossingsOf(app.history, access, crossing) : [];
    const text = crossings.join("; ") || EXPLAINED[segment.name] || app.settings.meanings?.[segment.name];
    return text && text !== this.label(segment) && h("tr", { class: "meaning" }, h("td", { colspan: 3 }, text));
  }

  select(id) {
    const { app } = this;
    app.access = id;
    app.changed("show");
    if (id === null) return;
    const moment = app.history.moments.find((one) => one.kind === "issue" && one.access === id);
    if (moment && app.moment?.access !== id) app.seek(moment.index + 1);
    reveal(this.panel, this.panel.querySelector("li.open"));
  }

  next(dir) {
    const shown = this.app.history.trace.accesses.filter((a) => !this.app.hiddenLines.has(a.base));
    const at = shown.findIndex((a) => a.id === this.app.access);
    const present = shown.find((a) => a.id === this.app.moment?.access);
    const next = at < 0 ? (present ?? shown.at(dir > 0 ? 0 : -1)) : shown[at + dir];
    if (next) this.select(next.id);
  }

  detail(access) {
    const { app } = this;
    const since = app.inCycles ? "cycles" : "ns";
    const share = (fs) => `${Math.round((100 * fs) / (access.latency_fs || 1))} %`;
    return h(
      "div",
      { class: "detail" },
      h("p", { class: "why" }, reason(app, access)),
      access.run && this.inRun(access),
      access.remarks?.length > 0 && h("p", { class: "remark" }, access.remarks.join("; ")),
      h(
        "table",
        { class: "segments" },
        h("caption", null, "Where the latency went"),
        h(
          "tbody",
          null,
          access.segments.map((segment) => [
            h(
              "tr",
              null,
              h("td", null, h("i", { class: `swatch segment ${segment.name}` }), this.label(segment)),
              h("td", { class: "number" }, app.text(segment.fs, false)),
              h("td", { class: "number" }, share(segment.fs)),
            ),
            this.meaning(access, segment),
          ]),
          h(
            "tr",
            { class: "total" },
            h("td", null, "latency"),
            h("td", { class: "number" }, app.text(access.latency_fs || 0, false)),
            h("td", null),
          ),
        ),
      ),
      !access.run && access.issued !== null && [
        h("h3", null, "Step by step", h("small", null, `${since} since its issue at ${app.now(access.issued, false)}`)),
        h("p", { class: "hint" }, "+ is a message's time, with crossbars and waiting. Between two rows, a controller looks up the line."),
        h("ol", { class: "way-list" }, this.legs(access)),
      ],
    );
  }

  /** Of an access of a run: who waits and who wrote, with function and instruction. */
  inRun(access) {
    const { run } = access;
    const code = `${run.writer_function || "unknown code"} ${run.writer_pc || ""}`;
    const writer = run.writer === null ? "" : run.writer === DEVICE ? "a device" : `core ${run.writer}, ${code}`;
    const rows = [
      ["waits", `${who(access)}, ${run.function || "unknown code"} ${run.pc}`],
      ["process", run.process],
      ["last written by", writer],
      ["class", run.class?.replaceAll("_", " ")],
      ["exposed", this.app.text(run.exposed_fs || 0)],
    ];
    const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
    const row = ([name, value]) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, h("code", null, value)));
    return h("table", { class: "in-run" }, h("caption", null, "Code of the access"), h("tbody", null, shown.map(row)));
  }

  /** Issue, the messages and transitions on the way to the end, done. Each message has a bar on the scale of the latency. */
  legs(access) {
    const { app } = this;
    const start = access.issued;
    const length = access.latency_fs || app.history.end - start || 1;
    const share = (time) => `${(100 * Math.min(1, Math.max(0, (time - start) / length))).toFixed(2)}%`;
    const seen = new Set();
    const isFirst = (moment) => {
      const key = moment.places?.[0];
      const first = moment.kind === "transition" && !seen.has(key);
      if (first) seen.add(key);
      return first;
    };
    return chainOf(app.history, access).map((moment) => {
      const message = moment.kind === "send" ? app.history.trace.messages[moment.message] : null;
      const arrives = message && message.deliveries.length ? Math.max(...message.deliveries.map((d) => d.at)) : null;
      const links = message && message.hops.length ? overLinks(message) : "";
      const attributes = {
        type: "button",
        class: `leg${moment.lost ? " lost" : ""}`,
        title: sentence(app, moment),
        "data-leg": moment.index,
        "data-key": `leg ${moment.index}`,
        on: { click: () => app.seek(moment.index + 1) },
      };
      const marks = [links && h("em", null, links), moment.lost && h("em", { class: "lost" }, "invalidation")];
      const bar =
        arrives !== null &&
        h("i", {
          class: `leg-bar ${links ? "segment link" : ""}`,
          style: { "--from": share(moment.at), "--to": share(arrives) },
        });
      const text = onWay(app, moment, access, isFirst(moment));
      const took = arrives !== null ? `+${app.text(arrives - message.sent, false)}` : "";
      const at = h("span", { class: "number" }, app.text(moment.at - start, false));
      return h(
        "li",
        null,
        h("button", attributes, at, h("span", null, text, marks), h("span", { class: "number" }, took), bar),
      );
    });
  }

  mark() {
    const { app } = this;
    const current = app.moment;
    for (const row of this.panel.querySelectorAll("li[data-access]")) {
      const id = Number(row.dataset.access);
      row.classList.toggle("pending", Boolean(app.fold.state.pending[id]));
      row.classList.toggle("done", Boolean(app.fold.state.done[id]));
      row.classList.toggle("current", current !== null && current.access === id);
    }
    if (current?.access !== this.marked) reveal(this.panel, this.panel.querySelector(current ? "li.current > .access" : ".access"));
    this.marked = current?.access;
    for (const leg of this.panel.querySelectorAll("[data-leg]")) {
      const is = current !== null && Number(leg.dataset.leg) === current.index;
      leg.classList.toggle("current", is);
      if (is) reveal(this.panel, leg);
    }
  }
}
