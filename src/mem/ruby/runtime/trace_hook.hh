// SPDX-License-Identifier: BSD-3-Clause
// What can be watched of the protocol at work: one object per machine, absent in normal runs (one predicted
// branch per place). Names are resolved by the receiver from the protocol's tables.
#pragma once

#include "base/types.hh"
#include "mem/ruby/runtime/message.hh"

namespace moscope::ruby {

class AbstractController;

class TraceHook {
  public:
    virtual ~TraceHook() = default;
    /// After a transition; `cause` is the message that triggered it (null: timer).
    virtual void transition(const AbstractController &c, Tick now, unsigned state, unsigned event, unsigned next_state,
                            Addr line, const Message *cause) = 0;
    /// A message leaves an action; it arrives (or enters the network) at `arrival`.
    virtual void sent(const AbstractController &c, Tick now, const Message &m, Tick arrival, const Message *cause) = 0;
    /// A message crossed from one router to another.
    virtual void hop(const Message &m, unsigned from, unsigned to, Tick depart, Tick arrive) = 0;
    /// A message was put into a destination's buffer.
    virtual void delivered(const Message &m, NodeIndex to, Tick arrival) = 0;
};

/// Chosen delays of messages, in place of the network's random ones (NetworkParams::jitter).
class DelaySource {
  public:
    virtual ~DelaySource() = default;
    /// Of one delivery, at least 0. Ordered virtual networks keep their order all the same.
    virtual Tick delay(const Message &m, NodeIndex to) = 0;
};

} // namespace moscope::ruby
