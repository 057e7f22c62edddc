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
    /// Writes a frame with time `at`; `now` never goes back. The frames of the file are in order of time: a frame with
    /// a time after `now` is held until a call with a later `now`, or until the file is closed. UserError if a frame
    /// cannot be written.
    void write(net::Bytes frame, Tick at, Tick now);

  private:
    void put(net::Bytes frame, Tick at);
    void put_until(Tick now);
    void flush();

    std::string path_;
    std::multimap<Tick, net::Frame> later_;
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> file_;
};

} // namespace moscope::dev
