// SPDX-License-Identifier: BSD-3-Clause
// Classes of colour: one per line in play, one per permission. The style sheet gives each a light and a dark value.

const LINE_COLOURS = 6;

export function lineClass(history, address) {
  const line = history.lineByAddress.get(address);
  return `line${line ? line.index % LINE_COLOURS : 0}`;
}

export function lineName(history, address) {
  return history.lineByAddress.get(address)?.name || address;
}

const CLASSES = {
  Read_Write: "writable",
  Read_Only: "readable",
  Busy: "busy",
  Invalid: "empty",
  NotPresent: "empty",
  Maybe_Stale: "elsewhere",
  Backing_Store: "busy",
};
const WORDS = {
  Read_Write: "may be read and written",
  Read_Only: "may be read",
  Busy: "waits: a transaction is under way",
  Invalid: "no copy",
  NotPresent: "no copy",
  Maybe_Stale: "memory may be out of date: a cache may have newer data",
  Backing_Store: "memory is current",
};

/** The class of a controller's state. A home's permission is that of memory: its states have one look, dashed where it waits. */
export function stateClass(history, controller, state) {
  if (history.isHome(controller))
    return history.permission(history.controllers.get(controller).machine, state) === "Busy" ? "home busy" : "home";
  return CLASSES[history.permission(history.controllers.get(controller)?.machine, state)] || "empty";
}

/** What a state means: the protocol's own description, and what the permission allows. */
export function stateMeaning(history, machine, state) {
  const described = history.protocol?.machines?.find?.((m) => m.type === machine)?.states.find((one) => one.name === state);
  const permission = WORDS[history.permission(machine, state)] || "";
  return [described?.description, permission].filter(Boolean).join("; ");
}
