// SPDX-License-Identifier: BSD-3-Clause
// Breakpoints of DR0 to DR3 (AMD 24593, section 13.1). While one is enabled, instructions run one by one where
// necessary, and loads and stores leave the fast path, which therefore does not check for breakpoints.
#include "cpu/x86/core.hh"

namespace moscope::x86 {

namespace {

enum Condition : unsigned { on_fetch = 0, on_write = 1, on_port = 2, on_access = 3 };

bool enabled(const Core &c, unsigned n) { return c.dr[7] >> 2 * n & 3; }
Condition condition(const Core &c, unsigned n) { return static_cast<Condition>(c.dr[7] >> (16 + 4 * n) & 3); }
Addr length(const Core &c, unsigned n) {
    static constexpr Addr kBytes[] = {1, 2, 8, 4};
    return kBytes[c.dr[7] >> (18 + 4 * n) & 3];
}
/// Whether the breakpoint's naturally aligned field overlaps [a, a + size).
bool meets(const Core &c, unsigned n, Addr a, unsigned size) {
    const Addr bytes = length(c, n), first = c.dr[n] & ~(bytes - 1);
    return a < first + bytes && first < a + size;
}

} // namespace

void Core::debug_changed() {
    watched = 0;
    for (unsigned n = 0; n < 4; ++n)
        if (enabled(*this, n))
            watched |= condition(*this, n) == on_fetch  ? kWatchFetch
                       : condition(*this, n) == on_port ? kWatchPort
                                                        : kWatchData;
    forget_blocks(true); // blocks are remembered only where they may run as a whole
    choose_tlb();
}

bool Core::watch_fetch(bool armed, bool &near) {
    const Addr at = code64() ? rip : (seg[cs].base + rip) & 0xffffffff;
    unsigned hit = 0;
    near = false;
    for (unsigned n = 0; n < 4; ++n)
        if (enabled(*this, n) && condition(*this, n) == on_fetch) {
            near |= (dr[n] ^ at) >> 12 == 0;
            hit |= static_cast<unsigned>(dr[n] == at) << n;
        }
    if (!hit || !armed)
        return true;
    dr[6] |= hit;
    return raise(exc_db);
}

void Core::watch_data(Addr a, unsigned size, bool write) {
    for (unsigned n = 0; n < 4; ++n)
        if (enabled(*this, n) && (condition(*this, n) == on_access || (write && condition(*this, n) == on_write)) &&
            meets(*this, n, a, size))
            struck |= static_cast<std::uint8_t>(1 << n);
}

void Core::watch_port(unsigned port, unsigned size) {
    for (unsigned n = 0; n < 4; ++n)
        if ((cr4 & cr4::de) && enabled(*this, n) && condition(*this, n) == on_port && meets(*this, n, port, size))
            struck |= static_cast<std::uint8_t>(1 << n);
}

} // namespace moscope::x86
