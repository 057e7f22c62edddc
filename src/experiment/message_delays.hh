// SPDX-License-Identifier: BSD-3-Clause
// Chooses delays of messages that do not depend on the other accesses of a run: a delay belongs to an access, a
// message, its sender and its receiver, not to a position in one random sequence. If accesses are removed from a run,
// the messages of the others therefore keep their delays. Ticks are femtoseconds.
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
    /// [{"access", "message", "to", "n", "fs"}..]}: only these messages are delayed; n counts the messages of this name
    /// that an access has sent to this receiver, from 0.
    void read(const ConfigReader &from);
    void hash(std::uint64_t seed, Tick most) { seed_ = seed, most_ = most; }
    /// From here on, keeps a list of all delays above 0 for list(), in the form that read() takes.
    void keep_list() { names_ = keep_ = true; }
    nlohmann::ordered_json list() const;

    /// Names the access of a transaction. The name stays known after the access has ended.
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
    std::unordered_map<std::uint64_t, unsigned> alike_;     ///< number of messages, by the hash of what identifies them
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
