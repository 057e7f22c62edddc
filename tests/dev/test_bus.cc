// SPDX-License-Identifier: BSD-3-Clause
// Ranges of the platform's address spaces: which device answers which address, and which addresses none answers.
#include <gtest/gtest.h>

#include "dev/bus.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

struct Recorder : Device {
    using Device::Device;
    std::uint64_t read(Requester who, unsigned range, Addr offset, unsigned size) override {
        last = {who, range, offset, size, 0};
        return 0x1122334455667788;
    }
    void write(Requester who, unsigned range, Addr offset, std::uint64_t value, unsigned size) override {
        last = {who, range, offset, size, value};
        ++writes;
    }
    void archive(Archive &) override {}
    struct Access {
        Requester who;
        unsigned range;
        Addr offset;
        unsigned size;
        std::uint64_t value;
    } last{};
    int writes = 0;
};

/// Two devices, 100h bytes at 1000h (range 3) and 10h bytes at 1100h.
struct TwoDevices : testing::Test {
    TwoDevices() {
        s.map(0x1000, 0x100, a, 3);
        s.map(0x1100, 0x10, b, 0);
    }
    AddressSpace s;
    Recorder a{"a"}, b{"b"};
};

TEST_F(TwoDevices, AnAccessReachesTheDeviceWithItsOffsetAndRange) {
    EXPECT_EQ(s.read(7, 0x10F8, 4), 0x55667788u);
    EXPECT_EQ(a.last.who, 7u);
    EXPECT_EQ(a.last.range, 3u);
    EXPECT_EQ(a.last.offset, 0xF8u);
    s.write(1, 0x1100, 0x1FF, 1);
    EXPECT_EQ(b.last.value, 0xFFu);
    EXPECT_EQ(b.last.offset, 0u);
}

TEST(AddressSpace, AnUnmappedAddressReadsAsOnesAndIgnoresWrites) {
    AddressSpace s;
    Recorder a("a");
    s.map(0x1000, 0x100, a, 0);
    EXPECT_EQ(s.read(0, 0xFFF, 1), 0xFFu);
    EXPECT_EQ(s.read(0, 0x1100, 8), ~0ull);
    EXPECT_EQ(s.read(0, 0, 2), 0xFFFFu);
    s.write(0, 0x1100, 1, 4);
    EXPECT_EQ(a.writes, 0);
    EXPECT_TRUE(s.mapped(0x10FF));
    EXPECT_FALSE(s.mapped(0x1100));
}

TEST_F(TwoDevices, BytesBeyondTheEndOfARangeReadAsOnes) {
    EXPECT_EQ(s.read(0, 0x10FF, 4), 0xFFFFFF88u);
    s.write(0, 0x10FF, 0xAABBCCDD, 4);
    EXPECT_EQ(a.last.value, 0xDDu);
    EXPECT_EQ(b.writes, 0);
}

TEST(AddressSpace, OverlapIsAnErrorThatNamesBoth) {
    AddressSpace s;
    Recorder a("first"), b("second");
    s.map(0x1000, 0x100, a, 0);
    for (const auto &[base, size] : {std::pair<Addr, std::uint64_t>{0x10FF, 1}, {0xFFF, 2}, {0x1040, 8}, {0, 0x10000}})
        try {
            s.map(base, size, b, 0);
            FAIL() << base;
        } catch (const UserError &e) {
            EXPECT_NE(std::string(e.what()).find("first"), std::string::npos);
            EXPECT_NE(std::string(e.what()).find("second"), std::string::npos);
        }
    EXPECT_THROW(s.map(0x2000, 0, b, 0), UserError);
    EXPECT_THROW(s.map(~0ull, 2, b, 0), UserError);
    s.map(~0ull, 1, b, 1); // the last byte there is
    EXPECT_EQ(s.read(0, ~0ull, 1), 0x88u);
}

TEST(AddressSpace, ARangeTakenOutAnswersNoMoreAndCanMove) {
    AddressSpace s;
    Recorder a("a");
    s.map(0x1000, 0x100, a, 0);
    s.map(0x3000, 0x100, a, 1);
    s.unmap(a, 0);
    s.unmap(a, 9);
    EXPECT_FALSE(s.mapped(0x1000));
    EXPECT_TRUE(s.mapped(0x3000));
    s.map(0x1080, 0x100, a, 0);
    EXPECT_TRUE(s.mapped(0x1080));
}

} // namespace
