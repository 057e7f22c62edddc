// SPDX-License-Identifier: BSD-3-Clause
#include "net/hosts.hh"

#include <algorithm>
#include <sstream>

#include "base/error.hh"

namespace moscope::net {

namespace {

constexpr Mac kEveryone = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr std::size_t kMostNeighbours = 256;
constexpr std::size_t kMostOfAWord = 40; ///< characters of a word that an error shows

/// The settings of a `start`. Throws a UserError for a word that is not KEY=VALUE, and for a repeated KEY.
Settings settings_of(std::istringstream &words) {
    std::map<std::string, std::string> pairs;
    for (std::string word; words >> word;) {
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos)
            throw UserError(word.substr(0, kMostOfAWord) + ": expected KEY=VALUE");
        if (!pairs.emplace(word.substr(0, equals), word.substr(equals + 1)).second)
            throw UserError(word.substr(0, std::min(equals, kMostOfAWord)) + ": is given twice: expected it once");
    }
    return Settings(std::move(pairs));
}

} // namespace

Hosts::Hosts(std::uint64_t seed, Transmit transmit, std::function<void(std::uint64_t)> on_operations)
    : rng_(seed),
      transmit_(std::move(transmit)),
      on_operations_(std::move(on_operations)),
      tcp_({}, [this](const Segment &s, Tick now) {
          if (const Mac *mac = mac_for(s.destination.ip, s.source.ip, now))
              transmit_(segment_frame(*mac, s), now);
      }) {
    for (const auto &[name, make] : registered_drivers())
        drivers_[std::string(name)].driver = make(*this);
}

Hosts::~Hosts() = default;

void Hosts::receive(Bytes frame, Tick now) {
    ++counts_.received;
    if (const auto arp = arp_of(frame)) {
        resolve(*arp, now);
        return;
    }
    const auto p = ipv4_of(frame);
    if (!p || !is_host(p->destination)) {
        ++counts_.unknown;
        return;
    }
    if (is_host(p->source) || (!neighbours_.contains(p->source) && neighbours_.size() >= kMostNeighbours))
        return;
    std::copy_n(frame.begin() + 6, 6, neighbours_[p->source].begin());
    if (auto reply = echo_reply(*p, neighbours_[p->source])) {
        transmit_(std::move(*reply), now);
    } else if (p->protocol == kUdp) {
        if (const auto udp = udp_of(*p))
            take(*udp, now);
        else
            ++counts_.bad;
    } else if (p->protocol == kTcp) {
        tcp_.receive(*p, now);
    } else {
        ++counts_.unknown;
    }
}

void Hosts::resolve(const Arp &arp, Tick now) {
    if (is_host(arp.sender))
        return;
    if (arp.sender != 0 && (neighbours_.contains(arp.sender) || neighbours_.size() < kMostNeighbours))
        neighbours_[arp.sender] = arp.sender_mac;
    if (arp.request && is_host(arp.target))
        transmit_(arp_frame({false, mac_of(arp.target), arp.target, arp.sender}, arp.sender_mac), now);
}

const Mac *Hosts::mac_for(Ip guest, Ip asker, Tick now) {
    if (const auto at = neighbours_.find(guest); at != neighbours_.end())
        return &at->second;
    ++counts_.unresolved;
    transmit_(arp_frame({true, mac_of(asker), asker, guest}, kEveryone), now);
    return nullptr;
}

void Hosts::send(const Endpoint &from, const Endpoint &to, Bytes payload, Tick now) {
    if (const Mac *mac = mac_for(to.ip, from.ip, now))
        transmit_(udp_frame(*mac, from, to, payload), now);
}

void Hosts::take(const Udp &udp, Tick now) {
    if (udp.destination.port == kEchoPort) {
        send(udp.destination, udp.source, udp.payload, now);
        return;
    }
    if (udp.destination == Endpoint{kControl, kControlPort}) {
        const std::string line(udp.payload.begin(), udp.payload.end());
        const std::string asker = std::to_string(udp.source.port) + " " + line;
        std::string answer = "ok";
        if (asker != last_start_) {
            answer = command(line, udp.source.ip, now);
            if (answer == "ok") // the answer to a start or a stop; that to a report is longer
                last_start_ = line.starts_with("start ") ? asker : "";
        }
        answer += '\n';
        send(udp.destination, udp.source, {reinterpret_cast<const std::uint8_t *>(answer.data()), answer.size()}, now);
        return;
    }
    for (auto &[name, entry] : drivers_) {
        const unsigned offset = udp.destination.port - unsigned{entry.driver->first_port()};
        if (udp.destination.port >= entry.driver->first_port() && offset < entry.driver->ports()) {
            entry.driver->datagram(udp, now);
            return;
        }
    }
    ++counts_.unknown;
}

std::string Hosts::command(std::string_view line, Ip guest, Tick now) {
    std::istringstream words{std::string(line.substr(0, 1024))};
    std::string verb, name, word;
    words >> verb >> name;
    if (verb != "start" && verb != "stop" && verb != "report")
        return "error: " + (verb.empty() ? "no command" : verb.substr(0, kMostOfAWord)) +
               ": expected start, stop or report";
    const auto at = drivers_.find(name);
    if (at == drivers_.end()) {
        std::string known;
        for (const auto &[driver, entry] : drivers_)
            known += (known.empty() ? "" : ", ") + driver;
        return "error: " + (name.empty() ? verb + ": names no driver" : name.substr(0, kMostOfAWord)) +
               ": expected one of " + known;
    }
    Driver &driver = *at->second.driver;
    try {
        if (verb == "start") {
            Settings settings = settings_of(words);
            driver.start(guest, settings, now);
            at->second.started = true;
            return "ok";
        }
        if (words >> word)
            throw UserError(word.substr(0, kMostOfAWord) + ": expected nothing after the driver's name");
        if (verb == "report")
            return "ok " + driver.report();
        driver.stop(now);
        return "ok";
    } catch (const UserError &error) {
        return std::string("error: ") + error.what();
    }
}

Tick Hosts::next() const {
    Tick t = tcp_.next();
    for (const auto &[name, entry] : drivers_)
        t = std::min(t, entry.driver->next());
    return t;
}

void Hosts::run(Tick now) {
    tcp_.run(now);
    for (auto &[name, entry] : drivers_)
        if (entry.driver->next() <= now)
            entry.driver->run(now);
}

std::map<std::string, std::string> Hosts::reports() const {
    std::map<std::string, std::string> all;
    for (const auto &[name, entry] : drivers_)
        if (entry.started)
            all[name] = entry.driver->report();
    return all;
}

void Hosts::archive(Archive &a) {
    a.section("hosts");
    a(rng_, neighbours_, counts_, tcp_, last_start_);
    for (auto &[name, entry] : drivers_) {
        a.section(name);
        a(entry.started);
        entry.driver->archive(a);
    }
}

} // namespace moscope::net
