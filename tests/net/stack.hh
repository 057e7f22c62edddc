// SPDX-License-Identifier: BSD-3-Clause
// Finds out whether a checkpoint contains padding bytes, which hold whatever happened to lie on the stack.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "guest.hh"

namespace moscope::net {

[[gnu::noinline]] inline void fill_stack(int byte) {
    char frame[16384];
    std::memset(frame, byte, sizeof frame);
    asm volatile("" : : "r"(frame) : "memory");
}

/// The hosts after a command, saved.
inline std::vector<std::uint8_t> saved_after(const std::string &command, int byte) {
    Hosts hosts(
        1, [](Frame, Tick) {}, [](std::uint64_t) {});
    fill_stack(byte);
    EXPECT_EQ(hosts.command(command, kGuest, 0), "ok");
    Archive a;
    hosts.archive(a);
    return a.bytes();
}

inline void expect_equal_checkpoints(const std::string &command) {
    EXPECT_TRUE(saved_after(command, 0x55) == saved_after(command, 0xaa)) << command;
}

} // namespace moscope::net
