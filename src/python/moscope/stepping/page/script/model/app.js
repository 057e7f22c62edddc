// SPDX-License-Identifier: BSD-3-Clause
// The page's one store: the history, the position, what is shown of it. Views register with `on` and draw when it changes.
import { Fold } from "./fold.js";
import { cellKey } from "./history.js";

const FORMATS = [0, 1, 2].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

/** A number as people read it: with commas between thousands, and up to two decimals. */
export function grouped(value, digits = 0) {
  return FORMATS[digits].format(value);
}

export const KINDS = ["transition", "message", "access", "invalidation", "moment"];

export class App {
  constructor(history, settings) {
    this.settings = settings;
    this.listeners = [];
    this.unit = "transition";
    this.inCycles = true;
    this.hiddenLines = new Set();
    this.place = { controller: "", chip: "" };
    this.breakpoints = [];
    this.playing = false;
    this.branches = [{ name: "first", history, from: 0, at: history.start }]; // histories of a session
    this.branch = 0; // the one shown
    this.other = 0; // the one that it is compared with
    this.load(history);
  }

  /** Shows a history of the session at a time. */
  show(branch, time) {
    this.branch = branch;
    this.playing = false;
    this.load(this.branches[branch].history);
    this.changed("history");
    this.seek(this.history.countAt(time));
    this.moveTo(time); // a time between moments stays the present one: what was added at it is not later
  }

  load(history) {
    this.history = history;
    if (!history.trace.transitions.length) this.unit = "access"; // an episode of a run
    this.fold = new Fold(history);
    this.k = 0;
    this.time = history.start;
    this.access = null; // the selected access, by number
    this.hits = null; // moments that a search or a click on a cell found
  }

  on(listener) {
    this.listeners.push(listener);
  }

  /** `what`: "position", "time" (within a position, while playing), "show" (filters, selection, units) or "history". */
  changed(what) {
    for (const listener of this.listeners) listener(what);
  }

  get moment() {
    return this.k > 0 ? this.history.moments[this.k - 1] : null;
  }

  seek(k) {
    this.k = Math.max(0, Math.min(Math.round(k), this.history.moments.length));
    this.time = this.history.timeAt(this.k);
    this.fold.seek(this.k);
    this.changed("position");
  }

  /** A time between moments, while playing or dragging. */
  moveTo(time) {
    const { history } = this;
    this.time = Math.max(history.start, Math.min(time, history.end));
    const k = history.countAt(this.time);
    if (k !== this.k) {
      this.k = k;
      this.fold.seek(k);
      this.changed("position");
    } else this.changed("time");
  }

  /** Whether a filter hides anything. */
  get filtered() {
    return this.hiddenLines.size > 0 || this.place.controller !== "" || this.place.chip !== "";
  }

  shows(moment) {
    if (this.hiddenLines.has(moment.line)) return false;
    const { controller, chip } = this.place;
    if (controller && !moment.places.includes(controller)) return false;
    return chip === "" || moment.places.some((name) => String(this.history.controllers.get(name)?.chip) === chip);
  }

  isOf(moment, kind) {
    if (!this.shows(moment)) return false;
    switch (kind) {
      case "message":
        return moment.kind === "send" || moment.kind === "deliver";
      case "access":
        return moment.kind === "issue" || moment.kind === "done";
      case "invalidation":
        return Boolean(moment.lost);
      case "moment":
        return true;
      default:
        return moment.kind === kind;
    }
  }

  /** The position after the next (dir 1) or previous (dir -1) moment of a kind; null if there is none. */
  find(kind, dir, from = this.k) {
    const { moments } = this.history;
    if (dir > 0) {
      for (let i = from; i < moments.length; i += 1) if (this.isOf(moments[i], kind)) return i + 1;
    } else {
      for (let i = from - 2; i >= 0; i -= 1) if (this.isOf(moments[i], kind)) return i + 1;
    }
    return null;
  }

  step(kind, dir) {
    if (!KINDS.includes(kind)) {
      this.say(`There is no kind of step called ${kind}: expected ${KINDS.slice(0, -1).join(", ")} or ${KINDS.at(-1)}.`);
      return false;
    }
    const k = this.find(kind, dir);
    if (k !== null) this.seek(k);
    else if (dir < 0 && kind !== "invalidation") this.seek(0);
    else {
      this.changed("show");
      const where = this.filtered ? " that the filters show" : "";
      this.say(`There is no ${dir > 0 ? "further" : "earlier"} ${kind}${where}.`);
    }
    return k !== null;
  }

  /** Where the step to the present position began: what differs from there is marked as changed. */
  get previous() {
    return this.find(this.unit, -1) ?? 0;
  }

  /**
   * What the last step changed. `cells`: state before, by cell; `touched`: cells; `kinds`: cell and kind of change; `replaced`: the line
   * that lost its way to the cell's line; `bytes`: the bytes of a line before.
   */
  stepChanges() {
    const { history, fold } = this;
    const held = this.lastChanges;
    if (held && held.history === history && held.k === this.k && held.from === this.previous) return held.step;
    const step = { cells: new Map(), touched: new Set(), kinds: new Set(), replaced: new Map(), bytes: new Map() };
    const from = this.previous;
    const wrote = new Set();
    for (let i = from; i < this.k; i += 1) {
      const moment = history.moments[i];
      if (moment.kind === "transition") {
        const t = history.trace.transitions[moment.transition];
        const key = cellKey(t.base, t.controller);
        if (!step.cells.has(key)) step.cells.set(key, t.state);
        step.touched.add(key);
      }
      for (const change of moment.changes) {
        const key = cellKey(change.line, change.controller);
        if (change.kind === "bytes") wrote.add(change.line);
        else step.touched.add(key);
        step.kinds.add(`${key} ${change.kind}`);
        if (change.replaced) step.replaced.set(key, change.replaced);
      }
    }
    if (wrote.size) {
      const before = fold.seek(from).bytes;
      for (const line of wrote) step.bytes.set(line, before[line] ? structuredClone(before[line]) : null);
      fold.seek(this.k);
    }
    for (const line of Object.keys(fold.state.bytes)) if (!step.bytes.has(line)) step.bytes.set(line, fold.state.bytes[line]);
    this.lastChanges = { history, k: this.k, from, step };
    return step;
  }

  /** A notice for the user, read out by screen readers. */
  say(text) {
    this.notice?.(text);
  }

  shownLines() {
    return this.history.lines.filter((line) => !this.hiddenLines.has(line.address));
  }

  /** A duration or a time in the unit that the user chose; times count from the first issue. */
  text(fs, withUnit = true) {
    const value = this.inCycles ? this.history.cycles(fs) : fs / 1e6;
    const digits = this.inCycles ? 1 : 2;
    return grouped(value, digits) + (withUnit ? (this.inCycles ? " cycles" : " ns") : "");
  }

  now(fs, withUnit = true) {
    return this.text(fs - this.history.start, withUnit);
  }
}
