// SPDX-License-Identifier: BSD-3-Clause
#include "board/loader/boot_memory.hh"

#include <algorithm>
#include <cstdio>

#include "base/error.hh"

namespace moscope::loader {

namespace {

constexpr std::uint64_t kPage = 4096, kLargePage = 2 << 20;
constexpr std::uint64_t kPresent = 1, kWrite = 2, kLarge = 0x80;
constexpr std::uint64_t kMapped = std::uint64_t{4} << 30;
// The selectors that Linux asks for (__BOOT_CS, __BOOT_DS); the other protocols accept any.
constexpr std::uint16_t kCode = 0x10, kData = 0x18, kTask = 0x20;
constexpr std::uint32_t kTssLimit = 0x67;

std::string hex(Addr a) {
    char text[20];
    std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(a));
    return text;
}

/// A descriptor's eight bytes (AMD 24593, section 4.7.1) with base 0; the limit in units of its granularity.
std::uint64_t descriptor(std::uint16_t attr, std::uint32_t limit) {
    const std::uint64_t a = attr;
    return (limit & 0xffff) | (a & 0xff) << 40 | std::uint64_t{limit >> 16} << 48 | (a >> 12) << 52;
}

EntryState with_gdt(BootMemory &memory, Addr rip, std::uint16_t code_attr) {
    Record gdt(kTask + 16);
    gdt.put(kCode, descriptor(code_attr, 0xfffff));
    gdt.put(kData, descriptor(kAttrData, 0xfffff));
    gdt.put(kTask, descriptor(kAttrTss, kTssLimit));
    EntryState e;
    e.rip = rip;
    e.gdtr = {memory.place_low(gdt.bytes(), 16), static_cast<std::uint16_t>(gdt.bytes().size() - 1)};
    e.code = {0, 0xffffffff, kCode, code_attr};
    e.data = {0, 0xffffffff, kData, kAttrData};
    e.tr = {0, kTssLimit, kTask, kAttrTss};
    // Kernels set up a stack of their own at once; this one is for those that push before they do.
    e.rsp = memory.take_low(kPage, kPage) + kPage;
    return e;
}

} // namespace

bool BootMemory::usable(Addr start, std::uint64_t size) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [=](const MemoryRange &r) {
        return r.kind == RangeKind::usable && start >= r.start && size <= r.size && start - r.start <= r.size - size;
    });
}

Addr BootMemory::highest(std::uint64_t size, std::uint64_t align, Addr least, Addr most) const {
    Addr best = 0;
    for (const MemoryRange &r : ranges_) {
        if (r.kind != RangeKind::usable || r.size < size)
            continue;
        const Addr last = most - r.start < r.size && most >= r.start ? most + 1 : r.start + r.size;
        if (most < r.start || last < size)
            continue;
        const Addr start = (last - size) / align * align;
        if (start >= std::max(r.start, least))
            best = std::max(best, start);
    }
    return best;
}

Addr BootMemory::take_low(std::uint64_t size, std::uint64_t align) {
    const Addr start = (low_ + align - 1) / align * align;
    if (size > kLowEnd - start || start > kLowEnd)
        throw UserError("memory: the structures for the kernel do not fit below " + hex(kLowEnd) +
                        ": expected a shorter command line or fewer memory ranges");
    low_ = start + size;
    return start;
}

std::byte *BootMemory::at(Addr a, std::uint64_t size, const std::string &what) const {
    if (!usable(a, size))
        throw UserError(what + ": needs the memory from " + hex(a) + " to " + hex(a + size) +
                        ", which is not free: expected more memory per node");
    std::byte *p = map_.host(PhysAddr(a));
    // A usable range lies on one side of the hole, so it is one piece of DRAM.
    MOSCOPE_CHECK(p && (size == 0 || map_.host(PhysAddr(a + size - 1)) == p + size - 1));
    return p;
}

void BootMemory::write(Addr to, Bytes bytes, const std::string &what) {
    if (bytes.empty())
        return;
    std::memcpy(at(to, bytes.size(), what), bytes.data(), bytes.size());
}

void BootMemory::zero(Addr to, std::uint64_t size, const std::string &what) {
    if (size)
        std::memset(at(to, size, what), 0, size);
}

Addr BootMemory::place_low(Bytes bytes, std::uint64_t align) {
    const Addr a = take_low(bytes.size(), align);
    write(a, bytes, "memory");
    return a;
}

Addr BootMemory::place_text(const std::string &text) {
    return place_low({reinterpret_cast<const std::uint8_t *>(text.c_str()), text.size() + 1}, 16);
}

void Record::put_bytes(std::size_t offset, Bytes from) {
    MOSCOPE_CHECK(offset <= bytes_.size() && from.size() <= bytes_.size() - offset);
    std::copy(from.begin(), from.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
}

EntryState flat_32bit(BootMemory &memory, Addr rip) {
    EntryState e = with_gdt(memory, rip, kAttrCode32);
    e.cr0 = x86::cr0::pe | x86::cr0::et;
    return e;
}

EntryState identity_64bit(BootMemory &memory, Addr rip) {
    EntryState e = with_gdt(memory, rip, kAttrCode64);
    constexpr std::uint64_t directories = kMapped >> 30;
    const Addr pml4 = memory.take_low((2 + directories) * kPage, kPage);
    Record tables((2 + directories) * kPage);
    tables.put(0, (pml4 + kPage) | kPresent | kWrite);
    for (std::uint64_t d = 0; d < directories; ++d)
        tables.put(kPage + 8 * d, (pml4 + (2 + d) * kPage) | kPresent | kWrite);
    for (std::uint64_t a = 0; a < kMapped; a += kLargePage)
        tables.put(2 * kPage + a / kLargePage * 8, a | kPresent | kWrite | kLarge);
    memory.write(pml4, tables.bytes(), "memory");
    e.cr0 = x86::cr0::pe | x86::cr0::et | x86::cr0::ne | x86::cr0::wp | x86::cr0::pg;
    e.cr3 = pml4;
    e.cr4 = x86::cr4::pae;
    e.efer = x86::efer::lme | x86::efer::lma;
    return e;
}

} // namespace moscope::loader
