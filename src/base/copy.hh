// SPDX-License-Identifier: BSD-3-Clause
// Copies the bytes of a load or store. The size is mostly a power of two, for which the copy is inline.
#pragma once

#include <cstring>

namespace moscope {

inline void copy_few(void *to, const void *from, unsigned size) {
    if (__builtin_expect(size == 8, 1)) {
        std::memcpy(to, from, 8);
        return;
    }
    switch (size) {
    case 16: std::memcpy(to, from, 16); break;
    case 4: std::memcpy(to, from, 4); break;
    case 2: std::memcpy(to, from, 2); break;
    case 1: std::memcpy(to, from, 1); break;
    default: std::memcpy(to, from, size);
    }
}

} // namespace moscope
