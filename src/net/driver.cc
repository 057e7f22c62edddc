// SPDX-License-Identifier: BSD-3-Clause
#include "net/driver.hh"

#include <charconv>

#include "base/error.hh"

namespace moscope::net {

namespace {

/// A local static, as registrations of other files may run before this file's own initialisation.
std::map<std::string_view, RegisteredDriver::Make> &registry() {
    static std::map<std::string_view, RegisteredDriver::Make> entries;
    return entries;
}

} // namespace

RegisteredDriver::RegisteredDriver(std::string_view name, Make make) { registry()[name] = make; }

const std::map<std::string_view, RegisteredDriver::Make> &registered_drivers() { return registry(); }

std::uint64_t Settings::number(const std::string &key, std::uint64_t otherwise, std::uint64_t least,
                               std::uint64_t most) {
    const auto at = pairs_.find(key);
    if (at == pairs_.end())
        return otherwise;
    known_[key] = at->second;
    std::uint64_t value = 0;
    const char *const end = at->second.data() + at->second.size();
    const auto [stop, error] = std::from_chars(at->second.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > most)
        throw UserError(key + ": " + at->second.substr(0, 40) + ": expected " + std::to_string(least) + " to " +
                        std::to_string(most));
    return value;
}

void Settings::check() const {
    for (const auto &[key, value] : pairs_)
        if (!known_.contains(key))
            throw UserError(key.substr(0, 40) + ": is not known: expected a setting of this driver");
}

} // namespace moscope::net
