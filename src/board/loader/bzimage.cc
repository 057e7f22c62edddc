// SPDX-License-Identifier: BSD-3-Clause
// Linux bzImage: the set-up header of the x86 boot protocol (Linux documentation, arch/x86/boot). From version 2.12
// on, a kernel says whether it has a 64-bit entry, 200h bytes after its start; older ones start in 32-bit mode. The
// real-mode part of the file is not run: what it would ask the firmware for is in boot_params.
#include <algorithm>
#include <string>

#include "base/error.hh"
#include "board/loader/loader.hh"

namespace moscope::loader {

namespace {

// Offsets in the file, and in boot_params, which begins with a copy of the header.
enum : std::size_t {
    kSetupSectors = 0x1f1,
    kSysSize = 0x1f4,
    kVideoMode = 0x1fa,
    kBootFlag = 0x1fe,
    kJump = 0x200,
    kMagic = 0x202,
    kVersion = 0x206,
    kLoader = 0x210,
    kLoadFlags = 0x211,
    kCode32Start = 0x214,
    kRamdiskImage = 0x218,
    kRamdiskSize = 0x21c,
    kCommandLine = 0x228,
    kInitrdMax = 0x22c,
    kAlignment = 0x230,
    kRelocatable = 0x234,
    kXLoadFlags = 0x236,
    kCommandLineSize = 0x238,
    kPrefAddress = 0x258,
    kInitSize = 0x260,
    kHeaderEnd = 0x268,
    // In boot_params alone.
    kRsdp = 0x070,
    kE820Entries = 0x1e8,
    kHeader = 0x1f1,
    kE820Table = 0x2d0,
    kBootParams = 4096,
};
constexpr std::uint32_t kHdrS = 0x53726448; // "HdrS"
constexpr std::uint16_t kOldest = 0x20a;    // 2.10: pref_address and init_size
constexpr std::uint16_t kHas64BitEntry = 0x20c;
constexpr std::uint8_t kLoadedHigh = 1;
constexpr std::uint16_t kEntry64 = 1;
constexpr std::uint8_t kOtherLoader = 0xff;
constexpr std::uint16_t kNormalVideo = 0xffff;
constexpr std::size_t kE820Most = 128, kE820Entry = 20;
constexpr std::size_t kSector = 512;

std::string version_text(std::uint16_t v) { return std::to_string(v >> 8) + "." + std::to_string(v & 0xff); }

/// The kernel's address: its preferred one or, if it can be moved, the lowest above 1 MiB that has room.
Addr kernel_place(const BootRequest &request, const BootMemory &memory, std::uint64_t needed) {
    const Bytes f = request.kernel;
    const auto preferred = get<std::uint64_t>(f, kPrefAddress);
    if (preferred < PhysMap::kTop && memory.usable(preferred, needed))
        return preferred;
    const std::uint64_t align = std::max<std::uint32_t>(get<std::uint32_t>(f, kAlignment), 4096);
    if (f[kRelocatable])
        for (const MemoryRange &r : memory.ranges()) {
            const Addr a = (std::max<Addr>(r.start, 1 << 20) + align - 1) / align * align;
            if (a < PhysMap::kTop && memory.usable(a, needed))
                return a;
        }
    throw UserError(request.kernel_file + ": needs " + std::to_string(needed >> 20) +
                    " MiB in one piece below 4 GiB: expected more memory per node");
}

Record boot_params(const BootRequest &request, const BootMemory &memory) {
    const Bytes f = request.kernel;
    Record p(kBootParams);
    // The header ends where the jump at its start leads to.
    const std::size_t end = std::min<std::size_t>(kMagic + f[kJump + 1], kE820Table);
    p.put_bytes(kHeader, f.subspan(kHeader, end - kHeader));
    p.put<std::uint8_t>(kLoader, kOtherLoader);
    p.put<std::uint16_t>(kVideoMode, kNormalVideo);
    p.put<std::uint64_t>(kRsdp, request.rsdp);
    const auto &ranges = memory.ranges();
    if (ranges.size() > kE820Most)
        throw UserError("memory: " + std::to_string(ranges.size()) + " ranges: expected at most " +
                        std::to_string(kE820Most));
    p.put<std::uint8_t>(kE820Entries, static_cast<std::uint8_t>(ranges.size()));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        p.put(kE820Table + i * kE820Entry, ranges[i].start);
        p.put(kE820Table + i * kE820Entry + 8, ranges[i].size);
        p.put(kE820Table + i * kE820Entry + 16, static_cast<std::uint32_t>(ranges[i].kind));
    }
    return p;
}

} // namespace

