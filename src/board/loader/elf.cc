// SPDX-License-Identifier: BSD-3-Clause
#include "board/loader/elf.hh"

#include <algorithm>

#include "base/error.hh"
#include "board/loader/loader.hh"

namespace moscope::loader {

namespace {

constexpr std::uint16_t kMachine386 = 3, kMachineX86_64 = 62;

ElfSegment segment64(Bytes f, std::size_t at) {
    return {get<std::uint32_t>(f, at),      get<std::uint64_t>(f, at + 8),  get<std::uint64_t>(f, at + 16),
            get<std::uint64_t>(f, at + 24), get<std::uint64_t>(f, at + 32), get<std::uint64_t>(f, at + 40),
            get<std::uint64_t>(f, at + 48)};
}

ElfSegment segment32(Bytes f, std::size_t at) {
    return {get<std::uint32_t>(f, at),      get<std::uint32_t>(f, at + 4),  get<std::uint32_t>(f, at + 8),
            get<std::uint32_t>(f, at + 12), get<std::uint32_t>(f, at + 16), get<std::uint32_t>(f, at + 20),
            get<std::uint32_t>(f, at + 28)};
}

} // namespace

bool is_elf(Bytes f) { return f.size() >= 4 && get<std::uint32_t>(f, 0) == 0x464c457f; }

ElfFile::ElfFile(std::string name, Bytes file) : name_(std::move(name)), file_(file) {
    const auto need = [&](std::uint64_t end) {
        if (end > file_.size())
            throw UserError(name_ + ": ends after " + std::to_string(file_.size()) +
                            " bytes, before the end of the parts that its ELF header names: expected the whole file");
    };
    need(20);
    wide_ = file_[4] == 2;
    const auto machine = get<std::uint16_t>(file_, 18);
    if (!is_elf(file_) || file_[5] != 1 || (machine != kMachineX86_64 && machine != kMachine386))
        throw UserError(name_ + ": is an ELF file for another processor: expected one for x86");
    need(wide_ ? 64 : 52);
    entry_ = wide_ ? get<std::uint64_t>(file_, 24) : get<std::uint32_t>(file_, 24);
    const std::uint64_t table = wide_ ? get<std::uint64_t>(file_, 32) : get<std::uint32_t>(file_, 28);
    const auto size = get<std::uint16_t>(file_, wide_ ? 54 : 42), count = get<std::uint16_t>(file_, wide_ ? 56 : 44);
    if (count && size < (wide_ ? 56 : 32))
        throw UserError(name_ + ": has program headers of " + std::to_string(size) +
                        " bytes: expected 56 (32 in 32-bit files)");
    need(table);
    need(table + std::uint64_t{size} * count);
    for (unsigned i = 0; i < count; ++i) {
        const std::size_t at = table + std::size_t{size} * i;
        const ElfSegment s = wide_ ? segment64(file_, at) : segment32(file_, at);
        if (s.type == kLoad || s.type == kNote) {
            need(s.offset);
            need(s.file_size);
            need(s.offset + s.file_size);
            if (s.type == kLoad && s.memory_size < s.file_size)
                throw UserError(name_ +
                                ": has a segment with more bytes in the file than in memory: expected an ELF file "
                                "that a linker wrote");
        }
        segments_.push_back(s);
    }
}

Bytes ElfFile::note(const std::string &owner, std::uint32_t type) const {
    for (const ElfSegment &s : segments_) {
        if (s.type != kNote)
            continue;
        const Bytes b = content(s);
        // Linkers pad notes to the segment's alignment, which is 4 or 8.
        const std::uint64_t pad = s.align == 8 ? 8 : 4;
        const auto padded = [pad](std::uint64_t n) { return (n + pad - 1) / pad * pad; };
        for (std::uint64_t at = 0; at + 12 <= b.size();) {
            const auto name_size = get<std::uint32_t>(b, at), size = get<std::uint32_t>(b, at + 4);
            const std::uint64_t content_at = padded(at + 12 + name_size), end = content_at + size;
            if (end > b.size())
                break;
            const std::string name(reinterpret_cast<const char *>(b.data()) + at + 12, name_size ? name_size - 1 : 0);
            if (name == owner && get<std::uint32_t>(b, at + 8) == type)
                return b.subspan(content_at, size);
            at = padded(end);
        }
    }
    return {};
}

std::pair<Addr, Addr> ElfFile::load(BootMemory &memory) const {
    Addr first = ~Addr{0}, last = 0;
    for (const ElfSegment &s : segments_) {
        if (s.type != kLoad || s.memory_size == 0)
            continue;
        memory.zero(s.address, s.memory_size, name_);
        memory.write(s.address, content(s), name_);
        first = std::min(first, s.address);
        last = std::max(last, s.address + s.memory_size);
    }
    if (last == 0)
        throw UserError(name_ + ": has nothing to load: expected an executable ELF file");
    return {first, last};
}

Addr ElfFile::physical(Addr a) const {
    for (const ElfSegment &s : segments_)
        if (s.type == kLoad && a >= s.virtual_address && a - s.virtual_address < s.memory_size)
            return s.address + (a - s.virtual_address);
    return a;
}

} // namespace moscope::loader
