// SPDX-License-Identifier: BSD-3-Clause
// Checkpoint files: what was written comes back, and a damaged file is refused with the reason, wherever the damage is.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.hh"
#include "board/checkpoint.hh"
#include "board/full_system.hh"
#include "board/system_config.hh"

namespace moscope {
namespace {

constexpr std::uint64_t kBytes = 8 << 20;
constexpr const char *kDescription = "a machine";

struct Checkpoint : testing::Test {
    std::string path = (std::filesystem::path(testing::TempDir()) /
                        (std::string("moscope-") + testing::UnitTest::GetInstance()->current_test_info()->name()))
                           .string();
    ~Checkpoint() override { std::filesystem::remove(path); }

    static Archive state() {
        Archive a;
        std::uint64_t x = 0x1234;
        a.section("test");
        a(x);
        return a;
    }
    void write() {
        GuestMemory memory(kBytes);
        Rng rng(1);
        for (std::uint64_t page : {0u, 3u, 4u, 2000u}) // 3 and 4 are equal
            for (unsigned i = 0; i < 64; ++i) {
                const std::uint64_t x = page == 4 ? 0 : rng.next();
                std::memcpy(memory.base() + page * 4096 + 64 * i, &x, 8);
            }
        std::memcpy(memory.base() + 4 * 4096, memory.base() + 3 * 4096, 4096);
        memory.base()[7 * 4096] = std::byte{0}; // touched and zero
        write_checkpoint(path, kDescription, state(), memory);
    }
    std::vector<char> file() const {
        std::ifstream f(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(f), {}};
    }
    void replace(const std::vector<char> &bytes) const {
        std::ofstream f(path, std::ios::binary | std::ios::trunc);
        f.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }
    static auto equals(const std::string &wanted) {
        return [wanted](const std::string &description) { return description == wanted; };
    }
    /// The error that reading reports; empty if there is none.
    std::string complaint(const std::string &description = kDescription) const {
        GuestMemory memory(kBytes);
        try {
            read_checkpoint(path, equals(description), memory);
        } catch (const UserError &e) {
            return e.what();
        }
        return "";
    }
};

TEST_F(Checkpoint, WhatWasWrittenComesBack) {
    write();
    GuestMemory memory(kBytes);
    Archive a = read_checkpoint(path, equals(kDescription), memory);
    std::uint64_t x = 0;
    a.section("test");
    a(x);
    EXPECT_EQ(x, 0x1234u);
    EXPECT_NE(memory.base()[2000 * 4096], std::byte{0});
    EXPECT_EQ(std::memcmp(memory.base() + 3 * 4096, memory.base() + 4 * 4096, 4096), 0);
    EXPECT_EQ(memory.base()[7 * 4096], std::byte{0});
    EXPECT_EQ(read_checkpoint_description(path), kDescription);
}

TEST(GuestMemory, ATouchedPageCountsAloneWhateverHugePagesTheHostUses) {
    constexpr std::uint64_t kHuge = 2 << 20;
    GuestMemory memory(64 * kHuge);
    const std::uint64_t first = (kHuge - reinterpret_cast<std::uintptr_t>(memory.base()) % kHuge) / 4096;
    for (unsigned i = 0; i < 32; ++i)
        memory.base()[first * 4096 + i * kHuge + 4096 * i] = std::byte{1};
    const std::vector<std::uint64_t> touched = touched_pages(memory);
    ASSERT_EQ(touched.size(), 32u);
    for (unsigned i = 0; i < 32; ++i)
        EXPECT_EQ(touched[i], first + i * (kHuge / 4096) + i);
}

/// How Linux flags the mapping that the address lies in (proc(5), smaps: VmFlags).
std::string flags_of_mapping(std::uintptr_t address) {
    std::ifstream maps("/proc/self/smaps");
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        std::uintptr_t first = 0, last = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &first, &last) == 2)
            inside = first <= address && address < last;
        else if (inside && line.rfind("VmFlags:", 0) == 0)
            return line + " ";
    }
    return "";
}

TEST(GuestMemory, TheHostIsAskedForNoHugePages) {
    if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
        GTEST_SKIP() << "this host has none";
    const GuestMemory memory(kBytes);
    const std::string flags = flags_of_mapping(reinterpret_cast<std::uintptr_t>(memory.base()));
    EXPECT_NE(flags.find(" nh "), std::string::npos) << flags;
}

