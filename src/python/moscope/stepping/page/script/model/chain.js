// SPDX-License-Identifier: BSD-3-Clause
// The chain of messages and transitions that an access waits for: back from its end, by cause.

/** The moments of the chain, with the invalidations that the access causes. */
export function chainOf(history, access) {
  const { trace, moments } = history;
  const own = moments.filter((moment) => moment.access === access.id);
  const wanted = new Set();
  const done = own.find((moment) => moment.kind === "done");
  const last = own
    .filter(
      (moment) =>
        moment.kind === "transition" &&
        (!done || moment.at <= done.at) &&
        history.controllers.get(trace.transitions[moment.transition].controller).core === access.core,
    )
    .at(-1);
  let cause = last ? last.message : null;
  const onWay = new Set();
  while (cause !== null && cause !== undefined) {
    onWay.add(cause);
    cause = trace.messages[cause].cause;
  }
  for (const moment of own) {
    if (moment.kind === "issue" || moment.kind === "done") wanted.add(moment);
    else if (moment.kind === "send" && onWay.has(moment.message) && trace.messages[moment.message].structure !== "RubyRequest")
      wanted.add(moment);
    else if (moment.kind === "transition" && ((onWay.has(moment.message) && (!done || moment.at <= done.at)) || moment.lost))
      wanted.add(moment);
  }
  return [...wanted];
}
