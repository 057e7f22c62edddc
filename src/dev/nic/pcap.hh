// SPDX-License-Identifier: BSD-3-Clause
// A packet capture file of Ethernet frames with times in nanoseconds (pcap(5), magic a1b23c4dh), as tcpdump and Wireshark
// read it.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "base/types.hh"
#include "net/frame.hh"

namespace moscope::dev {

class Pcap {
  public:
    /// Replaces the file. UserError if it cannot be written.
    explicit Pcap(const std::string &path);
    void write(net::Bytes frame, Tick at);

  private:
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_;
};

} // namespace moscope::dev
