// SPDX-License-Identifier: BSD-3-Clause
// Moments and accesses in sentences: subject first, the field's terms.
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
  if (message.from.startsWith("DRAM")) return message.type === "MEMORY_READ" ? "data from DRAM" : "write done";
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

/** One sentence about a moment. */
export function sentence(app, moment) {
  const { history } = app;
  const { trace } = history;
  if (!moment) return "The beginning: no access has been issued.";
  const access = trace.accesses[moment.access];
  const name = lineName(history, moment.line);
  if (moment.kind === "change") return `${moment.places.join(", ") || "An access"} changes ${name} without a transition.`;
  if (moment.kind === "issue") return `Core ${access.core} issues the ${opName(access.op)} of ${access.line || name}.`;
  if (moment.kind === "done") {
    return `Core ${access.core}'s ${opName(access.op)} of ${access.line || name} is done after ${app.text(access.latency_fs)}.`;
  }
  if (moment.kind === "transition") return transitionSentence(app, moment);
  const message = trace.messages[moment.message];
  const what = `${messageName(message)} for ${name}`;
  if (moment.kind === "send") {
    const last = Math.max(...message.deliveries.map((d) => d.at));
    const ways = message.hops.length ? ` over link ${linksOf(message)}` : "";
    const arrives = message.deliveries.length ? `; it arrives ${app.text(last - message.sent)} later` : "";
    if (message.structure === "RubyRequest") return `Core ${access.core} looks up ${name} in its caches (${message.type}).`;
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
  return ` Invalidation: ${of} loses its copy because core ${access.core} ${verb}.`;
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
      return `core ${access.core} issues ${access.op} ${access.line}`;
    case "done":
      return `core ${access.core}: ${access.op} ${access.line} done`;
    case "transition": {
      const t = trace.transitions[moment.transition];
      return `${t.controller} ${t.event}: ${t.state} → ${t.next}`;
    }
    case "send":
      return `${message.from} → ${receivers(message)}: ${messageName(message)}`;
    case "deliver":
      return `${message.deliveries[moment.delivery].to} receives ${messageName(message)}`;
    default: {
      const hop = message.hops[moment.hop];
      return `${messageName(message)} ${moment.kind === "depart" ? "enters" : "leaves"} link ${hop.from}→${hop.to}`;
    }
  }
}

/** Why an access took its time, as a sentence: who had the line, what had to be sent, and where most of the time went. */
export function reason(app, access) {
  const { history } = app;
  const parts = [...access.segments].sort((a, b) => b.fs - a.fs);
  const top = parts[0];
  const crossings = access.hops === 0 ? "crosses no link" : `crosses ${access.hops} link${access.hops > 1 ? "s" : ""}`;
  const label = (segment) => app.settings.segments[segment.name] || segment.name;
  const share = top ? Math.round((100 * top.fs) / (access.latency_fs || 1)) : 0;
  const most = top ? ` Most of the ${app.text(access.latency_fs)} go to: ${label(top)}, ${app.text(top.fs)} (${share} %).` : "";
  const lost = history.moments.filter((moment) => moment.lost && moment.access === access.id);
  const controllerOf = (moment) => history.controllers.get(history.trace.transitions[moment.transition].controller);
  const losers = [...new Set(lost.map((moment) => `core ${controllerOf(moment).core}`))];
  const invalidated = losers.length
    ? ` It invalidates the copy of ${losers.length > 4 ? `${losers.length} cores` : losers.join(", ")}.`
    : "";
  return `${supplier(access)} The chain of messages that it waits for ${crossings}.${invalidated}${most}`;
}

function supplier(access) {
  const where = access.supplier_chip === null || access.supplier_chip === undefined ? "" : ` on chip ${access.supplier_chip}`;
  const state = access.supplier_state ? `, in state ${access.supplier_state}` : "";
  if (access.supplier === "L1Cache" && access.supplier_number !== access.core)
    return `The data come from core ${access.supplier_number}'s caches${where}${state}.`;
  if (access.supplier === "L1Cache" || access.supplier === "own") return "The core's own caches have the line.";
  if (access.supplier === "Directory")
    return `The data come from node ${access.supplier_number} (home state ${access.supplier_state}).`;
  return `The data come from ${access.supplier}-${access.supplier_number}${state}.`;
}
