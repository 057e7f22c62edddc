// SPDX-License-Identifier: BSD-3-Clause
// The moments of a trace in one order: an access is issued or done, a message is sent, leaves or reaches a chip, or is delivered, a
// transition is taken. Moments are ordered by simulated time. Moments of the same time are ordered by cause: a message is delivered
// before the transition that consumes it, and that transition comes before the messages that it sends. Transitions keep the order of
// the engine. A recorded change of state belongs to the transition that made it; one without a transition belongs to the end of an access
// at that time, or is a moment of its own.

const RANK = { issue: 0, send: 1, depart: 2, arrive: 3, deliver: 4, transition: 5, change: 6, done: 7 };

export function momentsOf(trace, changes) {
  const moments = [];
  const add = (kind, at, fields, after) => {
    const moment = { kind, at, changes: [], after: after.filter(Boolean), ...fields };
    moments.push(moment);
    return moment;
  };
  // An access of a script that went wrong before it began has no moment.
  const issued = trace.accesses.map((a, access) => (a.issued === null ? null : add("issue", a.issued, { access }, [])));
  const taken = new Map(); // by cause, controller and time: what a message sent then follows
  const transitions = [];
  for (const [index, t] of trace.transitions.entries()) {
    const moment = add("transition", t.at, { access: t.access, transition: index, message: t.cause }, [transitions.at(-1)]);
    transitions.push(moment);
    taken.set(`${t.cause} ${t.controller} ${t.at}`, moment);
  }
  const delivered = new Map();
  for (const m of trace.messages) addMessage(m, issued, taken, delivered, add);
  for (const moment of transitions) {
    const t = trace.transitions[moment.transition];
    const before = delivered.get(`${t.cause} ${t.controller}`);
    if (before) moment.after.push(before);
  }
  const last = new Map(); // by access: its last transition at or before its end
  for (const moment of transitions) {
    const access = trace.accesses[moment.access];
    if (access && moment.at <= access.done) last.set(moment.access, moment);
  }
  for (const [access, a] of trace.accesses.entries()) {
    if (a.done !== null && a.done !== undefined) add("done", a.done, { access }, [issued[access], last.get(access)]);
  }
  addChanges(changes, transitions, moments, add);
  return ordered(moments);
}

function addChanges(changes, transitions, moments, add) {
  const ends = new Map(
    moments.filter((moment) => moment.kind === "done").map((moment) => [`${moment.access} ${moment.at}`, moment]),
  );
  for (const change of changes) {
    if (change.transition !== null) transitions[change.transition].changes.push(change);
    else if (change.at > 0) {
      const owner = ends.get(`${change.access} ${change.at}`) || add("change", change.at, { access: change.access ?? null }, []);
      owner.changes.push(change);
    }
  }
}

function addMessage(m, issued, taken, delivered, add) {
  const message = m.id;
  const before = m.cause === null ? issued[m.access] : taken.get(`${m.cause} ${m.from} ${m.sent}`);
  const sent = add("send", m.sent, { access: m.access, message }, [before]);
  let previous = sent;
  for (const [hop, way] of m.hops.entries()) {
    const left = add("depart", way.depart, { access: m.access, message, hop }, [sent]);
    previous = add("arrive", way.arrive, { access: m.access, message, hop }, [left]);
  }
  for (const [delivery, d] of m.deliveries.entries()) {
    const moment = add("deliver", d.at, { access: m.access, message, delivery }, [sent, previous]);
    delivered.set(`${message} ${d.to}`, moment);
  }
}

function ordered(moments) {
  moments.sort((a, b) => a.at - b.at || RANK[a.kind] - RANK[b.kind]);
  const result = [];
  const placed = new Set();
  const place = (moment, at) => {
    if (placed.has(moment) || moment.at !== at) return;
    placed.add(moment);
    for (const before of moment.after) place(before, at);
    result.push(moment);
  };
  for (const moment of moments) place(moment, moment.at);
  for (const [index, moment] of result.entries()) {
    moment.index = index;
    delete moment.after;
  }
  return result;
}
