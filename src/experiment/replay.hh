// SPDX-License-Identifier: BSD-3-Clause
// Replays accesses of cores and devices, each at its moment, with chosen message delays and with the values checked: what a
// counterexample of a protocol is made of. Times in femtoseconds.
//
// request {"steps": [[{"core" or "device", "op", "address", "size": bytes (8, or to the end of the line), "at": ticks after the
//   beginning of the step (0), "number": in "delays" (its position)}..]..]: the next step begins when the machine is quiet again;
//   "absolute": true: the one step begins at tick 0; "trace": true records every message; "check": true checks values
//   (value_check.hh) and ends at the first wrong one; "delays": as message_delays.hh reads them, on a machine with random delays
//   (network.jitter_fs); "list_delays": true lists them}.
// answer {"accesses": [{"id", "step", "core", "device", "op", "address", "size", "issued", "done" (null: an error came first), and what
//   an access of a script has (access_json.hh)}..], "violations", "protocol_error": text if one ended the run, "delays", and what a
//   trace has}.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiment/access_json.hh"
#include "experiment/message_delays.hh"
#include "experiment/testing.hh"
#include "experiment/trace_recorder.hh"
#include "experiment/value_check.hh"
#include "schema/config_reader.hh"

namespace moscope::experiment {

class Replay {
  public:
    Replay(Machine &machine, const ConfigReader &request, const TestPoll &poll);
    Json run();

  private:
    /// One access, with what it moves.
    struct Entry {
        Access access;
        Replay *replay = nullptr;
        unsigned number = 0, step = 0;
        int in_delays = 0; ///< its number in what chooses message delays
        std::optional<unsigned> core, device;
        Tick at = 0; ///< after the beginning of its step
        bool issued = false, skipped = false;
        std::uint64_t value = 0;       ///< where values are not checked
        std::optional<int> written_by; ///< the access whose value it found, -1: none of these
        alignas(8) std::array<std::byte, kLineBytes> bytes;
    };

    /// Issues the accesses of one step, in the order of their ticks.
    struct Step : Component {
        Step(EventQueue &queue, std::string name, Replay &replay, std::vector<Entry *> accesses)
            : Component(queue, std::move(name), wake), replay_(replay), accesses_(std::move(accesses)) {}
        static void wake(Component &c, Tick now);
        Replay &replay_;
        std::vector<Entry *> accesses_;
        std::size_t next_ = 0;
        Tick start_ = 0;
    };

    Entry &add(const ConfigReader &j, unsigned step);
    Port &port_of(const Entry &e);
    void issue(Entry &e, Tick now);
    static void finished(Access &a);
    static void modify(void *entry, void *bytes);
    void note_values(Entry &e);
    void run_steps(Json &answer);
    int number_of(TxnId txn) const;
    Json account(const Entry &e);

    static constexpr Tick kLook = 10 * kTicksPerNs; ///< how finely the end of a step is looked for
    static constexpr Tick kSlice = 1'000'000'000;   ///< the same in a long step
    static constexpr Tick kSettle = 20'000 * kTicksPerNs;

    bool failed() const { return check_ && check_->failed(); }
    void run_until_done();
    void settle();

    Machine &machine_;
    const ConfigReader request_;
    const TestPoll &poll_;
    std::int64_t messages_at_rest_;
    Tick now_ = 0;
    std::optional<TraceRecorder> recorder_;
    std::optional<MessageDelays> delays_;
    std::optional<ValueCheck> check_;
    std::deque<Entry> entries_;
    std::vector<std::unique_ptr<Step>> steps_;                      ///< they stay: the queue knows components by number
    std::vector<Entry *> open_;                                     ///< issued and not done
    unsigned left_ = 0;                                             ///< of the current step, not done
    std::unordered_map<Addr, std::array<int, kLineBytes>> writers_; ///< the last, by line and byte
};

} // namespace moscope::experiment
