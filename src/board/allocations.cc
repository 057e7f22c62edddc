// SPDX-License-Identifier: BSD-3-Clause
#include "board/allocations.hh"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "attribution/stack_samples.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/decode/probes.hh"

namespace moscope {

namespace {

constexpr Addr kWord = 8;

std::uint64_t word_at(const x86::Core &core, Addr at) {
    std::vector<std::byte> bytes;
    append_seen(core, at, at + kWord, bytes);
    std::uint64_t value = 0;
    if (bytes.size() == kWord)
        std::memcpy(&value, bytes.data(), kWord);
    return value;
}

} // namespace

void Allocations::entered(x86::Core &c, Role role, unsigned function, const x86::Probed &before) {
    const Addr space = c.cr3 & kTable;
    const std::lock_guard lock(shared_);
    if (role == Role::begins) {
        spaces_[space].clear();
        return;
    }
    if (role == Role::release) {
        release(spaces_[space], before.rdi);
        return;
    }
    Call call{role, function, before.rdi, word_at(c, before.rsp), before.rdi};
    if (role == Role::product)
        call.size = before.rdi * before.rsi;
    else if (role == Role::reallocation || role == Role::size_second)
        call.size = before.rsi;
    else if (role == Role::by_address)
        call.size = before.rdx;
    // An allocator may end with a jump to another one: the first is the one that the program called.
    const auto [at, fresh] = calls_.try_emplace({space, before.rsp}, call);
    if (!fresh) {
        if (at->second.returns_to == call.returns_to && at->second.function != function)
            at->second.size = call.size;
        else
            at->second = call; // the earlier call never returned
    }
    c.blocks->probes()->watch_return(c, call.returns_to);
}

void Allocations::returned(x86::Core &c, Addr at) {
    const Addr space = c.cr3 & kTable;
    const std::lock_guard lock(shared_);
    const auto found = calls_.find({space, c.r[x86::rsp] - kWord});
    if (found == calls_.end() || found->second.returns_to != at)
        return;
    const Call call = found->second;
    calls_.erase(found);
    Addr start = c.r[x86::rax];
    if (call.role == Role::by_address)
        start = start ? 0 : word_at(c, call.argument);
    if (!start)
        return;
    Space &known = spaces_[space];
    if (call.role == Role::reallocation && call.argument != start)
        release(known, call.argument);
    add(known, start, call.size, site_of(c, call.function, at));
}

std::uint32_t Allocations::site_of(const x86::Core &c, unsigned function, Addr at) {
    const auto number = static_cast<std::uint32_t>(sites_.size());
    const auto [found, fresh] = site_numbers_.try_emplace({c.cr3 & kTable, at, function}, number);
    if (!fresh)
        return found->second;
    Site &site = sites_.emplace_back();
    site.head.line = function;
    site.head.pc = at - 1; // an address within the call instruction
    site.head.address_space = c.cr3;
    site.head.flags = StackSample::kUser;
    for (unsigned r = 0; r < site.head.registers.size(); ++r)
        site.head.registers[r] = c.r[r];
    append_seen(c, c.r[x86::rsp], c.r[x86::rsp] + kStack, site.stack);
    site.head.user_bytes = static_cast<std::uint32_t>(site.stack.size());
    return number;
}

void Allocations::add(Space &known, Addr start, std::uint64_t size, std::uint32_t site) {
    auto at = known.lower_bound(start);
    if (at != known.begin())
        if (const auto before = std::prev(at); before->first + before->second.size > start)
            known.erase(before);
    while (at != known.end() && at->first < start + std::max<std::uint64_t>(size, 1))
        at = known.erase(at);
    known.emplace_hint(at, start, Known{size, site, false});
}

void Allocations::release(Space &known, Addr start) {
    if (const auto at = known.find(start); at != known.end())
        at->second.freed = true;
}

std::string Allocations::pieces() const {
    const std::lock_guard lock(shared_);
    std::string out;
    for (const auto &[space, known] : spaces_)
        for (const auto &[start, one] : known) {
            const Piece piece{space, start, one.size, one.site, one.freed};
            out.append(reinterpret_cast<const char *>(&piece), sizeof piece);
        }
    return out;
}

std::string Allocations::sites() const {
    const std::lock_guard lock(shared_);
    std::string out;
    for (const Site &site : sites_) {
        out.append(reinterpret_cast<const char *>(&site.head), sizeof site.head);
        out.append(reinterpret_cast<const char *>(site.stack.data()), site.stack.size());
    }
    return out;
}

} // namespace moscope
