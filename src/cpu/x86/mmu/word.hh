// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a load or store of 1, 2, 4, 8 or 16 bytes, as functions pass them in registers.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace moscope::x86 {

template <unsigned kBytes> struct Word {
    static_assert(kBytes <= 16 && !(kBytes & (kBytes - 1)));
    struct Two {
        std::uint64_t low = 0, high = 0;
    };
    /// As they lie in memory.
    using Same =
        std::conditional_t<kBytes == 1, std::uint8_t,
                           std::conditional_t<kBytes == 2, std::uint16_t,
                                              std::conditional_t<kBytes == 4, std::uint32_t,
                                                                 std::conditional_t<kBytes == 8, std::uint64_t, Two>>>>;
    std::conditional_t<kBytes == 16, Two, std::uint64_t> value{}; ///< zero-extended

    static Word of(const void *from) {
        Same same;
        std::memcpy(&same, from, kBytes);
        return {same};
    }
    void put(void *to) const {
        const auto same = static_cast<Same>(value);
        std::memcpy(to, &same, kBytes);
    }
};

/// What a load returns. Not `ok`: a guest fault, and no bytes. `ok` is as wide as a register, so that a function can
/// pass on the result of another without repacking it.
template <unsigned kBytes> struct LoadedWord {
    std::uint64_t ok = false;
    Word<kBytes> word{};
};

} // namespace moscope::x86
