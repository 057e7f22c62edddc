// SPDX-License-Identifier: BSD-3-Clause
// Hooks that watch the protocol at work: one object per machine, null in normal runs, where it costs one predicted
// branch per call. The receiver looks up names in the protocol's tables. A hook can also make messages arrive later.
#pragma once

#include <string>
#include <vector>

#include "base/types.hh"
#include "mem/ruby/runtime/message.hh"

namespace moscope::ruby {

class AbstractController;

/// What a controller holds of a line: read from its arrays and tables.
struct LineView {
    struct Way {
        const char *array; ///< the parameter's name
        unsigned set, way;
    };
    unsigned state = 0;
    std::string entry; ///< fields of the entry, as text
    bool has_tbe = false;
    std::string tbe; ///< its fields
    std::vector<Way> ways;
};

class TraceHook {
  public:
    virtual ~TraceHook() = default;
    /// After a transition, with its state set; `cause` is the message that triggered it (null: timer). `next_state` is
    /// the declared one; the line has another if the controller has nothing to hold it in (see state_of).
    virtual void transition(const AbstractController &c, Tick now, unsigned state, unsigned event, unsigned next_state,
                            Addr line, const Message *cause) = 0;
    /// An action sends a message. It arrives (or enters the network) at `arrival` plus the delay that is returned.
    virtual Tick sent(const AbstractController &c, Tick now, const Message &m, Tick arrival, const Message *cause) = 0;
    /// A message crossed from one router to another.
    virtual void hop(const Message &m, unsigned from, unsigned to, Tick depart, Tick arrive) = 0;
    /// A message is put into a destination's buffer. It arrives at `arrival` plus the delay that is returned.
    virtual Tick delivered(const Message &m, NodeIndex to, Tick arrival) = 0;
};

/// Chosen delays of messages, in place of the network's random ones (NetworkParams::jitter).
class DelaySource {
  public:
    virtual ~DelaySource() = default;
    /// The delay of one delivery, in ticks, at least 0. Ordered virtual networks keep their order all the same.
    virtual Tick delay(const Message &m, NodeIndex to) = 0;
};

} // namespace moscope::ruby
