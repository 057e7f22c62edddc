// SPDX-License-Identifier: BSD-3-Clause
// A small guest memory with a firmware map, and kernels that the tests put together byte by byte.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hh"
#include "board/loader/loader.hh"
#include "mem/guest_memory.hh"

namespace moscope::loader::testing {

using Image = std::vector<std::uint8_t>;

template <class T> void put(Image &image, std::size_t offset, T value) {
    if (image.size() < offset + sizeof value)
        image.resize(offset + sizeof value);
    std::memcpy(image.data() + offset, &value, sizeof value);
}

inline void put_text(Image &image, std::size_t offset, const std::string &text) {
    image.resize(std::max(image.size(), offset + text.size()));
    std::memcpy(image.data() + offset, text.data(), text.size());
}

struct Loader : ::testing::Test {
    static constexpr std::uint64_t kMiB = 1 << 20;
    GuestMemory dram{64 * kMiB};
    // 48 MiB below a hole, 16 MiB above 4 GiB.
    PhysMap map{dram.base(), dram.bytes(), 48 * kMiB};
    BootMemory memory{map,
                      {{0, 0x9fc00, RangeKind::usable},
                       {0xe0000, 0x20000, RangeKind::reserved},
                       {kMiB, 47 * kMiB, RangeKind::usable},
                       {PhysMap::kTop, 16 * kMiB, RangeKind::usable}}};
    Image kernel, initrd;
    std::string command_line = "console=ttyS0";

    LoadedKernel load() { return load_kernel({"kernel.img", kernel, initrd, command_line, 0xf1234}, memory); }
    std::string refusal() {
        try {
            load();
        } catch (const UserError &e) {
            return e.what();
        }
        return "(none)";
    }
    /// Loads 3000 copies of `kernel`, each with some random bytes of the range changed; each loads or is refused.
    void load_damaged(std::uint32_t seed, unsigned changes, std::size_t begin, std::size_t size) {
        const Image whole = kernel;
        for (unsigned round = 0; round < 3000; ++round) {
            kernel = whole;
            for (unsigned i = 0; i < changes; ++i) {
                seed = seed * 1664525 + 1013904223;
                kernel[begin + (seed >> 8) % size] = static_cast<std::uint8_t>(seed >> 24);
            }
            BootMemory fresh(map, memory.ranges());
            try {
                load_kernel({"kernel.img", kernel, initrd, command_line, 0}, fresh);
            } catch (const UserError &) {}
        }
    }
    template <class T> T read(Addr a) const {
        T v;
        std::memcpy(&v, map.host(PhysAddr(a)), sizeof v);
        return v;
    }
    std::string text(Addr a) const { return reinterpret_cast<const char *>(map.host(PhysAddr(a))); }
};

} // namespace moscope::loader::testing
