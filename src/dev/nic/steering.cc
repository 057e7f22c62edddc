// SPDX-License-Identifier: BSD-3-Clause
#include "dev/nic/steering.hh"

#include <map>
#include <string>

#include "base/error.hh"
#include "dev/nic/toeplitz.hh"

namespace moscope::dev {

namespace {

/// A local static, as registrations of other files may run before this file's own initialisation.
std::map<std::string_view, RegisteredSteering::Make> &registry() {
    static std::map<std::string_view, RegisteredSteering::Make> entries;
    return entries;
}

} // namespace

unsigned RssConfig::queue_of(const net::Flow &flow, unsigned queues) const {
    const bool ports = flow.ports && ((flow.protocol == net::kTcp && (types & kTcpv4)) ||
                                      (flow.protocol == net::kUdp && (types & kUdpv4)));
    if (flow.protocol == 0 || !(ports || (types & kIpv4)))
        return unclassified % queues;
    const std::uint32_t hash =
        toeplitz(key.empty() ? default_rss_key() : std::span<const std::uint8_t>(key), toeplitz_input(flow, ports));
    return table.empty() ? hash % kEntries % queues : table[hash % table.size()] % queues;
}

RegisteredSteering::RegisteredSteering(std::string_view name, Make make) { registry()[name] = make; }

std::unique_ptr<Steering> make_steering(std::string_view name, unsigned first_port) {
    const auto at = registry().find(name);
    if (at != registry().end())
        return at->second(first_port);
    std::string known;
    for (const auto &[policy, make] : registry())
        known += (known.empty() ? "" : ", ") + std::string(policy);
    throw UserError("nic.steering: " + std::string(name) + ": expected one of " + known);
}

std::vector<std::string> steering_policies() {
    std::vector<std::string> names;
    for (const auto &[name, make] : registry())
        names.emplace_back(name);
    return names;
}

} // namespace moscope::dev
