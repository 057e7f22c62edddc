// SPDX-License-Identifier: BSD-3-Clause
// ELF kernels by PVH note and Multiboot header: where segments go, what the kernel receives, what is refused.
#include "board/loader/fixture.hh"

namespace moscope::loader::testing {
namespace {

constexpr Addr kAt = 4 << 20;

struct Segment {
    std::uint32_t type;
    Addr address;
    Image content;
    std::uint64_t memory_size;
};

/// A 64-bit executable with these segments; virtual addresses are 1 GiB above the physical ones.
Image elf64(const std::vector<Segment> &segments, Addr entry) {
    Image f(64);
    put_text(f, 0,
             std::string("\x7f"
                         "ELF\2\1\1",
                         7));
    put<std::uint16_t>(f, 16, 2);
    put<std::uint16_t>(f, 18, 62);
    put<std::uint64_t>(f, 24, entry);
    put<std::uint64_t>(f, 32, 64);
    put<std::uint16_t>(f, 54, 56);
    put<std::uint16_t>(f, 56, static_cast<std::uint16_t>(segments.size()));
    std::size_t data = 64 + 56 * segments.size();
    f.resize(data);
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Segment &s = segments[i];
        const std::size_t at = 64 + 56 * i;
        put(f, at, s.type);
        put<std::uint64_t>(f, at + 8, data);
        put<std::uint64_t>(f, at + 16, s.address + (1 << 30));
        put<std::uint64_t>(f, at + 24, s.address);
        put<std::uint64_t>(f, at + 32, s.content.size());
        put<std::uint64_t>(f, at + 40, s.memory_size);
        put<std::uint64_t>(f, at + 48, 4);
        f.insert(f.end(), s.content.begin(), s.content.end());
        data = f.size();
    }
    return f;
}

Image note(const std::string &owner, std::uint32_t type, std::uint32_t value) {
    Image n;
    put<std::uint32_t>(n, 0, static_cast<std::uint32_t>(owner.size() + 1));
    put<std::uint32_t>(n, 4, 4);
    put(n, 8, type);
    put_text(n, 12, owner);
    n.resize((12 + owner.size() + 1 + 3) / 4 * 4);
    put(n, n.size(), value);
    return n;
}

Image notes() {
    Image all = note("GNU", 18, 1); // the right type of another owner
    for (const Image &n : {note("Xen", 5, 2), note("Xen", 18, kAt + 0x40)})
        all.insert(all.end(), n.begin(), n.end());
    return all;
}

struct Pvh : Loader {
    Pvh() { kernel = elf64({{1, kAt, Image(100, 0x55), 300}, {4, 0, notes(), 0}}, 0); }
};

TEST_F(Pvh, StartsAtTheNotesEntryIn32BitModeWithZeroedBss) {
    std::memset(map.host(PhysAddr(kAt)), 0xff, 400);
    const LoadedKernel k = load();
    EXPECT_EQ(k.protocol, "PVH");
    EXPECT_EQ(k.entry.rip, kAt + 0x40);
    EXPECT_EQ(k.start, kAt);
    EXPECT_EQ(k.end, kAt + 300);
    EXPECT_EQ(read<std::uint8_t>(kAt + 99), 0x55);
    EXPECT_EQ(read<std::uint8_t>(kAt + 100), 0);
    EXPECT_EQ(read<std::uint8_t>(kAt + 299), 0);
    EXPECT_EQ(read<std::uint8_t>(kAt + 300), 0xff);
    EXPECT_EQ(k.entry.cr0 & x86::cr0::pg, 0u);
    EXPECT_EQ(k.entry.tr.limit, 0x67u);
}

TEST_F(Pvh, StartInfoNamesCommandLineModuleMapAndRootPointer) {
    initrd.assign(100, 7);
    const LoadedKernel k = load();
    const Addr s = k.entry.rbx;
    EXPECT_EQ(read<std::uint32_t>(s), 0x336ec578u);
    EXPECT_EQ(read<std::uint32_t>(s + 4), 1u);
    ASSERT_EQ(read<std::uint32_t>(s + 12), 1u);
    const Addr module = read<std::uint64_t>(s + 16);
    EXPECT_EQ(read<std::uint64_t>(module), k.initrd);
    EXPECT_EQ(read<std::uint64_t>(module + 8), 100u);
    EXPECT_EQ(text(read<std::uint64_t>(s + 24)), command_line);
    EXPECT_EQ(read<std::uint64_t>(s + 32), 0xf1234u);
    ASSERT_EQ(read<std::uint32_t>(s + 48), 4u);
    EXPECT_EQ(read<std::uint64_t>(read<std::uint64_t>(s + 40) + 24), 0xe0000u);
    EXPECT_EQ(read<std::uint32_t>(read<std::uint64_t>(s + 40) + 24 + 16), 2u);
}

TEST_F(Pvh, WithoutTheNoteItIsRefused) {
    kernel = elf64({{1, kAt, Image(100, 0x55), 300}}, 0);
    EXPECT_EQ(refusal().rfind("kernel.img: is an ELF file without a PVH entry: ", 0), 0u);
}

TEST_F(Pvh, ASegmentOutsideOfMemoryIsRefused) {
    kernel = elf64({{1, 47 * kMiB, Image(100, 0x55), 2 * kMiB}, {4, 0, notes(), 0}}, 0);
    EXPECT_EQ(refusal().rfind("kernel.img: needs the memory from 0x2f00000 to 0x3100000", 0), 0u);
}

TEST_F(Pvh, AFileCutAtAnyLengthIsRefused) {
    const Image whole = kernel;
    for (std::size_t size = 4; size < whole.size(); ++size) {
        kernel.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        ASSERT_EQ(refusal().rfind("kernel.img: ", 0), 0u) << size;
    }
}

TEST_F(Pvh, AnotherProcessorsFileIsRefused) {
    put<std::uint16_t>(kernel, 18, 183);
    EXPECT_NE(refusal().find("another processor"), std::string::npos);
}

TEST_F(Pvh, DamagedHeadersNeverReachOutsideOfTheFileOrTheMemory) { load_damaged(7, 3, 4, kernel.size() - 4); }

Image multiboot_header(std::uint32_t flags) {
    Image h;
    put<std::uint32_t>(h, 0, 0x1badb002);
    put(h, 4, flags);
    put<std::uint32_t>(h, 8, 0u - 0x1badb002u - flags);
    return h;
}

struct Multiboot : Loader {
    Multiboot() {
        Image body = multiboot_header(3);
        body.resize(64, 0x90);
        kernel = elf64({{1, kAt, body, 128}}, kAt + 16 + (1 << 30));
    }
};

TEST_F(Multiboot, AnElfKernelStartsAtThePhysicalAddressOfItsEntry) {
    const LoadedKernel k = load();
    EXPECT_EQ(k.protocol, "Multiboot");
    EXPECT_EQ(k.entry.rip, kAt + 16);
    EXPECT_EQ(k.entry.rax, 0x2badb002u);
    EXPECT_EQ(k.entry.cr0 & x86::cr0::pg, 0u);
}

TEST_F(Multiboot, TheInformationStructureTellsMemoryModuleAndCommandLine) {
    initrd.assign(10, 9);
    const LoadedKernel k = load();
    const Addr i = k.entry.rbx;
    EXPECT_EQ(read<std::uint32_t>(i) & 0x4d, 0x4du);
    EXPECT_EQ(read<std::uint32_t>(i + 8), 47u * 1024);
    EXPECT_EQ(text(read<std::uint32_t>(i + 16)), command_line);
    EXPECT_EQ(read<std::uint32_t>(read<std::uint32_t>(i + 24)), k.initrd);
    EXPECT_EQ(read<std::uint32_t>(i + 44), 4u * 24);
    const Addr map_at = read<std::uint32_t>(i + 48);
    EXPECT_EQ(read<std::uint32_t>(map_at), 20u);
    EXPECT_EQ(read<std::uint64_t>(map_at + 3 * 24 + 4), PhysMap::kTop);
}

TEST_F(Multiboot, AFlatKernelGoesWhereItsHeaderSays) {
    kernel = Image(32, 0x11); // something before the header
    Image h = multiboot_header(0x10000);
    for (const std::uint32_t a : {kAt + 32, kAt, kAt + 80, kAt + 200, kAt + 70})
        put<std::uint32_t>(h, h.size(), static_cast<std::uint32_t>(a));
    kernel.insert(kernel.end(), h.begin(), h.end());
    kernel.resize(100, 0x22);
    const LoadedKernel k = load();
    EXPECT_EQ(k.entry.rip, kAt + 70);
    EXPECT_EQ(k.end, kAt + 200);
    EXPECT_EQ(read<std::uint8_t>(kAt), 0x11);
    EXPECT_EQ(read<std::uint8_t>(kAt + 79), 0x22);
    EXPECT_EQ(read<std::uint8_t>(kAt + 80), 0);
    kernel.resize(79);
    EXPECT_EQ(refusal().rfind("kernel.img: ends after 79 bytes", 0), 0u);
    kernel.resize(50);
    EXPECT_NE(refusal().find("within its Multiboot header"), std::string::npos);
}

TEST_F(Multiboot, AKernelInTheAreaOfTheStructuresIsNotOverwritten) {
    constexpr Addr first = BootMemory::kLow + 0x1000, last = BootMemory::kLow + 0x8000;
    Image body = multiboot_header(3);
    body.resize(last - first, 0x90);
    kernel = elf64({{1, first, body, body.size()}}, first);
    const LoadedKernel k = load();
    EXPECT_EQ(std::memcmp(map.host(PhysAddr(first)), body.data(), body.size()), 0);
    EXPECT_GE(k.entry.gdtr.base, last);
    EXPECT_EQ(text(read<std::uint32_t>(k.entry.rbx + 16)), command_line);

    body.resize(BootMemory::kLowEnd - first);
    kernel = elf64({{1, first, body, body.size()}}, first);
    EXPECT_NE(refusal().find("do not fit below 0x90000"), std::string::npos);
}

TEST_F(Multiboot, AHeaderWithTheWrongChecksumIsNotAccepted) {
    kernel = multiboot_header(3);
    kernel[8] ^= 1;
    kernel.resize(100);
    EXPECT_EQ(refusal().rfind("kernel.img: is not a kernel", 0), 0u);
}

TEST_F(Multiboot, DemandsThatCannotBeMetAreRefused) {
    kernel = elf64({{1, kAt, multiboot_header(4), 128}}, kAt);
    EXPECT_NE(refusal().find("demands a video mode"), std::string::npos);
}

} // namespace
} // namespace moscope::loader::testing
