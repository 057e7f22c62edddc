// SPDX-License-Identifier: BSD-3-Clause
// The PVH start of day of Xen (docs/misc/pvh.pandoc and xen/include/public/arch-x86/hvm/start_info.h): an ELF note
// names a 32-bit entry point, EBX points to hvm_start_info. Linux's vmlinux has the note where CONFIG_PVH is set.
#include "base/error.hh"
#include "board/loader/elf.hh"
#include "board/loader/loader.hh"

namespace moscope::loader {

namespace {

constexpr std::uint32_t kPhys32Entry = 18; // XEN_ELFNOTE_PHYS32_ENTRY
constexpr std::uint32_t kStartMagic = 0x336ec578, kStartVersion = 1;
constexpr std::size_t kStartInfo = 56, kModule = 32, kRange = 24;

} // namespace

LoadedKernel load_pvh(const BootRequest &request, BootMemory &memory) {
    const ElfFile elf(request.kernel_file, request.kernel);
    const Bytes note = elf.note("Xen", kPhys32Entry);
    if (note.size() != 4 && note.size() != 8)
        throw UserError(request.kernel_file +
                        ": is an ELF file without a PVH entry: expected a kernel built with CONFIG_PVH, "
                        "or its bzImage");
    LoadedKernel k;
    k.protocol = "PVH";
    std::tie(k.start, k.end) = elf.load(memory);
    memory.keep_clear_of(k.start, k.end);
    k.initrd = place_initrd(request, memory, k.end, PhysMap::kTop - 1);

    Record start(kStartInfo);
    start.put(0, kStartMagic);
    start.put(4, kStartVersion);
    if (k.initrd) {
        Record module(kModule);
        module.put(0, k.initrd);
        module.put(8, std::uint64_t{request.initrd.size()});
        start.put<std::uint32_t>(12, 1);
        start.put(16, memory.place_low(module.bytes(), 8));
    }
    start.put(24, memory.place_text(request.command_line));
    start.put(32, request.rsdp);
    const auto &ranges = memory.ranges();
    Record map(ranges.size() * kRange);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        map.put(i * kRange, ranges[i].start);
        map.put(i * kRange + 8, ranges[i].size);
        map.put(i * kRange + 16, static_cast<std::uint32_t>(ranges[i].kind));
    }
    start.put(40, memory.place_low(map.bytes(), 8));
    start.put(48, static_cast<std::uint32_t>(ranges.size()));

    k.entry = flat_32bit(memory, note.size() == 4 ? get<std::uint32_t>(note, 0) : get<std::uint64_t>(note, 0));
    k.entry.rbx = memory.place_low(start.bytes(), 8);
    return k;
}

} // namespace moscope::loader
