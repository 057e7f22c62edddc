// SPDX-License-Identifier: BSD-3-Clause
// Checks the values that the accesses of a script read, and names the access that wrote each. It chooses the values
// that are written, so that each identifies its write. Needs a protocol's checking library, with which an access
// returns the data that the protocol's messages carry. Ticks are femtoseconds.
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

    /// UserError if two accesses overlap but not in all bytes. Accesses to whole lines may overlap any others.
    explicit ValueCheck(const std::vector<Planned> &accesses);

    /// Begins access n; `bytes` (of a line) receives what it writes. False if too many writes to the same bytes are
    /// under way to distinguish their values: the caller must then skip the access.
    bool begin(unsigned n, Tick now, std::byte *bytes);
    /// The closure of access n, a locked read-modify-write, which is performed at `now`.
    void modify(unsigned n, void *bytes, Tick issued, Tick now);
    void done(unsigned n, const Access &a, const std::byte *bytes);
    /// With nothing in flight: checks that lines have a single writer, and that caches and memory hold the last values.
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
    /// The line whose places whole-line write n writes.
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
