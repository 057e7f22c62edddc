// SPDX-License-Identifier: BSD-3-Clause
// The block device: what reads, writes and the other requests do, when they complete, the overlay over the host's file,
// and requests that break the rules.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hh"
#include "base/rng.hh"
#include "dev/virtio/virtio_blk.hh"
#include "dev/virtio/virtio_driver.hh"

using namespace moscope;
using namespace moscope::dev;
using namespace moscope::dev::test;

namespace {

constexpr std::uint64_t kFeatures = VirtioPci::kVersion1 | VirtioPci::kIndirect;
constexpr Addr kHeader = 0x100000, kStatus = 0x100100, kData = 0x200000;
constexpr Tick kLatency = 10'000 * kTicksPerNs;

/// A host file of 20 sectors and a half, each byte its sector number plus one.
class File {
  public:
    File() {
        std::string pattern = (std::filesystem::temp_directory_path() / "moscope-disk-XXXXXX").string();
        const int fd = mkstemp(pattern.data());
        EXPECT_GE(fd, 0);
        ::close(fd);
        path = pattern;
        std::ofstream out(path, std::ios::binary);
        for (unsigned i = 0; i < 20 * 512 + 256; ++i)
            out.put(static_cast<char>(i / 512 + 1));
    }
    ~File() { std::filesystem::remove(path); }
    std::string content() const {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::string path;
};

struct Disk {
    File file;
    GuestBoard b;
    DiskImage image{file.path};
    VirtioBlk device;
    Driver d{b, device};
    explicit Disk(VirtioBlk::Parameters p = {.latency = kLatency, .bytes_per_second = 0, .id = "disk0"})
        : device("blk", p, image, b.dma, b.messages, b.queue, b.time) {}

    /// Makes a request available and notifies; descriptors from `first` on.
    void request(std::uint32_t type, std::uint64_t sector, std::uint32_t bytes, bool to_guest, unsigned first = 0,
                 Addr data = kData) {
        const Addr header = kHeader + 0x200 * first, status = kStatus + 0x200 * first;
        b.put<std::uint32_t>(header, type);
        b.put<std::uint64_t>(header + 8, sector);
        b.put<std::uint8_t>(status, 0xee);
        std::vector<Driver::Buffer> buffers{{header, 16, false}};
        if (bytes != 0)
            buffers.push_back({data, bytes, to_guest});
        buffers.push_back({status, 1, true});
        d.add(buffers, first);
        d.notify();
    }
    std::uint8_t status(unsigned first = 0) { return b.get<std::uint8_t>(kStatus + 0x200 * first); }
    /// The same and waits; the status byte.
    std::uint8_t run(std::uint32_t type, std::uint64_t sector, std::uint32_t bytes, bool to_guest) {
        request(type, sector, bytes, to_guest);
        b.queue.run();
        return status();
    }
};

} // namespace

TEST(VirtioBlk, TellsItsCapacityInSectors) {
    Disk k;
    EXPECT_EQ(k.d.config(0), 0x10421af4u);
    EXPECT_EQ(k.b.memory.read(0, k.d.region[4], 8), 21u);
    EXPECT_EQ(k.b.memory.read(0, k.d.region[4] + 20, 4), 512u);
}

TEST(VirtioBlk, ReadsTheFileAndZerosAfterItsEnd) {
    Disk k;
    k.d.start(kFeatures);
    EXPECT_EQ(k.run(0, 19, 1024, true), 0);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData), 20);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData + 512), 21);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData + 512 + 255), 21);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData + 512 + 256), 0);
    EXPECT_EQ(k.d.used_length(0), 1025u);
}

TEST(VirtioBlk, WritesStayInTheOverlay) {
    Disk k;
    k.d.start(kFeatures);
    const std::string before = k.file.content();
    for (unsigned i = 0; i < 1024; ++i)
        k.b.put<std::uint8_t>(kData + i, 0x77);
    EXPECT_EQ(k.run(1, 7, 1024, false), 0); // sectors 7 and 8, on both sides of a page's edge
    EXPECT_EQ(k.image.pages_written(), 2u);
    EXPECT_EQ(k.run(0, 6, 2048, true), 0);
    const unsigned expected[4] = {7, 0x77, 0x77, 10};
    for (unsigned i = 0; i < 4; ++i)
        EXPECT_EQ(k.b.get<std::uint8_t>(kData + 512 * i), expected[i]) << i;
    EXPECT_EQ(k.file.content(), before);
    EXPECT_EQ(k.run(4, 0, 0, false), 0); // flush
    EXPECT_EQ(k.device.counts().writes, 1u);
    EXPECT_EQ(k.device.counts().flushes, 1u);
}