TEST_F(Checkpoint, ATruncatedFileIsSaidToBeTruncatedWhereverItEnds) {
    write();
    const std::vector<char> whole = file();
    for (std::size_t n = 0; n < whole.size(); n += n < 200 ? 1 : 37) {
        replace({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
        EXPECT_NE(complaint().find("is truncated"), std::string::npos)
            << n << " of " << whole.size() << ": " << complaint();
    }
}

TEST_F(Checkpoint, BytesBehindItsEndAreRefused) {
    write();
    std::vector<char> longer = file();
    longer.insert(longer.end(), {'j', 'u', 'n', 'k', '\n'});
    replace(longer);
    EXPECT_EQ(complaint(), path + ": has 5 more bytes after its end: expected the checkpoint as it was written");
}

TEST_F(Checkpoint, AnAlteredFileIsRefusedWhereverItWasAltered) {
    write();
    const std::vector<char> whole = file();
    unsigned altered = 0, all = 0;
    for (std::size_t at = 0; at < whole.size(); at += at < 400 ? 1 : 13) {
        std::vector<char> bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
        replace(bytes);
        const std::string said = complaint();
        EXPECT_NE(said, "") << "byte " << at;
        EXPECT_EQ(said.rfind(path, 0), 0u) << "the file is named first";
        altered += said.find("was altered") != std::string::npos;
        ++all;
    }
    EXPECT_GT(altered, all * 3 / 4) << "the rest: magic, version, and lengths that reach beyond the end";
}

TEST_F(Checkpoint, ANewerFormatIsSaidToBeNewer) {
    write();
    std::vector<char> bytes = file();
    bytes[19] = static_cast<char>(kCheckpointVersion + 1);
    replace(bytes);
    EXPECT_NE(complaint().find("newer than this moscope's"), std::string::npos) << complaint();
}

TEST_F(Checkpoint, ACheckpointOfAnotherMachineAndAnotherKindOfFileAreReportedAsSuch) {
    write();
    EXPECT_NE(complaint("another machine").find("was written by another machine"), std::string::npos);
    replace(std::vector<char>(100, 'x'));
    EXPECT_NE(complaint().find("is not a checkpoint"), std::string::npos);
    std::filesystem::remove(path);
    EXPECT_NE(complaint().find("cannot be read"), std::string::npos);
}

TEST(CheckpointsMachine, IsTheSameIfOnlyTheRunsInfoDiffersAndAnotherIfAnythingElseDoes) {
    const std::string one = R"({"cores": 2, "seed": 1, "info": {"checkpoint_at": "ready"}})";
    EXPECT_TRUE(same_machine(one, R"({"seed": 1, "info": {"checkpoint_at": "shell"}, "cores": 2})"));
    EXPECT_FALSE(same_machine(one, R"({"cores": 2, "seed": 2, "info": {"checkpoint_at": "ready"}})"));
    EXPECT_FALSE(same_machine("no description", "no description"));
}

TEST_F(Checkpoint, NothingIsLeftBehindIfItCannotBeWritten) {
    const GuestMemory memory(kBytes);
    EXPECT_THROW(write_checkpoint("/nonexistent/folder/file", kDescription, state(), memory), UserError);
}

TEST_F(Checkpoint, OneOfOtherDevicesIsRefusedWithTheNameOfTheFile) {
    using nlohmann::json;
    const json cpu = {
        {"description", ""}, {"max_basic", 0}, {"max_extended", 0}, {"leaves", json::array()}, {"msrs", json::array()}};
    const std::string config = json{
        {"schema", "moscope.system/1"},
        {"cores", 1},
        {"chips", 1},
        {"cores_per_chip", 1},
        {"core_clock", {{"num", 1'250'000}, {"den", 3}}},
        {"memory_per_node", std::uint64_t{64} << 20},
        {"hops", {{0}}},
        {"cpu", cpu},
        {"kernel", ""},
        {"initrd", ""},
        {"append", ""},
        {"disk", ""},
        {"seed", 1},
        {"restore", true}}.dump();
    FullSystem system(config);
    write_checkpoint(path, parse_system_config(config).description, state(), GuestMemory(kBytes));
    try {
        system.restore(path);
        FAIL() << "a checkpoint of other devices was taken";
    } catch (const UserError &e) {
        EXPECT_EQ(std::string(e.what()).find(path + ": checkpoint: holds \"test\" where "), 0u) << e.what();
    }
}

TEST_F(Checkpoint, AStateOfManyMegabytesComesBackAndIsRefusedWhereItWasAltered) {
    std::vector<std::uint8_t> bytes(std::size_t{40} << 20);
    bytes.back() = 7;
    const GuestMemory memory(kBytes);
    write_checkpoint(path, kDescription, Archive(bytes), memory);
    GuestMemory other(kBytes);
    EXPECT_TRUE(read_checkpoint(path, equals(kDescription), other).bytes() == bytes);
    std::vector<char> whole = file();
    whole[whole.size() / 2] ^= 1;
    replace(whole);
    EXPECT_NE(complaint().find("was altered"), std::string::npos) << complaint();
}

using CheckpointLong = Checkpoint;

TEST_F(CheckpointLong, AStateOfMoreThanAGigabyteIsRead) {
    const GuestMemory memory(kBytes);
    std::vector<std::uint8_t> bytes((std::size_t{1} << 30) + 1); // as after a gigabyte of writes to the disk
    write_checkpoint(path, kDescription, Archive(std::move(bytes)), memory);
    GuestMemory other(kBytes);
    EXPECT_EQ(read_checkpoint(path, equals(kDescription), other).bytes().size(), (std::size_t{1} << 30) + 1);
}

TEST_F(CheckpointLong, OneGigabyteTouchedIsRestoredWithinThreeSeconds) {
    constexpr std::uint64_t kGigabyte = std::uint64_t{1} << 30;
    {
        GuestMemory memory(2 * kGigabyte);
        Rng rng(1);
        // Half of each page is noise, half repeats: about what zstd makes of a running system's memory.
        for (std::uint64_t i = 0; i < kGigabyte; i += 8) {
            const std::uint64_t x = (i & 2048) ? rng.next() : i & ~std::uint64_t{0xff};
            std::memcpy(memory.base() + i, &x, 8);
        }
        write_checkpoint(path, kDescription, state(), memory);
    }
    GuestMemory memory(2 * kGigabyte);
    const auto begin = std::chrono::steady_clock::now();
    read_checkpoint(path, equals(kDescription), memory);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf("restored in %.2f s\n", seconds);
    EXPECT_LT(seconds, 3.0);
}

} // namespace
} // namespace moscope
