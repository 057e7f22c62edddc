// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/stack_samples.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/x86/mmu/paging.hh"

namespace moscope {

namespace {

constexpr std::uint64_t kPage = 4096;

} // namespace

void append_seen(const x86::Core &core, Addr from, Addr to, std::vector<std::byte> &out) {
    for (Addr at = from; at < to;) {
        const std::uint64_t size = std::min(to - at, kPage - at % kPage);
        PhysAddr physical;
        const std::byte *host = x86::peek_translation(core, at, physical) ? core.phys.host(physical) : nullptr;
        if (!host)
            return;
        const std::size_t before = out.size();
        out.insert(out.end(), host, host + size);
        if (core.timed)
            core.timed->stores().overlay(core.phys.dram_address(physical), out.data() + before, size);
        at += size;
    }
}

namespace {

// What the processor pushes when it enters the kernel from a program (AMD64 manual 24593, section 8.9.3): rip, cs, flags, rsp, ss.
constexpr std::uint64_t kPushed = 5 * 8, kPushedCs = 8, kPushedSp = 24, kPushedSs = 32;
// The segments of user programs (Linux, arch/x86/include/asm/segment.h).
constexpr std::uint64_t kUserCs = 0x33, kUserCs32 = 0x23, kUserSs = 0x2b;
constexpr Addr kKernelHalf = Addr{1} << 63;

std::uint64_t word(const std::vector<std::byte> &bytes, std::uint64_t at) {
    std::uint64_t value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

/// Whether [begin, end) ends with the registers that the processor pushes on an entry from a user program.
bool entered_from_user(const std::vector<std::byte> &bytes, std::uint64_t begin, std::uint64_t end) {
    if (end > bytes.size() || end - begin < kPushed)
        return false;
    const std::uint64_t cs = word(bytes, end - kPushed + kPushedCs);
    return (cs == kUserCs || cs == kUserCs32) && word(bytes, end - kPushed + kPushedSs) == kUserSs;
}

/// Appends a kernel stack from `sp` to its end. If a user program entered the kernel there, sets `user_sp` to the
/// program's stack pointer. Returns the address of the interrupted stack if this is an interrupt's own stack; else 0.
Addr read_kernel_stack(const x86::Core &core, Addr sp, std::vector<std::byte> &out, Addr &user_sp) {
    const Addr last = (sp | (StackSamples::kKernelStack - 1)) + 1;
    const std::uint64_t begin = out.size();
    append_seen(core, sp, last, out);
    for (Addr end = (sp | (kPage - 1)) + 1; end <= last; end += kPage)
        if (const std::uint64_t at = begin + (end - sp); entered_from_user(out, begin, at)) {
            out.resize(at);
            user_sp = word(out, at - kPushed + kPushedSp);
            return 0;
        }
    if (out.size() - begin != last - sp || last - sp < 8)
        return 0;
    const Addr link = word(out, out.size() - 8);
    return link >= kKernelHalf && link % 8 == 0 && (link < sp || link >= last) ? link : 0;
}

} // namespace

StackSamples::StackSamples(const std::vector<std::unique_ptr<x86::Core>> &cores)
    : cores_(cores), most_(std::min<std::size_t>(kPerCore, kInAll / cores.size()) & ~std::size_t{1}) {
    reset();
}

void StackSamples::take(unsigned number, Addr line) {
    const x86::Core &core = *cores_[number];
    OfCore &c = of_[number];
    Sample s{};
    s.head.line = line;
    s.head.pc = core.timed->pc();
    s.head.address_space = core.cr3;
    s.head.waiting = c.points.take();
    s.head.core = static_cast<std::uint8_t>(number);
    const bool user = core.cpl == 3;
    s.head.flags = user ? StackSample::kUser : 0;
    for (unsigned r = 0; r < s.head.registers.size(); ++r)
        s.head.registers[r] = core.r[r];
    const Addr sp = core.r[x86::rsp];
    if (user) {
        append_seen(core, sp, sp + kUserStack, s.stack);
    } else {
        Addr user_sp = 0;
        const Addr link = read_kernel_stack(core, sp, s.stack, user_sp);
        if (link)
            read_kernel_stack(core, link, s.stack, user_sp);
        s.head.kernel_bytes = static_cast<std::uint32_t>(s.stack.size());
        if (user_sp)
            append_seen(core, user_sp, user_sp + kUserStack, s.stack);
    }
    s.head.user_bytes = static_cast<std::uint32_t>(s.stack.size()) - s.head.kernel_bytes;
    s.stack.shrink_to_fit();
    c.samples.push_back(std::move(s));
    if (c.samples.size() == most_)
        halve(c);
}

void StackSamples::halve(OfCore &c) const {
    for (std::size_t n = 0; n < c.samples.size() / 2; ++n) {
        const Tick first = c.samples[2 * n].head.waiting;
        if (n)
            c.samples[n] = std::move(c.samples[2 * n + 1]);
        else
            c.samples[0] = std::move(c.samples[1]);
        c.samples[n].head.waiting += first;
    }
    c.samples.resize(c.samples.size() / 2);
    c.points.widen();
}

void StackSamples::reset() {
    of_.clear();
    for (unsigned n = 0; n < cores_.size(); ++n)
        of_.push_back({SamplePoints(n, kPeriod)}); // other points on each core
}

std::string StackSamples::packed() const {
    std::string out;
    for (const OfCore &c : of_)
        for (const Sample &s : c.samples) {
            out.append(reinterpret_cast<const char *>(&s.head), sizeof s.head);
            out.append(reinterpret_cast<const char *>(s.stack.data()), s.stack.size());
        }
    return out;
}

} // namespace moscope
