// SPDX-License-Identifier: BSD-3-Clause
// The Multiboot specification 0.6.96: a header in the first 8 KiB of the file; the kernel starts in 32-bit mode
// with EBX at the information structure. Small test kernels use it.
#include <optional>
#include <tuple>

#include "base/error.hh"
#include "board/loader/elf.hh"
#include "board/loader/loader.hh"

namespace moscope::loader {

namespace {

constexpr std::uint32_t kHeaderMagic = 0x1badb002, kLoaderMagic = 0x2badb002;
constexpr std::size_t kSearched = 8192;
// Header flags: what a loader must do (low half), and that the addresses are in the header and not in an ELF file.
constexpr std::uint32_t kPageAlign = 1, kMemoryInfo = 2, kVideo = 4, kAddresses = 0x10000;
// Which fields of the information structure are valid.
constexpr std::uint32_t kHasMemory = 1, kHasCommandLine = 4, kHasModules = 8, kHasMap = 0x40, kHasName = 0x200;
constexpr std::size_t kInfo = 116, kModule = 16, kMapEntry = 24;

std::optional<std::size_t> header_at(Bytes f) {
    for (std::size_t at = 0; at + 12 <= std::min(f.size(), kSearched); at += 4)
        if (get<std::uint32_t>(f, at) == kHeaderMagic &&
            get<std::uint32_t>(f, at) + get<std::uint32_t>(f, at + 4) + get<std::uint32_t>(f, at + 8) == 0)
            return at;
    return {};
}

/// A flat image whose header says where it goes; returns first and last address, and the entry point.
std::tuple<Addr, Addr, Addr> load_flat(const BootRequest &request, BootMemory &memory, std::size_t header) {
    const Bytes f = request.kernel;
    if (f.size() < header + 32)
        throw UserError(request.kernel_file + ": ends within its Multiboot header: expected the whole file");
    const auto field = [&](std::size_t n) { return Addr{get<std::uint32_t>(f, header + n)}; };
    const Addr at = field(12), load = field(16), load_end = field(20), bss_end = field(24), entry = field(28);
    if (at < load || at - load > header || (load_end && load_end < load))
        throw UserError(request.kernel_file +
                        ": has addresses in its Multiboot header that contradict each other: expected "
                        "header, load and end addresses in rising order");
    const Bytes body = f.subspan(header - (at - load));
    const std::uint64_t size = load_end ? load_end - load : body.size();
    if (size > body.size())
        throw UserError(request.kernel_file + ": ends after " + std::to_string(f.size()) +
                        " bytes, before the end that its Multiboot header names: expected the whole file");
    const Addr end = std::max(load + size, bss_end);
    memory.zero(load, end - load, request.kernel_file);
    memory.write(load, body.first(size), request.kernel_file);
    return {load, end, entry};
}

} // namespace

bool is_multiboot(Bytes f) { return header_at(f).has_value(); }

LoadedKernel load_multiboot(const BootRequest &request, BootMemory &memory) {
    const std::size_t header = header_at(request.kernel).value();
    const auto flags = get<std::uint32_t>(request.kernel, header + 4);
    if (flags & 0xffff & ~(kPageAlign | kMemoryInfo))
        throw UserError(request.kernel_file + ": demands " + (flags & kVideo ? "a video mode" : "an unknown feature") +
                        " in its Multiboot header: expected a kernel that needs none");
    LoadedKernel k;
    k.protocol = "Multiboot";
    Addr entry = 0;
    if (flags & kAddresses) {
        std::tie(k.start, k.end, entry) = load_flat(request, memory, header);
    } else {
        const ElfFile elf(request.kernel_file, request.kernel);
        std::tie(k.start, k.end) = elf.load(memory);
        entry = elf.physical(elf.entry());
    }
    memory.keep_clear_of(k.start, k.end);
    k.initrd = place_initrd(request, memory, k.end, PhysMap::kTop - 1);

    Record info(kInfo);
    info.put(0, kHasMemory | kHasCommandLine | kHasModules | kHasMap | kHasName);
    std::uint64_t upper = 0;
    const auto &ranges = memory.ranges();
    Record map(ranges.size() * kMapEntry);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        const MemoryRange &r = ranges[i];
        if (r.kind == RangeKind::usable && r.start <= 1 << 20 && r.start + r.size > 1 << 20)
            upper = std::min<std::uint64_t>(r.start + r.size - (1 << 20), 0xffffffffu) >> 10;
        map.put(i * kMapEntry, static_cast<std::uint32_t>(kMapEntry - 4));
        map.put(i * kMapEntry + 4, r.start);
        map.put(i * kMapEntry + 12, r.size);
        map.put(i * kMapEntry + 20, static_cast<std::uint32_t>(r.kind));
    }
    info.put<std::uint32_t>(4, 640);
    info.put(8, static_cast<std::uint32_t>(upper));
    info.put(16, static_cast<std::uint32_t>(memory.place_text(request.command_line)));
    if (k.initrd) {
        Record module(kModule);
        module.put(0, static_cast<std::uint32_t>(k.initrd));
        module.put(4, static_cast<std::uint32_t>(k.initrd + request.initrd.size()));
        info.put<std::uint32_t>(20, 1);
        info.put(24, static_cast<std::uint32_t>(memory.place_low(module.bytes(), 8)));
    }
    info.put(44, static_cast<std::uint32_t>(map.bytes().size()));
    info.put(48, static_cast<std::uint32_t>(memory.place_low(map.bytes(), 8)));
    info.put(64, static_cast<std::uint32_t>(memory.place_text("moscope")));

    k.entry = flat_32bit(memory, entry);
    k.entry.rax = kLoaderMagic;
    k.entry.rbx = memory.place_low(info.bytes(), 8);
    return k;
}

} // namespace moscope::loader
