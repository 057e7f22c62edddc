// SPDX-License-Identifier: BSD-3-Clause
// A history document, indexed: controllers, lines, moments, permissions, and what the machine looks like.
import { momentsOf } from "./order.js";

const READABLE = new Set(["Read_Only", "Read_Write"]);

export class History {
  constructor(document) {
    this.document = document;
    this.trace = document.trace;
    this.spec = document.spec || {};
    const clock = this.trace.clock.core_period_fs;
    this.period = clock[0] / clock[1];
    this.recorded = Boolean(document.changes?.length);
    this.hasBytes = Boolean(document.changes?.some((change) => change.kind === "bytes"));
    this.moments = momentsOf(this.trace, document.changes || []);
    this.firstChanges = (document.changes || []).filter((change) => change.transition === null && change.at === 0);
    this.start = this.moments.length ? this.moments[0].at : 0;
    this.end = this.moments.length ? this.moments.at(-1).at : 1;
    this.controllers = new Map(this.trace.controllers.map((c) => [c.name, c]));
    for (const c of document.machine?.controllers || []) this.controllers.set(c.name, { ...c, core: c.core ?? null });
    for (const m of this.trace.messages) for (const name of [m.from, ...m.deliveries.map((d) => d.to)]) this.know(name);
    this.lines = this.linesOf();
    this.lineByAddress = new Map(this.lines.map((line) => [line.address, line]));
    this.machine = machineOf(document, [...this.controllers.values()]);
    this.protocol = document.protocol || null;
    this.initial = this.initialStates();
    this.ofCore = new Map(); // names of a core's controllers
    for (const c of this.controllers.values())
      if (c.core !== null) this.ofCore.set(c.core, [...(this.ofCore.get(c.core) || []), c.name]);
    for (const moment of this.moments) this.complete(moment);
    this.invalidations = this.moments.filter((moment) => moment.lost);
  }

  /** Whether the drawing has a place for a controller: DMA engines only where the trace has them. */
  drawn(controller) {
    return controller.role !== "dma" || this.trace.controllers.some((c) => c.machine === controller.machine);
  }

  isHome(name) {
    const controller = this.controllers.get(name);
    return controller
      ? controller.role
        ? controller.role === "home"
        : controller.core === null && controller.machine === "Directory"
      : false;
  }

  /** A place that only messages name, such as DRAM-0. */
  know(name) {
    if (this.controllers.has(name)) return;
    const version = Number(name.split("-").at(-1)) || 0;
    this.controllers.set(name, { name, machine: name.replace(/-\d+$/, ""), version, chip: version, core: null });
  }

  /** Lines in the order in which they first appear. `name` is the script's, as in A@n0. */
  linesOf() {
    const bytes = 64;
    const found = new Map();
    const add = (address, name, home) => {
      const value = Number(address);
      const base = "0x" + (value - (value % bytes)).toString(16);
      if (!found.has(base))
        found.set(base, { address: base, name: name && !name.startsWith("0x") ? name : base, home, index: found.size });
      return base;
    };
    for (const line of this.document.lines || []) add(line.address, line.name, line.home);
    for (const a of this.trace.accesses) a.base = add(a.address, a.line && a.line.replace(/\+.*/, ""), a.home);
    for (const t of this.trace.transitions) t.base = add(t.address, "", null);
    for (const m of this.trace.messages) m.base = add(m.address, "", null);
    return [...found.values()];
  }

  permission(machine, state) {
    return this.trace.permissions[machine]?.[state] || "";
  }

  readable(machine, state) {
    return READABLE.has(this.permission(machine, state));
  }

  /** State of a controller before its first transition on a line. */
  initialStates() {
    const first = new Map();
    for (const t of this.trace.transitions) {
      const key = cellKey(t.base, t.controller);
      if (!first.has(key)) first.set(key, t.state);
    }
    return first;
  }

  /** Adds to a moment what views ask for: its line, its places, and whether a cache loses the line by it. */
  complete(moment) {
    const { trace } = this;
    if (moment.kind === "change") {
      moment.line = moment.changes[0].line;
      moment.places = moment.changes.map((change) => change.controller).filter(Boolean);
      return;
    }
    if (moment.kind === "transition") {
      const t = trace.transitions[moment.transition];
      moment.line = t.base;
      moment.places = [t.controller];
      const controller = this.controllers.get(t.controller);
      moment.lost =
        controller.core !== null &&
        trace.accesses[t.access]?.core !== controller.core &&
        this.readable(t.machine, t.state) &&
        !this.readable(t.machine, t.next);
    } else if (moment.message !== undefined) {
      const m = trace.messages[moment.message];
      moment.line = m.base;
      moment.places = moment.kind === "deliver" ? [m.deliveries[moment.delivery].to] : [m.from, ...m.deliveries.map((d) => d.to)];
    } else {
      const a = trace.accesses[moment.access];
      moment.line = a.base;
      moment.places = this.ofCore.get(a.core) || [];
    }
  }

  cycles(fs) {
    return fs / this.period;
  }

  /** The number of moments up to and including a time. */
  countAt(time) {
    let low = 0;
    let high = this.moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.moments[middle].at <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  timeAt(k) {
    return k > 0 ? this.moments[k - 1].at : this.start;
  }
}

export function cellKey(line, controller) {
  return `${line} ${controller}`;
}

/** Chips with their cores, and links; from the trace alone where the document has no description of the machine. */
function machineOf(document, controllers) {
  const described = document.machine;
  if (described && described.chips) {
    return {
      chips: described.chips.map((chip) => ({ chip: chip.chip, cores: chip.cores })),
      links: described.links.map((link) => [link.from, link.to]),
    };
  }
  const chips = new Map();
  for (const c of controllers) {
    if (!chips.has(c.chip)) chips.set(c.chip, { chip: c.chip, cores: [] });
    if (c.core !== null && !chips.get(c.chip).cores.includes(c.core)) chips.get(c.chip).cores.push(c.core);
  }
  const links = new Map();
  for (const m of document.trace.messages) {
    for (const hop of m.hops) links.set(`${Math.min(hop.from, hop.to)}-${Math.max(hop.from, hop.to)}`, [hop.from, hop.to]);
  }
  return { chips: [...chips.values()].sort((a, b) => a.chip - b.chip), links: [...links.values()] };
}
