// SPDX-License-Identifier: BSD-3-Clause
#include "mem/ruby/runtime/replacement/replacement_policy.hh"

#include <map>

#include "base/error.hh"

namespace moscope::ruby {

namespace {

/// A local static, because policies may register themselves before this file's own objects are initialised.
std::map<std::string_view, ReplacementPolicy> &registry() {
    static std::map<std::string_view, ReplacementPolicy> policies;
    return policies;
}

} // namespace

RegisteredReplacement::RegisteredReplacement(const ReplacementPolicy &policy) {
    registry().emplace(policy.name, policy);
}

const ReplacementPolicy &replacement_policy(std::string_view name, const std::string &where) {
    const auto found = registry().find(name);
    if (found != registry().end())
        return found->second;
    std::string names;
    for (const auto &[known, policy] : registry())
        names += (names.empty() ? "" : ", ") + std::string(known);
    throw UserError(where + ".replacement: \"" + std::string(name) + "\": expected one of " + names);
}

std::vector<std::string> replacement_policies() {
    std::vector<std::string> names;
    for (const auto &[name, policy] : registry())
        names.emplace_back(name);
    return names;
}

} // namespace moscope::ruby
