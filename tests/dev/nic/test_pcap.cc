// SPDX-License-Identifier: BSD-3-Clause
// A capture file that cannot be written whole is reported, and not left short.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hh"
#include "dev/nic/pcap.hh"

namespace moscope::dev {
namespace {

TEST(Pcap, AFullFileSystemIsReportedWithTheFile) {
    if (!std::ifstream("/dev/full").is_open())
        GTEST_SKIP();
    try {
        Pcap pcap("/dev/full");
        pcap.write(net::Frame(60), 1, 1);
        FAIL() << "nothing was reported";
    } catch (const UserError &e) {
        EXPECT_EQ(std::string(e.what()).rfind("/dev/full: cannot be written: ", 0), 0u) << e.what();
    }
}

} // namespace
} // namespace moscope::dev
