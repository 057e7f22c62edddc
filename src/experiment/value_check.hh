// SPDX-License-Identifier: BSD-3-Clause
// Checks the values that the accesses of a script find, and says whose values they are. The values written are chosen here:
// each names its write. Needs a protocol's checking library, where the data of the protocol's messages is what an access
// returns. Ticks are femtoseconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cpu/testers/reference.hh"
#include "machine/machine.hh"

namespace moscope::experiment {

class ValueCheck {
  public:
    using Json = nlohmann::ordered_json;
    struct Planned {
        AccessKind kind;
        Addr addr;
        unsigned size;
        testers::Agent who;
    };

    /// UserError if two accesses overlap without being to the same bytes; whole lines overlap all that is in them.
    explicit ValueCheck(const std::vector<Planned> &accesses);

    /// Access n begins; `bytes` (of a line) receives what it writes. False if too many writes to the same bytes are under way to
    /// tell their values apart: the access is then not to be made.
    bool begin(unsigned n, Tick now, std::byte *bytes);
    /// The closure of a locked read-modify-write that n is; runs at `now`.
    void modify(unsigned n, void *bytes, Tick issued, Tick now);
    void done(unsigned n, const Access &a, const std::byte *bytes);
    /// With nothing in flight: a single writer, and that caches and memory hold the last values.
    void check_end(Machine &machine);

    bool failed() const { return !violations_.empty(); }
    /// [{"access": number or null, "text", "found": number of the access whose value it is, -1: the initial value, -2: neither,
    /// "expected": [numbers, as "found"]}..]
    const Json &violations() const { return violations_; }
    /// The access whose value access n found, as "found"; none for accesses that read nothing.
    std::optional<int> found(unsigned n) const { return found_[n]; }

  private:
    bool whole_line(unsigned n) const;
    bool can_write(unsigned place);
    bool distant(unsigned n) const;
    /// The places of whole-line write n are of its line.
    const testers::Reference::PoolLine &line_of_write(unsigned n) const {
        return ref_->lines()[ref_->at(place_[n]).line];
    }
    void note(unsigned n, std::uint64_t value, Tick issued, Tick done, bool right);

    std::vector<Planned> accesses_;
    std::optional<testers::Reference> ref_;
    std::vector<unsigned> place_; ///< by access: its location; the first of its line if it is a whole one
    std::vector<std::uint64_t> value_;
    std::vector<std::optional<int>> found_;
    std::vector<Tick> began_; ///< kNever: not under way
    Tick known_oldest_ = 0;
    Json violations_ = Json::array();
};

} // namespace moscope::experiment
