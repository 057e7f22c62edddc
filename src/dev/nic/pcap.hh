// SPDX-License-Identifier: BSD-3-Clause
// A packet capture file of Ethernet frames with times in nanoseconds (pcap(5), magic a1b23c4dh), as tcpdump and Wireshark
// read it.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "base/types.hh"
#include "net/frame.hh"

namespace moscope::dev {

class Pcap {
  public:
    /// Replaces the file. UserError if it cannot be written.
    explicit Pcap(const std::string &path);
    ~Pcap();
    /// A frame of time `at`; `now` never goes back. The frames of the file are in the order of their times: a frame
    /// whose time is after `now` is kept until then.
    void write(net::Bytes frame, Tick at, Tick now);

  private:
    void put(net::Bytes frame, Tick at);
    void put_until(Tick now);

    std::multimap<Tick, net::Frame> later_;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_;
};

} // namespace moscope::dev
