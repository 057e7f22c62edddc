// SPDX-License-Identifier: BSD-3-Clause
// The state after k moments, as a fold of the moments and of the changes that the engine recorded with them. A snapshot is kept every
// INTERVAL moments, so that any position is a copy and at most INTERVAL moments away. A step back is a seek.
import { cellKey } from "./history.js";

const INTERVAL = 128;
const LINE_BYTES = 64;

export class Fold {
  constructor(history) {
    this.history = history;
    this.state = {
      k: 0,
      transitions: 0,
      cells: {},
      fields: {},
      tbes: {},
      ways: {},
      bytes: {},
      flight: {},
      pending: {},
      done: {},
    };
    for (const change of history.firstChanges) this.change(change);
    this.snapshots = [structuredClone(this.state)];
    for (const moment of history.moments) {
      this.apply(moment);
      if (this.state.k % INTERVAL === 0) this.snapshots.push(structuredClone(this.state));
    }
    this.seek(0);
  }

  seek(k) {
    const target = Math.max(0, Math.min(k, this.history.moments.length));
    if (target < this.state.k || target - this.state.k > INTERVAL) {
      this.state = structuredClone(this.snapshots[Math.floor(target / INTERVAL)]);
    }
    while (this.state.k < target) this.apply(this.history.moments[this.state.k]);
    return this.state;
  }

  apply(moment) {
    const { state } = this;
    const { trace } = this.history;
    state.k += 1;
    if (moment.kind === "issue") state.pending[moment.access] = true;
    else if (moment.kind === "send") state.flight[moment.message] = trace.messages[moment.message].deliveries.length;
    else if (moment.kind === "deliver") {
      state.flight[moment.message] -= 1;
      if (!state.flight[moment.message]) delete state.flight[moment.message];
    } else if (moment.kind === "transition") {
      const t = trace.transitions[moment.transition];
      if (!this.history.recorded) state.cells[cellKey(t.base, t.controller)] = t.next;
      state.transitions += 1;
    } else if (moment.kind === "done") {
      delete state.pending[moment.access];
      state.done[moment.access] = true;
    }
    for (const change of moment.changes) this.change(change);
  }

  change(change) {
    const { state } = this;
    const key = cellKey(change.line, change.controller);
    if (change.kind === "entry") {
      state.cells[key] = change.state;
      if (change.fields) state.fields[key] = change.fields;
      else delete state.fields[key];
    } else if (change.kind === "tbe") {
      if (change.fields === null) delete state.tbes[key];
      else state.tbes[key] = change.fields;
    } else if (change.kind === "way") {
      const held = (state.ways[key] ??= {});
      if (change.way === null) delete held[change.array];
      else held[change.array] = change.way;
      if (!Object.keys(held).length) delete state.ways[key];
    } else if (change.kind === "bytes") {
      const held = (state.bytes[change.line] ??= { data: Array(LINE_BYTES).fill("00"), writers: Array(LINE_BYTES).fill(-1) });
      for (let i = 0; i < change.bytes.length / 2; i += 1) {
        held.data[change.offset + i] = change.bytes.slice(2 * i, 2 * i + 2);
        held.writers[change.offset + i] = change.access;
      }
    }
  }

  cell(line, controller) {
    const key = cellKey(line, controller);
    return this.state.cells[key] ?? this.history.initial.get(key);
  }

  /** Array, set and way in which a controller has a line. */
  waysOf(line, controller) {
    return Object.entries(this.state.ways[cellKey(line, controller)] || {});
  }

  /** The state as plain JSON with a fixed order of keys: for tests and for scripts in the browser's console. */
  plain() {
    const { history, state } = this;
    const states = {};
    for (const key of [...new Set([...history.initial.keys(), ...Object.keys(state.cells)])].sort()) {
      const [line, controller] = key.split(" ");
      (states[line] ??= {})[controller] = state.cells[key] ?? history.initial.get(key);
    }
    const numbers = (set) =>
      Object.keys(set)
        .map(Number)
        .sort((a, b) => a - b);
    const sorted = (object) =>
      Object.fromEntries(
        Object.keys(object)
          .sort()
          .map((key) => [key, object[key]]),
      );
    const bytes = Object.fromEntries(
      Object.keys(state.bytes)
        .sort()
        .map((line) => {
          const { data, writers } = state.bytes[line];
          return [line, { data: data.join(""), writers: [...writers] }];
        }),
    );
    return {
      k: state.k,
      at: history.timeAt(state.k),
      transitions: state.transitions,
      states,
      fields: sorted(state.fields),
      tbes: sorted(state.tbes),
      ways: sorted(state.ways),
      bytes,
      flight: numbers(state.flight),
      pending: numbers(state.pending),
      done: numbers(state.done),
    };
  }
}