bool is_bzimage(Bytes f) {
    return f.size() >= kVersion && get<std::uint16_t>(f, kBootFlag) == 0xaa55 && get<std::uint32_t>(f, kMagic) == kHdrS;
}

LoadedKernel load_bzimage(const BootRequest &request, BootMemory &memory) {
    const std::string &name = request.kernel_file;
    const Bytes f = request.kernel;
    const auto cut_short = [&](std::uint64_t wanted) {
        return UserError(name + ": ends after " + std::to_string(f.size()) + " bytes of " + std::to_string(wanted) +
                         ": expected the whole bzImage");
    };
    if (f.size() < kHeaderEnd)
        throw cut_short(kHeaderEnd);
    const auto version = get<std::uint16_t>(f, kVersion);
    if (version < kOldest || !(f[kLoadFlags] & kLoadedHigh))
        throw UserError(name + ": uses boot protocol " + version_text(version) +
                        (f[kLoadFlags] & kLoadedHigh ? "" : " as a zImage") +
                        ": expected a bzImage of Linux 2.6.31 or later (" + version_text(kOldest) + ")");
    const std::uint64_t set_up = ((f[kSetupSectors] ? f[kSetupSectors] : 4) + 1) * kSector;
    const std::uint64_t size = std::uint64_t{get<std::uint32_t>(f, kSysSize)} * 16;
    // Some linkers cut off the last paragraph (16 bytes); more may not be missing.
    if (f.size() < set_up || f.size() + 15 < set_up + size)
        throw cut_short(set_up + size);
    const std::uint32_t longest = get<std::uint32_t>(f, kCommandLineSize);
    if (request.command_line.size() > longest)
        throw UserError("--append: the command line has " + std::to_string(request.command_line.size()) +
                        " characters: expected at most " + std::to_string(longest) + " for " + name);

    const Bytes body = f.subspan(set_up, std::min(size, f.size() - set_up));
    const std::uint64_t needed = std::max<std::uint64_t>(get<std::uint32_t>(f, kInitSize), body.size());
    LoadedKernel k;
    k.start = kernel_place(request, memory, needed);
    k.end = k.start + needed;
    memory.write(k.start, body, name);
    memory.keep_clear_of(k.start, k.end);
    k.initrd = place_initrd(request, memory, k.end, get<std::uint32_t>(f, kInitrdMax));

    Record params = boot_params(request, memory);
    params.put(kRamdiskImage, static_cast<std::uint32_t>(k.initrd));
    params.put(kRamdiskSize, static_cast<std::uint32_t>(request.initrd.size()));
    params.put(kCommandLine, static_cast<std::uint32_t>(memory.place_text(request.command_line)));
    params.put(kCode32Start, static_cast<std::uint32_t>(k.start));
    const Addr at = memory.place_low(params.bytes(), 4096);

    const bool long_entry = version >= kHas64BitEntry && (get<std::uint16_t>(f, kXLoadFlags) & kEntry64);
    k.entry = long_entry ? identity_64bit(memory, k.start + 0x200) : flat_32bit(memory, k.start);
    k.entry.rsi = at;
    k.protocol = "Linux " + version_text(version) + (long_entry ? ", 64-bit" : ", 32-bit");
    return k;
}

} // namespace moscope::loader
