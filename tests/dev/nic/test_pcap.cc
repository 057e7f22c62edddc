// SPDX-License-Identifier: BSD-3-Clause
// A capture file that cannot be written whole is reported, and not left short.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
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
        EXPECT_STREQ(e.what(), "/dev/full: cannot be written: No space left on device: expected free space");
    }
}

TEST(Pcap, TheErrorAtTheFileSizeLimitNamesTheLimit) {
    const auto path = (std::filesystem::temp_directory_path() / ("pcap" + std::to_string(getpid()))).string();
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit low{24, limit.rlim_max}; // the header of the file
    std::string said;
    try {
        Pcap pcap(path);
        setrlimit(RLIMIT_FSIZE, &low);
        pcap.write(net::Frame(60), 1, 1);
    } catch (const UserError &e) {
        said = e.what();
    }
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    std::filesystem::remove(path);
    EXPECT_EQ(said, path + ": cannot be written: File too large: expected a higher limit of file sizes (ulimit -f)");
}

} // namespace
} // namespace moscope::dev
