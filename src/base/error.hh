// SPDX-License-Identifier: BSD-3-Clause
// The kinds of error of the design, as exceptions that cross the language binding: a user error (reported
// before the first tick), a protocol error (no transition, failed assertion or stuck request in a coherence
// protocol) and a simulator bug (an assertion of the simulator itself). Guest faults are not exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace moscope {

struct UserError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct ProtocolError : std::runtime_error {
    static constexpr std::uint64_t kNoLine = ~std::uint64_t{0};
    explicit ProtocolError(const std::string &what, std::uint64_t line_address = kNoLine)
        : std::runtime_error(what), line(line_address) {}
    std::uint64_t line; ///< address of the line that the error is about; kNoLine: none
};

struct SimulatorBug : std::logic_error {
    using std::logic_error::logic_error;
};

/// Throws SimulatorBug naming the place; kept out of line so that checks stay cheap.
[[noreturn]] void simulator_bug(const char *what, const char *file, int line);

#define MOSCOPE_CHECK(cond)                                                                                            \
    do {                                                                                                               \
        if (__builtin_expect(!(cond), 0))                                                                              \
            ::moscope::simulator_bug(#cond, __FILE__, __LINE__);                                                       \
    } while (0)

} // namespace moscope
