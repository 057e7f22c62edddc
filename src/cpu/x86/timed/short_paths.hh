// SPDX-License-Identifier: BSD-3-Clause
// The short paths of TimedCore for loads and stores, which mostly hit. They are inlined into the functions that
// instructions call (cpu/x86/mmu/memory.cc) and into the page walker. Rare cases are functions of their own, so that
// the short paths save no registers for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

template <unsigned kBytes> inline LoadedWord<kBytes> TimedCore::load_sized(Addr d, Addr va) {
    va_ = va;
    if (__builtin_expect(loads_look_, 0))
        return load_looking<kBytes>(d);
    return load_plain<kBytes>(d);
}

template <unsigned kBytes> [[gnu::noinline]] LoadedWord<kBytes> TimedCore::load_looking(Addr d) {
    looks_at(d);
    if (!buffers_)
        return load_plain<kBytes>(d);
    if (accesses_)
        next_access();
    accesses_ = 1;
    return load_waiting<kBytes>(d);
}

template <unsigned kBytes> inline LoadedWord<kBytes> TimedCore::load_plain(Addr d) {
    if (accesses_)
        next_access();
    accesses_ = 1;
    if (__builtin_expect(ahead(), 0))
        return load_ahead<kBytes>(d);
    return load_here<kBytes>(d);
}

template <unsigned kBytes> [[gnu::noinline]] LoadedWord<kBytes> TimedCore::load_ahead(Addr d) {
    catch_up();
    return load_here<kBytes>(d);
}

template <unsigned kBytes> inline LoadedWord<kBytes> TimedCore::load_here(Addr d) {
    const std::byte *const b = port_.hit(line_of(d), Port::right_load, hit_done());
    if (__builtin_expect(!b, 0))
        return load_elsewhere<kBytes>(d);
    load_ready_ = cursor().cycle() + hit_cycles();
    return {true, Word<kBytes>::of(b + line_offset(d))};
}

template <unsigned kBytes> [[gnu::noinline]] LoadedWord<kBytes> TimedCore::load_waiting(Addr d) {
    std::uint8_t bytes[kBytes];
    load_issued(d, bytes, kBytes);
    return {true, Word<kBytes>::of(bytes)};
}
template <unsigned kBytes> [[gnu::noinline]] LoadedWord<kBytes> TimedCore::load_elsewhere(Addr d) {
    std::uint8_t bytes[kBytes];
    load_beyond(d, bytes, kBytes);
    return {true, Word<kBytes>::of(bytes)};
}

template <class T> inline T TimedCore::walk_load(Addr d) {
    T entry;
    if (accesses_)
        next_access();
    accesses_ = 1;
    if (!buffers_ && !overlap_ && !ahead())
        if (const std::byte *b = port_.hit(line_of(d), Port::right_load, hit_done())) {
            load_ready_ = cursor().cycle() + hit_cycles();
            std::memcpy(&entry, b + line_offset(d), sizeof entry);
            return entry;
        }
    walk_load_issued(d, &entry, sizeof entry);
    return entry;
}

template <unsigned kBytes, bool kAtOnce> inline bool TimedCore::store_sized(Addr d, Addr va, Word<kBytes> word) {
    ++disturbances_;
    va_ = va;
    if (accesses_)
        next_access();
    accesses_ = 1;
    if ((kAtOnce || !buffers_) && !ahead())
        if (std::byte *b = port_.hit(line_of(d), Port::right_store, now())) {
            word.put(b + line_offset(d));
            report_stored(d, kBytes, pc());
            return true;
        }
    return store_later<kBytes>(d, word);
}

template <unsigned kBytes>
inline std::uint64_t TimedCore::store_several(Addr d, Addr va, const void *from, std::uint64_t n) {
    n = std::min<std::uint64_t>(n, (kLineBytes - line_offset(d)) / kBytes);
    if (n < 2 || overlap_)
        return 0;
    if (buffers_) {
        n = std::min<std::uint64_t>(n, stores_.free());
        if (stores_.empty() || !n || c_.blocks->guarded_dram(c_, d, static_cast<unsigned>(n) * kBytes))
            return 0;
        for (std::uint64_t i = 0; i < n; ++i) {
            if (accesses_)
                next_cycle();
            accesses_ = 1;
            stores_.push(d + i * kBytes, from, kBytes, now(), pc(), va + i * kBytes);
            companion_changed();
        }
    } else {
        const auto cycles = static_cast<std::int64_t>(n) - (accesses_ ? 0 : 1);
        std::byte *const b =
            ahead_after(cycles) ? nullptr : port_.hit(line_of(d), Port::right_store, cursor().after(cycles));
        if (!b)
            return 0;
        port_.inline_hits += n - 1;
        for (std::uint64_t i = 0; i < n; ++i)
            std::memcpy(b + line_offset(d) + i * kBytes, from, kBytes);
        advance_cycles(cycles);
        begin_group();
        accesses_ = 1;
        report_stored(d, static_cast<unsigned>(n) * kBytes, pc());
    }
    disturbances_ += n;
    va_ = va + (n - 1) * kBytes;
    return n;
}

} // namespace moscope::x86
