// SPDX-License-Identifier: BSD-3-Clause
#include "mem/prefetch/prefetch_policy.hh"

#include <cstdlib>
#include <map>
#include <utility>

#include "base/error.hh"

namespace moscope {

namespace {

using Key = std::pair<PrefetchLevel, std::string_view>;

/// A local static, because policies may register themselves before this file's own objects are initialised.
std::map<Key, PrefetchPolicy> &registry() {
    static std::map<Key, PrefetchPolicy> policies;
    return policies;
}

const RegisteredPrefetch no_l1d({PrefetchLevel::l1d, "off", nullptr});
const RegisteredPrefetch no_l1i({PrefetchLevel::l1i, "off", nullptr});
const RegisteredPrefetch no_dram({PrefetchLevel::dram, "off", nullptr});

std::string_view name_of(PrefetchLevel level) {
    static constexpr std::string_view names[] = {"l1d", "l1i", "dram"};
    return names[static_cast<unsigned>(level)];
}

} // namespace

RegisteredPrefetch::RegisteredPrefetch(const PrefetchPolicy &policy) {
    registry().emplace(Key{policy.level, policy.name}, policy);
}

const PrefetchPolicy &prefetch_policy(PrefetchLevel level, std::string_view name) {
    const auto found = registry().find({level, name});
    if (found != registry().end())
        return found->second;
    std::string names;
    for (const auto &[key, policy] : registry())
        if (key.first == level)
            names += (names.empty() ? "" : ", ") + std::string(key.second);
    throw UserError(std::string(name_of(level)) + "_prefetch.policy: \"" + std::string(name) + "\": expected one of " +
                    names);
}

std::vector<std::string> prefetch_policies(std::string_view level) {
    std::vector<std::string> names;
    for (const auto &[key, policy] : registry())
        if (name_of(key.first) == level)
            names.emplace_back(key.second);
    return names;
}

unsigned PrefetchStreams::follow(unsigned number, Addr line) {
    PrefetchStream &s = all[number];
    const auto distance = static_cast<std::int64_t>(line - s.line) / static_cast<std::int64_t>(kLineBytes);
    if (distance == 0)
        return kNone;
    s.line = line;
    const bool within = std::llabs(distance) <= static_cast<std::int64_t>(reach);
    s.confirmed = within && distance == s.stride;
    s.stride = within ? static_cast<std::int32_t>(distance) : 0;
    return s.confirmed ? number : kNone;
}

} // namespace moscope