TEST(VirtioBlk, GivesItsName) {
    Disk k;
    k.d.start(kFeatures);
    EXPECT_EQ(k.run(8, 0, 20, true), 0);
    EXPECT_EQ(k.b.get<std::uint32_t>(kData), 0x6b736964u); // "disk"
}

TEST(VirtioBlk, CompletesAfterItsLatencyAndNotBefore) {
    Disk k;
    k.d.start(kFeatures);
    k.request(0, 0, 512, true);
    EXPECT_EQ(k.b.queue.next(), kLatency);
    k.b.queue.run(kLatency);
    EXPECT_EQ(k.d.used_index(), 0);
    EXPECT_EQ(k.status(), 0xee);
    k.b.queue.run(kLatency + 1);
    EXPECT_EQ(k.d.used_index(), 1);
    EXPECT_EQ(k.b.lines.raised, 1u);
}

TEST(VirtioBlk, RequestsShareTheBandwidth) {
    Disk k({.latency = kLatency, .bytes_per_second = 1'000'000'000, .id = ""});
    k.d.start(kFeatures);
    k.request(0, 0, 512, true, 0);
    k.request(0, 0, 512, true, 3);
    const Tick each = (512 + 16 + 1) * kTicksPerNs;
    EXPECT_EQ(k.b.queue.next(), kLatency + each);
    k.b.queue.run(kLatency + 2 * each);
    EXPECT_EQ(k.d.used_index(), 1);
    k.b.queue.run(kLatency + 2 * each + 1);
    EXPECT_EQ(k.d.used_index(), 2);
}

TEST(VirtioBlk, RefusesWhatIsNotOnTheDisk) {
    Disk k;
    k.d.start(kFeatures);
    EXPECT_EQ(k.run(0, 20, 1024, true), 1);
    EXPECT_EQ(k.run(0, ~0ull, 512, true), 1);
    EXPECT_EQ(k.run(0, 1ull << 55, 512, true), 1);
    EXPECT_EQ(k.run(1, 21, 512, false), 1);
    EXPECT_EQ(k.run(0, 0, 100, true), 1); // not whole sectors
    EXPECT_EQ(k.run(77, 0, 0, false), 2);
    EXPECT_EQ(k.run(0, 20, 512, true), 0);
    EXPECT_EQ(k.image.pages_written(), 0u);
}

TEST(VirtioBlk, ReadOnlyDisksTakeNoWrites) {
    Disk k({.latency = kLatency, .bytes_per_second = 0, .id = "", .read_only = true});
    EXPECT_TRUE(k.d.offered() & 1 << 5);
    k.d.start(kFeatures | 1 << 5);
    EXPECT_EQ(k.run(1, 0, 512, false), 1);
    EXPECT_EQ(k.image.pages_written(), 0u);
}

TEST(VirtioBlk, HeaderMayBeCutInPieces) {
    Disk k;
    k.d.start(kFeatures);
    k.b.put<std::uint32_t>(kHeader, 0);
    k.b.put<std::uint64_t>(kHeader + 8, 3);
    k.d.add({{kHeader, 5, false}, {kHeader + 5, 11, false}, {kData, 300, true}, {kData + 300, 213, true}});
    k.d.notify();
    k.b.queue.run();
    EXPECT_EQ(k.d.used_index(), 1);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData), 4);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData + 511), 4);
    EXPECT_EQ(k.b.get<std::uint8_t>(kData + 512), 0); // the status, behind the data
}

TEST(VirtioBlk, RequestsWithoutHeaderOrStatusAskForAReset) {
    for (const bool header : {false, true}) {
        Disk k;
        k.d.start(kFeatures);
        if (header)
            k.d.add({{kHeader, 16, false}});
        else
            k.d.add({{kHeader, 15, false}, {kStatus, 1, true}});
        k.d.notify();
        k.b.queue.run();
        EXPECT_TRUE(k.d.status() & VirtioPci::kNeedsReset);
    }
}

TEST(VirtioBlk, OneChainMadeAvailableOverAndOverIsRefused) {
    Disk k;
    k.d.start(kFeatures);
    for (unsigned i = 0; i < 8; ++i)
        k.request(4, 0, 0, false);
    EXPECT_FALSE(k.d.status() & VirtioPci::kNeedsReset);
    k.request(4, 0, 0, false); // the ninth under way in a queue of eight
    EXPECT_TRUE(k.d.status() & VirtioPci::kNeedsReset);
}

TEST(VirtioBlk, AResetForgetsWhatIsUnderWay) {
    Disk k;
    k.d.start(kFeatures);
    k.request(0, 0, 512, true);
    k.d.common(0x14, 0, 1);
    EXPECT_EQ(k.b.queue.next(), kNever);
    k.d.start(kFeatures);
    EXPECT_EQ(k.run(0, 1, 512, true), 0);
    EXPECT_EQ(k.d.used_index(), 1);
}

