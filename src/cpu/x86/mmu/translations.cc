// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/mmu/translations.hh"

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope::x86 {

namespace {

struct Page {
    Addr page, phys; ///< `page`: for Tlb::Large, its number
    std::uint8_t shift;
    void archive(Archive &a) { a(page, phys, shift); }
};

/// An entry of Core::jumps: the block that begins at `rip`, in the mode, privilege and kind of page that `how` says.
struct Begins {
    Addr rip;
    std::uint8_t how; ///< the low bits of its tag
    std::uint64_t key;
    PhysAddr second;
    void archive(Archive &a) { a(rip, how, key, second.value); }
};

constexpr std::uint64_t kHow = 15, kGlobal = 1;

std::uint64_t tag(const Core &c, std::uint64_t how) {
    return (how & kGlobal ? c.global_generation : c.local_generation) << 4 | how;
}

template <class E> Page page_of(Addr number, const E &e) {
    return {number, e.phys & ~Tlb::Entry::kShift, static_cast<std::uint8_t>(e.shift())};
}

void archive_pages(Core &c, bool user, Archive &a) {
    Tlb &tlb = c.tlbs[user];
    std::vector<Page> pages, large;
    for (const Tlb::Entry &e : tlb.entry)
        if (e.page != Tlb::kNoPage)
            pages.push_back(page_of(e.page, e));
    for (const Tlb::Large &l : tlb.large)
        if (l.number != ~Addr{0})
            large.push_back(page_of(l.number, l));
    a(pages, large);
    if (!a.loading())
        return;
    for (const Page &p : pages) {
        tlb.at(p.page) = {p.page, p.phys | Tlb::Entry::shifted(p.shift)};
        let_direct(c, user, p.page);
    }
    for (const Page &p : large)
        tlb.large_at(p.page << 21) = {p.page, p.phys | Tlb::Entry::shifted(p.shift)};
}

void archive_blocks(Core &c, Archive &a) {
    std::vector<Begins> blocks;
    for (const Core::Jump &j : c.jumps)
        if (j.block && !j.block->stale && j.tag == tag(c, j.tag & kHow))
            blocks.push_back({j.rip, static_cast<std::uint8_t>(j.tag & kHow), j.block->key, j.block->second});
    a(blocks);
    if (!a.loading())
        return;
    for (const Begins &b : blocks) {
        Block *block = c.blocks->recall(c, b.key, b.second);
        if (!block)
            throw UserError("checkpoint: holds code outside memory: expected the file as it was written");
        c.jump_of(b.rip) = {b.rip, tag(c, b.how & kHow), block};
    }
}

} // namespace

void archive_translations(Core &c, Archive &a) {
    for (const bool user : {false, true})
        archive_pages(c, user, a);
    archive_blocks(c, a);
}

} // namespace moscope::x86
