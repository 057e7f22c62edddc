// SPDX-License-Identifier: BSD-3-Clause
// A load generator on the client hosts. Each registers itself in its own source file under net/drivers:
//
//   const RegisteredDriver registered("ticker", [](Services &s) -> std::unique_ptr<Driver> {
//       return std::make_unique<Ticker>(s);
//   });
//
// Every machine with a network card has one of each registered driver, idle until the guest starts it by a command to the
// control host (net/hosts.hh): `start NAME KEY=VALUE ...`, `stop NAME`, `report NAME`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.hh"
#include "base/types.hh"
#include "net/packet.hh"

namespace moscope::net {

class Tcp;

/// What hosts do for drivers.
class Services {
  public:
    virtual ~Services() = default;
    /// Address of client host i.
    static Ip host(unsigned i) { return 0x0a010000 + ((1 + i / kHostsPerNet) << 8) + 1 + i % kHostsPerNet; }
    /// The i of a client host's address; ~0u for any other address.
    static unsigned host_number(Ip ip) {
        const unsigned net = (ip >> 8 & 255) - 1, place = (ip & 255) - 1;
        return ip >> 16 == 0x0a01 && net < kHostsPerNet && place < kHostsPerNet ? net * kHostsPerNet + place : ~0u;
    }
    static constexpr unsigned kHostsPerNet = 250, kMostHosts = 250 * 250;

    virtual void send(const Endpoint &from, const Endpoint &to, Bytes payload, Tick now) = 0;
    /// Reports operations of the workload that the guest has completed, as the client sees them.
    virtual void done(std::uint64_t operations) = 0;
    virtual Tcp &tcp() = 0;
    virtual Rng &rng() = 0;
};

/// KEY=VALUE pairs of a command. Reading a pair marks it as known; `check` refuses the others.
class Settings {
  public:
    explicit Settings(std::map<std::string, std::string> pairs) : pairs_(std::move(pairs)) {}
    /// The value of `key`, or `otherwise` if it is absent. UserError if it is not a number from `least` to `most`.
    std::uint64_t number(const std::string &key, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most);
    void check() const;

  private:
    std::map<std::string, std::string> pairs_, known_;
};

class Driver {
  public:
    virtual ~Driver() = default;
    /// Begins to load the guest at this address. UserError for wrong settings.
    virtual void start(Ip guest, Settings &, Tick now) = 0;
    /// Sends no more requests.
    virtual void stop(Tick now) = 0;
    /// Counts since the start, as `key=value` pairs.
    virtual std::string report() const = 0;
    /// Receives a datagram to one of `ports()` ports from `first_port()` on. The ranges of drivers do not overlap.
    virtual void datagram(const Udp &, Tick /*now*/) {}
    virtual std::uint16_t first_port() const { return 0; }
    virtual std::uint16_t ports() const { return 0; }
    /// The tick at which the driver has to act next; `run` does what is due.
    virtual Tick next() const { return kNever; }
    virtual void run(Tick /*now*/) {}
    virtual void archive(Archive &) = 0;
};

/// An entry of the registry: a static object in the source file of the driver.
class RegisteredDriver {
  public:
    using Make = std::unique_ptr<Driver> (*)(Services &);
    /// `name` is a literal.
    RegisteredDriver(std::string_view name, Make make);
};
/// All registrations by name.
const std::map<std::string_view, RegisteredDriver::Make> &registered_drivers();

} // namespace moscope::net