TEST(VirtioBlk, WithoutBusMasteringNothingMoves) {
    Disk k;
    k.d.start(kFeatures);
    k.request(0, 0, 512, true);
    k.b.put<std::uint32_t>(kData, 0xabcdef01);
    k.d.config(pci::kCommand, pci::kMemorySpace, 2);
    k.b.queue.run();
    EXPECT_EQ(k.status(), 0xee);
    EXPECT_EQ(k.b.get<std::uint32_t>(kData), 0xabcdef01u);
    k.d.config(pci::kCommand, pci::kMemorySpace | pci::kBusMaster, 2);
    EXPECT_EQ(k.run(0, 1, 512, true), 0) << "later requests are served";
}

TEST(VirtioBlk, ACheckpointHoldsPagesAndRequestsUnderWay) {
    Disk k;
    k.d.start(kFeatures);
    k.b.put<std::uint8_t>(kData, 0x55);
    EXPECT_EQ(k.run(1, 5, 512, false), 0);
    k.request(0, 5, 512, true, 3, kData + 0x1000);
    Archive save;
    k.b.host.archive(save);

    File same;
    GuestBoard b;
    DiskImage image(same.path);
    VirtioBlk device("blk", {.latency = kLatency, .bytes_per_second = 0, .id = "disk0"}, image, b.dma, b.messages,
                     b.queue, b.time);
    b.host.add(Driver::kSlot, 0, device);
    b.host.reset();
    Archive load(save.bytes());
    b.host.archive(load);
    b.bytes = k.b.bytes;
    b.map.memory = b.bytes.data();
    EXPECT_EQ(b.queue.next(), k.b.queue.next());
    b.queue.run();
    EXPECT_EQ(b.get<std::uint8_t>(kData + 0x1000), 0x55);
    EXPECT_EQ(b.get<std::uint16_t>(Driver::kUsed + 2), 2);
}

TEST(DiskImage, MissingFilesEmptyFilesAndFoldersAreUserErrors) {
    EXPECT_THROW(DiskImage("/nonexistent/image"), UserError);
    EXPECT_THROW(DiskImage(std::filesystem::temp_directory_path().string()), UserError);
    File f;
    std::ofstream(f.path, std::ios::trunc).flush();
    EXPECT_THROW(DiskImage(f.path), UserError);
}

TEST(DiskImage, ACheckpointWithAnotherFileIsRefused) {
    File one, two;
    std::ofstream(two.path, std::ios::app) << "x";
    DiskImage a(one.path), b(two.path);
    Archive save;
    a.archive(save);
    Archive load(save.bytes());
    EXPECT_THROW(b.archive(load), UserError);
}

namespace {

/// Rounds of 400 steps: requests, most of them nearly right, beside random descriptors, rings and registers. The file
/// stays as it was whatever the guest asks for.
void fuzz(unsigned rounds) {
    Rng rng(11);
    const auto pick = [&](std::uint64_t below) { return static_cast<unsigned>(rng.below(below)); };
    const auto half = [&](std::uint64_t below) { return static_cast<std::uint16_t>(rng.below(below)); };
    std::uint64_t completed = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        Disk k;
        k.d.start(kFeatures);
        const std::string before = round % 1000 ? "" : k.file.content();
        for (unsigned i = 0; i < 400; ++i) {
            switch (rng.below(8)) {
            case 0:
            case 1:
            case 2: k.d.scribble(rng); break;
            case 3: k.d.descriptor(pick(8), rng.below(GuestBoard::kBytes), pick(5000), half(8), half(9)); break;
            case 4: k.d.make_available(half(9)); break;
            default:
                k.request(pick(4) ? pick(2) : pick(10), pick(8) ? rng.below(24) : rng.next(),
                          static_cast<std::uint32_t>(pick(4) ? 512 * rng.below(4) : rng.next()), pick(2), 3 * pick(2));
            }
            if (pick(3) == 0)
                k.b.queue.run();
            if (k.d.status() & VirtioPci::kNeedsReset)
                k.d.start(kFeatures);
        }
        k.b.queue.run();
        completed += k.b.writes != 0;
        if (!before.empty()) {
            EXPECT_EQ(k.file.content(), before);
        }
    }
    EXPECT_GT(completed, rounds * 3 / 4) << "of the rounds: the device has answered at least once";
}

} // namespace

TEST(VirtioBlkHostile, RandomRequestsRingsAndRegistersDoNoHarm) { fuzz(100); }
TEST(VirtioBlkHostileLong, TenMillionStepsDoNoHarm) { fuzz(25'000); }
