// SPDX-License-Identifier: BSD-3-Clause
// Breakpoints: a line enters a state, an event occurs at a controller, a message of a type is on a link, an access took longer than a
// bound. Playing stops at them; `run` goes to the next one or back to the previous one.

export const BREAKPOINTS = {
  state: { label: "line enters state", fields: ["line", "controller", "state"] },
  event: { label: "event at a controller", fields: ["controller", "event"] },
  message: { label: "message on a link", fields: ["type", "link"] },
  latency: { label: "latency above", fields: ["bound"] },
};

/** Whether a breakpoint stops at a moment. An empty field stands for any value. */
export function stopsAt(history, point, moment) {
  const { trace } = history;
  const is = (wanted, value) => !wanted || wanted === value;
  if (point.kind === "latency") {
    const access = trace.accesses[moment.access];
    return moment.kind === "done" && history.cycles(access.latency_fs) > Number(point.bound || 0);
  }
  if (point.kind === "message") {
    if (moment.kind !== (point.link ? "depart" : "send")) return false;
    const message = trace.messages[moment.message];
    const hop = message.hops[moment.hop];
    return is(point.type, message.type) && (!point.link || point.link === `${hop.from}→${hop.to}`);
  }
  if (moment.kind !== "transition") return false;
  const t = trace.transitions[moment.transition];
  if (!is(point.controller, t.controller)) return false;
  if (point.kind === "event") return is(point.event, t.event);
  return is(point.line, t.base) && is(point.state, t.next) && (!point.state || t.state !== t.next);
}

/** The position after the first moment from `from` (dir 1, exclusive of `to`) at which a breakpoint stops; null if there is none. */
export function nextStop(app, from, to, dir = 1) {
  const active = app.breakpoints.filter((point) => point.on);
  if (!active.length) return null;
  for (let i = from; dir > 0 ? i < to : i >= to; i += dir) {
    const moment = app.history.moments[i];
    if (active.some((point) => stopsAt(app.history, point, moment))) return i + 1;
  }
  return null;
}

export function describe(app, point) {
  const { history } = app;
  const name = point.line ? history.lineByAddress.get(point.line)?.name || point.line : "any line";
  switch (point.kind) {
    case "state":
      return `${name} enters ${point.state || "another state"} at ${point.controller || "any controller"}`;
    case "event":
      return `${point.event || "any event"} at ${point.controller || "any controller"}`;
    case "message":
      return `${point.type || "any message"} ${point.link ? `on link ${point.link}` : "is sent"}`;
    default:
      return `an access took more than ${point.bound || 0} cycles`;
  }
}

/** Values that a field can take in this history: [value, text]. */
export function choices(history, field) {
  const { trace } = history;
  const sorted = (values) =>
    [...new Set(values)].sort((a, b) => a.localeCompare(b, "en", { numeric: true })).map((value) => [value, value]);
  switch (field) {
    case "line":
      return history.lines.map((line) => [line.address, line.name]);
    case "controller":
      return sorted(trace.transitions.map((t) => t.controller));
    case "state":
      return sorted(trace.transitions.map((t) => t.next));
    case "event":
      return sorted(trace.transitions.map((t) => t.event));
    case "type":
      return sorted(trace.messages.map((m) => m.type));
    default:
      return sorted(trace.messages.flatMap((m) => m.hops.map((hop) => `${hop.from}→${hop.to}`)));
  }
}
