// SPDX-License-Identifier: BSD-3-Clause
// Records each change of what controllers hold of a script's lines: after a transition, the recorder reads the
// controller's arrays and tables and notes what has changed since it last read them. held_of() and bytes_of() read the
// state at one moment without a recorder.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "mem/ruby/runtime/controller.hh"

namespace moscope {

class Machine;

class StateRecorder {
  public:
    StateRecorder(Machine &machine, const std::vector<Addr> &lines);

    /// `state`: of the line, before the transition; `number` is the transition's in the trace.
    void after_transition(ruby::NodeIndex node, Tick at, unsigned state, Addr line, std::size_t number);
    /// An access that began at `node` has written `bytes` at `address`, within the transition `number`.
    void written(ruby::NodeIndex node, Tick at, Addr address, const std::byte *bytes, unsigned size, unsigned access,
                 std::size_t number);
    /// Adds "changes" (docs/stepping.md), in the order of the simulation.
    void write(nlohmann::ordered_json &answer) const;

  private:
    using Json = nlohmann::ordered_json;
    struct Held {
        ruby::LineView first, last;
        bool touched = false;
    };
    struct Slot {
        ruby::NodeIndex node;
        std::string array;
        unsigned set, way;
        bool operator<(const Slot &o) const {
            return std::tie(node, array, set, way) < std::tie(o.node, o.array, o.set, o.way);
        }
    };

    void compare(ruby::NodeIndex node, Addr line, Held &held, Tick at, std::size_t number);
    Json change(Tick at, const Json &transition, ruby::NodeIndex node, Addr line, const char *kind) const;
    void put_first(Json &changes) const;

    Machine &machine_;
    std::map<std::pair<ruby::NodeIndex, Addr>, Held> held_;
    std::vector<std::vector<Addr>> touched_; ///< by node: lines of which it had a transition
    std::map<Slot, Addr> last_in_;           ///< the line that a way has, or had last
    Json changes_ = Json::array();
};

/// What each controller holds of each line now: [{"controller", "line", "state", "fields", "tbe", "ways"}..].
nlohmann::ordered_json held_of(Machine &machine, const std::vector<Addr> &lines);
/// The bytes that guest memory has of each line: [{"line", "bytes"}..].
nlohmann::ordered_json bytes_of(Machine &machine, const std::vector<Addr> &lines);

} // namespace moscope
