// SPDX-License-Identifier: BSD-3-Clause
// bzImage: every field of boot_params that Linux reads, page tables walked as the processor would, files that are
// cut short or too old, and a kernel of the distribution where one is in the cache.
#include <cstdlib>
#include <filesystem>

#include "board/loader/fixture.hh"

namespace moscope::loader::testing {
namespace {

constexpr Addr kPreferred = 16 << 20;
constexpr std::uint32_t kInitSize = 0x20000;

struct BzImage : Loader {
    BzImage() {
        kernel.assign(3 * 512, 0); // two sectors of set-up behind the first
        put<std::uint8_t>(kernel, 0x1f1, 2);
        put<std::uint32_t>(kernel, 0x1f4, 64); // 1024 bytes
        put<std::uint16_t>(kernel, 0x1fe, 0xaa55);
        put<std::uint16_t>(kernel, 0x200, 0x6aeb); // the header ends at 202h + 6ah
        put_text(kernel, 0x202, "HdrS");
        put<std::uint16_t>(kernel, 0x206, 0x20f);
        put<std::uint8_t>(kernel, 0x211, 1);
        put<std::uint32_t>(kernel, 0x22c, 0x7fffffff);
        put<std::uint32_t>(kernel, 0x230, 0x200000);
        put<std::uint8_t>(kernel, 0x234, 1);
        put<std::uint16_t>(kernel, 0x236, 1);
        put<std::uint32_t>(kernel, 0x238, 2047);
        put<std::uint64_t>(kernel, 0x258, kPreferred);
        put<std::uint32_t>(kernel, 0x260, kInitSize);
        kernel.resize(3 * 512 + 1024);
        for (unsigned i = 0; i < 1024; ++i)
            kernel[3 * 512 + i] = static_cast<std::uint8_t>(i * 7);
    }
};

TEST_F(BzImage, LiesAtItsPreferredAddressAndIsEnteredAt200hIn64BitMode) {
    const LoadedKernel k = load();
    EXPECT_EQ(k.start, kPreferred);
    EXPECT_EQ(k.end, kPreferred + kInitSize);
    EXPECT_EQ(k.protocol, "Linux 2.15, 64-bit");
    EXPECT_EQ(k.entry.rip, kPreferred + 0x200);
    for (unsigned i = 0; i < 1024; ++i)
        ASSERT_EQ(read<std::uint8_t>(kPreferred + i), static_cast<std::uint8_t>(i * 7));
    EXPECT_EQ(k.entry.efer, x86::efer::lme | x86::efer::lma);
    EXPECT_TRUE(k.entry.cr0 & x86::cr0::pg && k.entry.cr0 & x86::cr0::pe && k.entry.cr4 & x86::cr4::pae);
    EXPECT_EQ(k.entry.code.selector, 0x10);
    EXPECT_EQ(k.entry.data.selector, 0x18);
    EXPECT_TRUE(k.entry.code.code() && k.entry.code.long_mode() && k.entry.code.present());
}

TEST_F(BzImage, PageTablesMapTheFirstFourGigabytesOntoThemselves) {
    const EntryState e = load().entry;
    for (const Addr a :
         {Addr{0}, Addr{0x17123}, kPreferred + 0x200, Addr{0x3fffffff}, Addr{0x40000000}, PhysMap::kTop - 1}) {
        const auto entry = [&](Addr table, unsigned shift) {
            return read<std::uint64_t>((table & ~0xfffull) + (a >> shift & 511) * 8);
        };
        const auto pml4e = entry(e.cr3, 39), pdpte = entry(pml4e, 30), pde = entry(pdpte, 21);
        ASSERT_EQ(pml4e & 3, 3u);
        ASSERT_EQ(pdpte & 0x83, 3u);
        ASSERT_EQ(pde & 0x83, 0x83u);
        EXPECT_EQ((pde & ~0x1fffffull) | (a & 0x1fffff), a);
    }
    EXPECT_EQ(read<std::uint64_t>(e.cr3 + 8), 0u); // and nothing else
}

TEST_F(BzImage, DescriptorsInMemoryAreThoseInTheRegisters) {
    const EntryState e = load().entry;
    ASSERT_GE(e.gdtr.limit, e.tr.selector + 7u);
    EXPECT_EQ(read<std::uint64_t>(e.gdtr.base), 0u);
    EXPECT_EQ(read<std::uint64_t>(e.gdtr.base + 0x10), 0x00af9b000000ffffu);
    EXPECT_EQ(read<std::uint64_t>(e.gdtr.base + 0x18), 0x00cf93000000ffffu);
}

TEST_F(BzImage, BootParamsHoldTheHeaderTheMapTheCommandLineAndTheRootPointer) {
    put<std::uint8_t>(kernel, 0x210, 0); // type of loader, filled in
    const LoadedKernel k = load();
    const Addr p = k.entry.rsi;
    EXPECT_EQ(p % 4096, 0u);
    EXPECT_EQ(read<std::uint32_t>(p + 0x202), 0x53726448u);
    EXPECT_EQ(read<std::uint8_t>(p + 0x210), 0xff);
    EXPECT_EQ(read<std::uint32_t>(p + 0x260), kInitSize);
    EXPECT_EQ(read<std::uint8_t>(p + 0x1ef), 0); // the sentinel: the rest of the page is meant
    EXPECT_EQ(read<std::uint64_t>(p + 0x070), 0xf1234u);
    EXPECT_EQ(text(read<std::uint32_t>(p + 0x228)), command_line);
    ASSERT_EQ(read<std::uint8_t>(p + 0x1e8), 4);
    EXPECT_EQ(read<std::uint64_t>(p + 0x2d0 + 20), 0xe0000u);
    EXPECT_EQ(read<std::uint32_t>(p + 0x2d0 + 20 + 16), 2u);
    EXPECT_EQ(read<std::uint64_t>(p + 0x2d0 + 60), PhysMap::kTop);
    EXPECT_EQ(read<std::uint64_t>(p + 0x2d0 + 60 + 8), 16 * kMiB);
    EXPECT_EQ(read<std::uint32_t>(p + 0x218), 0u); // no initial file system
}

TEST_F(BzImage, TheInitialFileSystemLiesAsHighAsItMayBelow4GiB) {
    initrd.assign(5000, 0xab);
    const LoadedKernel k = load();
    EXPECT_EQ(k.initrd, 48 * kMiB - 8192);
    EXPECT_EQ(read<std::uint32_t>(k.entry.rsi + 0x218), k.initrd);
    EXPECT_EQ(read<std::uint32_t>(k.entry.rsi + 0x21c), 5000u);
    EXPECT_EQ(read<std::uint8_t>(k.initrd + 4999), 0xab);
}

TEST_F(BzImage, TheInitialFileSystemKeepsBelowTheKernelsLimit) {
    initrd.assign(5000, 0xab);
    put<std::uint32_t>(kernel, 0x22c, 0x1ffffff);
    EXPECT_EQ(load().initrd, 0x2000000u - 8192);
}

TEST_F(BzImage, AnOldKernelStartsIn32BitMode) {
    put<std::uint16_t>(kernel, 0x206, 0x20a);
    const LoadedKernel k = load();
    EXPECT_EQ(k.entry.rip, kPreferred);
    EXPECT_EQ(k.protocol, "Linux 2.10, 32-bit");
    EXPECT_FALSE(k.entry.cr0 & x86::cr0::pg);
    EXPECT_EQ(k.entry.efer, 0u);
    EXPECT_TRUE(k.entry.code.big() && !k.entry.code.long_mode());
}

TEST_F(BzImage, MovesIfItsPreferredAddressIsTakenAndItIsRelocatable) {
    put<std::uint64_t>(kernel, 0x258, std::uint64_t{47} << 20); // 64 KiB beyond what is there
    put<std::uint32_t>(kernel, 0x260, 0x110000);
    EXPECT_EQ(load().start, 0x200000u);
    put<std::uint8_t>(kernel, 0x234, 0);
    EXPECT_NE(refusal().find("kernel.img: needs 1 MiB in one piece"), std::string::npos);
}

TEST_F(BzImage, FilesThatAreCutShortOrTooOldAreRefusedByName) {
    const Image whole = kernel;
    for (const std::size_t size :
         {std::size_t{0x206}, std::size_t{0x267}, std::size_t{3 * 512 - 1}, whole.size() - 16}) {
        kernel.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        EXPECT_EQ(refusal().rfind("kernel.img: ends after " + std::to_string(size), 0), 0u) << refusal();
    }
    kernel = whole;
    put<std::uint16_t>(kernel, 0x206, 0x209);
    EXPECT_EQ(refusal(), "kernel.img: uses boot protocol 2.9: expected a bzImage of Linux 2.6.31 or later (2.10)");
    kernel = whole;
    put<std::uint8_t>(kernel, 0x211, 0);
    EXPECT_NE(refusal().find("zImage"), std::string::npos);
}

TEST_F(BzImage, AFileThatIsNotAKernelIsReportedAsSuch) {
    kernel = Image(4096, 'x');
    EXPECT_EQ(refusal().rfind("kernel.img: is not a kernel: ", 0), 0u);
    kernel.clear();
    EXPECT_EQ(refusal().rfind("kernel.img: is empty: ", 0), 0u);
}

TEST_F(BzImage, ACommandLineThatIsTooLongIsRefused) {
    command_line.assign(2047, 'x');
    load();
    command_line.assign(2048, 'x');
    EXPECT_EQ(refusal().rfind("--append: the command line has 2048 characters: expected at most 2047", 0), 0u);
}

TEST_F(BzImage, AnInitialFileSystemThatDoesNotFitIsRefused) {
    initrd.assign(40 << 20, 1);
    EXPECT_EQ(refusal().rfind("--initrd: 40 MiB do not fit", 0), 0u);
}

TEST_F(BzImage, DamagedBytesNeverReachOutsideOfTheFileOrTheMemory) { load_damaged(1, 4, 0x1f1, 0x77); }

/// A kernel of the distribution, where `moscope boot` has fetched one.
std::string cached_kernel() {
    const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    if (!cache && !home)
        return "";
    const std::filesystem::path base = cache ? cache : std::filesystem::path(home) / ".cache";
    std::error_code none;
    for (const auto &package : std::filesystem::directory_iterator(base / "moscope/guest/packages", none))
        for (const auto &file : std::filesystem::directory_iterator(package.path() / "boot", none))
            if (file.path().filename().string().rfind("vmlinuz-", 0) == 0)
                return file.path();
    return "";
}

TEST(DistributionKernel, IsLoadedByThe64BitProtocol) {
    const std::string file = cached_kernel();
    if (file.empty())
        GTEST_SKIP() << "no kernel in the cache";
    const GuestMemory dram(512 << 20);
    const PhysMap map{dram.base(), dram.bytes(), PhysMap::kTop};
    BootMemory memory(map, {{0, 0x9fc00, RangeKind::usable}, {1 << 20, 511 << 20, RangeKind::usable}});
    const Image kernel = read_file(file);
    const LoadedKernel k = load_kernel({file, kernel, {}, "quiet", 0}, memory);
    EXPECT_NE(k.protocol.find(", 64-bit"), std::string::npos);
    EXPECT_EQ(k.start, 16u << 20);
    EXPECT_GT(k.end - k.start, kernel.size());
}

TEST(ReadFile, NamesAFileThatIsNotThere) {
    try {
        read_file("no/such/kernel");
        FAIL();
    } catch (const UserError &e) {
        EXPECT_EQ(std::string(e.what()).rfind("no/such/kernel: No such file", 0), 0u);
    }
}

} // namespace
} // namespace moscope::loader::testing
