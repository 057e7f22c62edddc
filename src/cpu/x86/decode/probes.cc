// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/decode/probes.hh"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

namespace {

const Op *probed(Core &c, const Op *op) {
    const Probes::Hook &hook = c.blocks->probes()->hook(op);
    if (c.timed && c.timed->looks_ahead())
        return hook.exec(c, op);
    if (hook.returns)
        c.platform.returned(c, c.address_of(op));
    const Probed before{c.r[rdi], c.r[rsi], c.r[rdx], c.r[rsp]};
    const Op *const next = hook.exec(c, op);
    if (c.exit != Exit::none && c.left_at == op)
        return next; // it will run again, for example after a page fault
    if (c.timed)
        c.timed->disturb();
    for (const unsigned probe : hook.probes)
        c.platform.probed(c, probe, before);
    return next;
}

} // namespace

unsigned Probes::add(Place place) {
    MOSCOPE_CHECK(place.offset < place.page->size() && place.page->size() <= kPageBytes);
    const auto number = static_cast<unsigned>(places_.size());
    offsets_.set(place.offset);
    by_offset_.emplace(place.offset, number);
    places_.push_back(std::move(place));
    reached_.push_back(false);
    return number;
}

bool Probes::reached(unsigned probe) const {
    const std::lock_guard lock(shared_);
    return reached_.at(probe);
}

bool Probes::is_here(const Page &page, Addr physical) const {
    const std::byte *there = phys_.host(PhysAddr(physical));
    return there && std::memcmp(there, page->data(), page->size()) == 0;
}

void Probes::attach(Block &block) {
    if ((block.key & 3) - 1 != static_cast<unsigned>(Mode::code64))
        return;
    const Addr first = block.key >> 2, page = first & ~Addr{kPageBytes - 1};
    for (unsigned i = 0; i < block.count; ++i) {
        Op &op = block.ops()[i];
        const auto offset = static_cast<unsigned>(first - page + op.start);
        if (offset >= kPageBytes || !offsets_.test(offset))
            continue;
        const std::lock_guard lock(shared_);
        Hook hook{op.exec, {}};
        const auto [begin, end] = by_offset_.equal_range(offset);
        for (auto at = begin; at != end; ++at) {
            const Place &place = places_[at->second];
            if (!is_here(place.page, page))
                continue;
            reached_[at->second] = true;
            if (place.calls)
                hook.probes.push_back(at->second);
        }
        if (hook.probes.empty())
            continue;
        std::sort(hook.probes.begin(), hook.probes.end());
        hooks_.insert_or_assign(&op, std::move(hook));
        op.exec = probed;
    }
    const std::lock_guard lock(shared_);
    if (returns_.count(first))
        hook_return(block);
}

void Probes::hook_return(Block &block) {
    Op &first = block.ops()[0];
    if (first.exec == probed) {
        hooks_.at(&first).returns = true;
        return;
    }
    hooks_.insert_or_assign(&first, Hook{first.exec, {}, true});
    first.exec = probed;
}

void Probes::hook_everywhere(Addr physical) {
    for (BlockCache *cache : caches_)
        if (Block *b = cache->decoded_at(physical << 2 | (static_cast<unsigned>(Mode::code64) + 1)); b && !b->stale)
            hook_return(*b);
}

void Probes::watch_return(const Core &core, Addr va) {
    PhysAddr at;
    if (!peek_translation(core, va, at))
        return;
    const std::lock_guard lock(shared_);
    if (!returns_.insert(at.value).second)
        return;
    CodeMap &map = core.blocks->map();
    if (!map.side_by_side()) {
        hook_everywhere(at.value);
        return;
    }
    if (news_.empty() && map.on_news)
        map.on_news();
    news_.push_back(at.value);
}

void Probes::settle() {
    const std::lock_guard lock(shared_);
    for (const Addr at : std::exchange(news_, {}))
        hook_everywhere(at);
}

const Probes::Hook &Probes::hook(const Op *op) const {
    const std::lock_guard lock(shared_);
    return hooks_.at(op);
}

void Probes::forget() {
    const std::lock_guard lock(shared_);
    hooks_.clear();
}

} // namespace moscope::x86
