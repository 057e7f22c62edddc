// SPDX-License-Identifier: BSD-3-Clause
// Delays of messages that do not depend on which other accesses there are: a delay belongs to an access, a message and its
// way, not to a position in one random sequence. Accesses can therefore be taken out of a run while the others keep the delays
// of their messages. Ticks are femtoseconds.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mem/ruby/runtime/trace_hook.hh"

namespace moscope {

class ConfigReader;
class Machine;

namespace experiment {

class MessageDelays : public ruby::DelaySource {
  public:
    static constexpr int kUnknown = -1;
    /// number_of: the access in flight that has this transaction, or kUnknown.
    using NumberOf = std::function<int(TxnId)>;

    MessageDelays(Machine &machine, NumberOf number_of);
    ~MessageDelays() override;

    /// {"seed", "max_fs"}: a delay of up to max_fs for each message, from a hash of what identifies it. Or {"list":
    /// [{"access", "message", "to", "n", "fs"}..]}: these alone; n counts the messages of this name that an access has sent to
    /// this receiver, from 0.
    void read(const ConfigReader &from);
    void hash(std::uint64_t seed, Tick most) { seed_ = seed, most_ = most; }
    /// Lists all delays, as `read` takes them.
    void keep_list() { names_ = keep_ = true; }
    nlohmann::ordered_json list() const;

    /// The transaction of an access; once known it outlives the access.
    void name_transaction(TxnId txn, int access) { access_of_[txn] = access; }

    Tick delay(const ruby::Message &m, ruby::NodeIndex to) override;

  private:
    struct Delay {
        int access;
        std::string message, to;
        unsigned n;
        Tick fs;
    };

    int access_of(TxnId txn);
    std::string controller_name(ruby::NodeIndex node) const;

    Machine &machine_;
    NumberOf number_of_;
    std::unordered_map<TxnId, int> access_of_;
    std::unordered_map<std::uint64_t, unsigned> alike_;     ///< messages by the hash of what identifies them
    std::unordered_map<std::string, unsigned> alike_named_; ///< the same by name
    std::unordered_map<std::string, Tick> chosen_;
    std::uint64_t seed_ = 0;
    Tick most_ = 0;
    bool names_ = false; ///< identifies messages by name
    bool keep_ = false;
    std::vector<Delay> kept_;
};

} // namespace experiment
} // namespace moscope
