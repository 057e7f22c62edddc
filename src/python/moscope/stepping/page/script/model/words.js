// SPDX-License-Identifier: BSD-3-Clause
// Moments and accesses in sentences: subject first, the field's terms.
import { chainOf } from "./chain.js";
import { lineName } from "./colours.js";

const OPS = {
  ld: "load",
  st: "store",
  if: "instruction fetch",
  rmw: "locked read-modify-write",
  flush: "flush",
  nt: "non-temporal store",
  ldu: "uncached load",
};

/** Who issues an access: a core, or a device. */
export function who(access) {
  return access.device !== undefined && access.device !== null ? `device ${access.device}` : `core ${access.core}`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

export function opName(op) {
  return OPS[op] || op;
}

export function messageKind(history, message) {
  const virtual =
    message.vnet === null
      ? message.from.startsWith("DRAM") || message.structure === "MemoryMsg"
        ? "memory"
        : "core"
      : history.trace.vnets[message.vnet];
  return virtual + (message.data ? ", with data" : "");
}

/** What a message is called: requests to DRAM and its answers by what they do. */
export function messageName(message) {
  if (message.structure !== "MemoryMsg") return message.type;
  if (message.from.startsWith("DRAM")) return message.type === "MEMORY_READ" ? "DRAM data" : "write done";
  return message.type === "MEMORY_READ" ? "DRAM read" : "DRAM write";
}

export function receivers(message) {
  const names = message.deliveries.map((d) => d.to);
  if (names.length <= 3) return names.join(", ");
  return `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`;
}

export function linksOf(message) {
  return message.hops.map((hop) => `${hop.from}→${hop.to}`).join(", ");
}

/** The links of a message in a sentence: "link 0→1", or "links 0→1, 1→3". */
export function overLinks(message) {
  return `link${message.hops.length > 1 ? "s" : ""} ${linksOf(message)}`;
}

/** One sentence about a moment. */
export function sentence(app, moment) {
  const { history } = app;
  const { trace } = history;
  if (!moment) return "The beginning: no access has been issued. → steps forward, ? lists all keys.";
  const access = trace.accesses[moment.access];
  const name = lineName(history, moment.line);
  if (moment.kind === "change") return `${moment.places.join(", ") || "An access"} changes ${name} without a transition.`;
  if (moment.kind === "issue") {
    const where = access.run?.function ? ` in ${access.run.function}` : "";
    return `${capital(who(access))} issues the ${opName(access.op)} of ${access.line || name}${where}.`;
  }
  if (moment.kind === "done") {
    return `${capital(who(access))}'s ${opName(access.op)} of ${access.line || name} is done after ${app.text(access.latency_fs)}.`;
  }
  if (moment.kind === "transition") return transitionSentence(app, moment);
  const message = trace.messages[moment.message];
  const what = `${messageName(message)} for ${name}`;
  if (moment.kind === "send") {
    const last = Math.max(...message.deliveries.map((d) => d.at));
    const ways = message.hops.length ? ` over ${overLinks(message)}` : "";
    const arrives = message.deliveries.length ? `; it arrives ${app.text(last - message.sent)} later` : "";
    if (message.structure === "RubyRequest") return `${capital(who(access))} looks up ${name} in its caches (${message.type}).`;
    return `${message.from} sends ${what} to ${receivers(message)} (${messageKind(history, message)})${ways}${arrives}.`;
  }
  if (moment.kind === "deliver") return `${message.deliveries[moment.delivery].to} receives ${what} from ${message.from}.`;
  const hop = message.hops[moment.hop];
  if (moment.kind === "depart") {
    return `${what} leaves chip ${hop.from} on link ${hop.from}→${hop.to}; the link takes ${app.text(hop.arrive - hop.depart)}.`;
  }
  return `${what} reaches chip ${hop.to} by link ${hop.from}→${hop.to}.`;
}

function transitionSentence(app, moment) {
  const { history } = app;
  const t = history.trace.transitions[moment.transition];
  const name = lineName(history, moment.line);
  const change = t.next === t.state ? `stays in ${t.state}` : `goes from ${t.state} to ${t.next}`;
  const access = history.trace.accesses[t.access];
  const lost = moment.lost ? invalidation(history, t, access) : "";
  return `${t.controller}: event ${t.event} on ${name}; it ${change}.${lost}`;
}

function invalidation(history, transition, access) {
  const of = `core ${history.controllers.get(transition.controller).core}`;
  if (!access) return ` Invalidation: ${of} loses its copy.`;
  const verb = access.op === "ld" || access.op === "if" ? "reads" : "writes";
  return ` Invalidation: ${of} loses its copy because ${who(access)} ${verb}.`;
}

/** A place in plain words: core 6, L3 of chip 1, home 0. */
export function placeName(history, name) {
  const controller = history.controllers.get(name);
  if (!controller) return name;
  if (controller.core !== null) return `core ${controller.core}`;
  if (history.isHome(name)) return `home ${controller.version}`;
  if (/^L[23]Cache$/.test(controller.machine)) return `${controller.machine.slice(0, 2)} of chip ${controller.chip}`;
  return name.replace(/^(DRAM|DMA)-/, "$1 ");
}

/** A message or transition on the way of an access: plain places, the protocol's names for the rest. */
export function onWay(app, moment, access, first) {
  const { history } = app;
  if (moment.kind === "issue") return `${who(access)} issues the ${opName(access.op)}`;
  if (moment.kind === "done") return `the ${opName(access.op)} is done`;
  if (moment.kind === "send") {
    const message = history.trace.messages[moment.message];
    const to = message.deliveries.map((d) => placeName(history, d.to));
    const others = to.length > 3 ? `${to.slice(0, 2).join(", ")} and ${to.length - 2} more` : to.join(", ");
    return `${placeName(history, message.from)} → ${others}: ${messageName(message)}`;
  }
  if (moment.kind !== "transition") return brief(app, moment);
  const t = history.trace.transitions[moment.transition];
  const change = t.state === t.next ? `stays in ${t.state}` : `${t.state} → ${t.next}`;
  return `${placeName(history, t.controller)} ${outcome(history, t, access, moment, first)}: ${change}`;
}

/** What a transition means for the access. */
function outcome(history, t, access, moment, first) {
  const controller = history.controllers.get(t.controller);
  const had = history.readable(t.machine, t.state);
  const own = controller.core !== null && controller.core === access.core;
  if (moment.lost) return "gives up its copy";
  if (history.isHome(t.controller)) return first ? "looks up who has the line" : `handles ${t.event}`;
  if (controller.role === "dma") return first ? "starts the device's access" : `handles ${t.event}`;
  if (own && first) return had ? "finds its copy" : "finds no copy in its caches";
  if (own && !had && history.readable(t.machine, t.next)) return "receives the line";
  if (controller.core === null && controller.chip === chipOf(history, access) && first && !had) return "has no copy";
  return `handles ${t.event}`;
}

function chipOf(history, access) {
  return (history.ofCore.get(access.core) || []).map((name) => history.controllers.get(name).chip)[0];
}

/** An access in plain words, as in "core 6: store A@n0+8"; with more than one operation of one word, as the script writes it. */
export function plainly(access) {
  if (!access.line) return access.text;
  if (access.run) return `${who(access)}: ${opName(access.op)} ${access.text.split(/\s+/).slice(2).join(" ")}`;
  const rest = access.text.split(/\s+/).slice(3).join(" ");
  return `${who(access)}: ${opName(access.op)} ${access.line}${rest ? ` ${rest}` : ""}`;
}

/** Short form, for lists. */
export function brief(app, moment) {
  const { trace } = app.history;
  const access = trace.accesses[moment.access];
  const message = moment.message === undefined || moment.message === null ? null : trace.messages[moment.message];
  switch (moment.kind) {
    case "change":
      return `change of ${lineName(app.history, moment.line)}`;
    case "issue":
      return `${who(access)} issues ${access.op} ${access.line}`;
    case "done":
      return `${who(access)}: ${access.op} ${access.line} done`;
    case "transition": {
      const t = trace.transitions[moment.transition];
      return `${t.controller} ${t.event}: ${t.state} → ${t.next}`;
    }
    case "send":
      if (message.structure === "RubyRequest") return `${who(access)} looks up its caches`;
      return `${message.from} → ${receivers(message)}: ${messageName(message)}`;
    case "deliver":
      return `${message.deliveries[moment.delivery].to} receives ${messageName(message)}`;
    default: {
      const hop = message.hops[moment.hop];
      return `${messageName(message)} ${moment.kind === "depart" ? "enters" : "leaves"} link ${hop.from}→${hop.to}`;
    }
  }
}

/** Why an access took its time: who supplied the data, what it waited for, whose copies it invalidated, where most of the time went. */
export function reason(app, access) {
  const { history } = app;
  const { trace } = history;
  if (!access.supplier) return "The access did not end.";
  if (!trace.messages.length) {
    const links = access.hops
      ? `Its messages cross ${access.hops} link${access.hops > 1 ? "s" : ""}.`
      : "Its messages cross no link.";
    return `${supplier(app, access)} ${links} ${most(app, access)}`;
  }
  const crossings = crossingsOf(history, access);
  const count = access.hops;
  const waits = count
    ? `The access waits for messages over ${count} link${count > 1 ? "s" : ""} (${crossings.join("; ")})`
    : "The access waits for no message over a link";
  const loser = (moment) => `core ${history.controllers.get(trace.transitions[moment.transition].controller).core}`;
  const losers = [...new Set(history.moments.filter((moment) => moment.lost && moment.access === access.id).map(loser))];
  const copies = losers.length > 4 ? `${losers.length} cores` : losers.join(", ");
  const invalidated = losers.length ? ` and invalidates the copy of ${copies}.` : ".";
  return `${supplier(app, access)} ${waits}${invalidated} ${most(app, access)}`;
}

/** The messages of an access's chain that cross links, each as `crossing` says it: by default with its links. */
export function crossingsOf(history, access, crossing = (m) => `${messageName(m)} ${linksOf(m)}`) {
  const messages = chainOf(history, access)
    .filter((moment) => moment.kind === "send")
    .map((moment) => history.trace.messages[moment.message]);
  return messages.filter((m) => m.hops.length).map((m) => crossing(m));
}

function most(app, access) {
  const [top] = [...access.segments].sort((a, b) => b.fs - a.fs);
  if (!top) return "";
  const label = app.settings.segments[top.name] || top.name;
  const share = Math.round((100 * top.fs) / (access.latency_fs || 1));
  return `The largest part of its time is ${label}: ${app.text(top.fs, false)} of ${app.text(access.latency_fs)} (${share} %).`;
}

/** Who supplied the data. A number and a chip are absent if no controller sent the line for this access. */
function supplier(app, access) {
  const { controllers } = app.history;
  const name = `${access.supplier}-${access.supplier_number}`;
  const from = controllers.get(name);
  const state = access.supplier_state ? `, in state ${access.supplier_state}` : "";
  if (access.op === "flush") return "A flush moves no data to the core.";
  if (access.supplier_number === null && access.core === null) return "The home serves the device.";
  if (access.op === "nt" && access.supplier === "own") return "No data is needed: the access writes the whole line.";
  if (access.supplier === "own" || (from && from.core === access.core)) return "The core's own caches have the line.";
  if (access.supplier_number === null) return unnumbered(access);
  if (from && from.core !== null) return `Core ${from.core}'s caches (chip ${from.chip}${state}) supply the data.`;
  if (from && app.history.isHome(name)) return `Home node ${access.supplier_number}${state} supplies the data.`;
  return `${name}${state} supplies the data.`;
}

function leavesTheCore(access) {
  return access.segments.some((segment) => segment.name === "crossbar" || segment.name === "link");
}

function unnumbered(access) {
  if (access.supplier_chip !== null) return `A cache of chip ${access.supplier_chip} supplies the data.`;
  if (access.segments.every((segment) => segment.name === "cache")) return "The core's own caches have the line.";
  if (!leavesTheCore(access)) return "An older access or a prefetch of the core brings the line.";
  if (access.op === "st" || access.op === "rmw")
    return "No data is needed: the core has the line, and waits for permission to write it.";
  return `A controller of the type ${access.supplier} supplies the data.`;
}
