// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/block.hh"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "cpu/x86/isa.hh"
#include "cpu/x86/lower.hh"
#include "cpu/x86/paging.hh"
#include "cpu/x86/timed/op_timing.hh"

namespace moscope::x86 {

namespace {

constexpr unsigned kLongest = 15;
constexpr Addr kPage = 0x1000;

const Op *end_of_block(Core &c, const Op *op) {
    c.rip = c.address_of(op) & op->imm;
    return nullptr;
}

const Op *gone_stale(Core &c, const Op *op) { return c.leave_before(op, Exit::restart); }

const Op *undefined(Core &c, const Op *op) {
    c.raise(exc_ud);
    return c.fault_at(op);
}

const Op *too_long(Core &c, const Op *op) {
    c.raise(exc_gp, 0);
    return c.fault_at(op);
}

/// gem5's pseudo-instruction: 0F 04, then a 16-bit function number.
const Op *m5_instruction(Core &c, const Op *op) {
    c.platform.m5op(c, static_cast<unsigned>(op->imm));
    return c.leave_after(op, c.exit == Exit::none ? Exit::restart : c.exit);
}

std::uint64_t rip_mask(Mode mode) {
    return mode == Mode::code64 ? ~std::uint64_t{0} : mode == Mode::code32 ? 0xffffffff : 0xffff;
}

} // namespace

Block::Ptr Block::make(std::size_t operations) {
    void *room = ::operator new(sizeof(Block) + operations * sizeof(Op), std::align_val_t{kLineBytes});
    Ptr block(new (room) Block);
    std::uninitialized_value_construct_n(block->ops(), operations);
    return block;
}

void Block::Free::operator()(Block *b) const { ::operator delete(b, std::align_val_t{kLineBytes}); }

BlockCache::BlockCache(const PhysMap &phys) : phys_(phys), timings_(std::make_unique<TimingTable>()), code_pages_(std::make_shared<Bits>()) {}
BlockCache::~BlockCache() {
    blocks_.for_each(Block::Free());
}

void BlockCache::time(Block &b) {
    const std::byte *bytes = phys_.host(PhysAddr(b.key >> 2));
    const std::size_t size = !bytes ? 0 : b.crosses ? kLongest : b.bytes; // none of code in device memory: a cycle for each
    const std::vector<OpTiming> all = timing_of({reinterpret_cast<const std::uint8_t *>(bytes), size},
                                                static_cast<Mode>((b.key & 3) - 1), b.count);
    for (unsigned i = 0; i <= b.count; ++i)
        b.ops()[i].timing = timings_->number(all[i]);
    b.timed = true;
}

Block *BlockCache::find(Core &c, bool single, bool *global) {
    const Mode mode = c.mode();
    if (mode != Mode::code64 && c.rip > c.seg[cs].limit) {
        c.raise(exc_gp, 0);
        return nullptr;
    }
    const Addr va = mode == Mode::code64 ? c.rip : (c.seg[cs].base + c.rip) & 0xffffffff;
    PhysAddr at;
    if (!translate(c, va, Kind::fetch, c.cpl == 3, at))
        return nullptr;
    if (global) {
        const Tlb::Entry &e = c.tlbs[c.cpl == 3].at(va);
        *global = c.paging() && e.page == (va & ~(kPage - 1)) && (e.phys & Tlb::Entry::kGlobal);
    }
    const std::uint64_t key = at.value << 2 | (static_cast<unsigned>(mode) + 1);
    if (!single) {
        // Often it is the block that was here before an address-space switch.
        Block *b = c.jump_of(c.rip).block;
        if (!b || b->key != key || b->stale)
            b = blocks_.find(key);
        if (b && !b->crosses)
            return b;
        if (b) {
            PhysAddr second;
            if (!translate(c, (va | (kPage - 1)) + 1, Kind::fetch, c.cpl == 3, second))
                return nullptr;
            // In detailed mode other cores may have run during the walk: look again.
            b = blocks_.find(key);
            if (b && second == b->second)
                return b;
            if (b)
                drop(*b);
        }
    }
    return decode(c, key, at, va, single ? 1 : Block::kMaxOps);
}

Block *BlockCache::recall(Core &c, std::uint64_t key, PhysAddr second) {
    if (Block *b = blocks_.find(key))
        return b;
    const PhysAddr at(key >> 2);
    return key & 3 && phys_.host(at) ? decode(c, key, at, 0, Block::kMaxOps, &second) : nullptr;
}

Block *BlockCache::decode(Core &c, std::uint64_t key, PhysAddr at, Addr va, unsigned limit, const PhysAddr *known_second) {
    if (!promises_)
        promises_ = std::make_unique<Promises>(c.model);
    const auto mode = static_cast<Mode>((key & 3) - 1);
    const std::byte *bytes = phys_.host(at);
    std::byte copied[Block::kMaxOps * kLongest];
    if (bytes && beside_others_) { // another thread may be writing there: what is decoded is what is noted
        std::copy_n(bytes, std::min<Addr>(sizeof copied, kPage - (at.value & (kPage - 1))), copied);
        bytes = copied;
    }
    std::byte crossed[kLongest];
    bool crosses = false;
    PhysAddr second;
    std::vector<Op> ops;
    unsigned offset = 0;
    unsigned left = static_cast<unsigned>(kPage - (at.value & (kPage - 1)));
    bool ended = false;
    std::uint8_t window[kLongest];
    while (!ended && ops.size() < limit && left) {
        const void *from = bytes ? static_cast<const void *>(bytes + offset) : window;
        unsigned have = left;
        if (!bytes) { // code in device memory: read byte by byte, as far as it is needed
            have = std::min(left, kLongest);
            for (unsigned i = 0; i < have; ++i)
                window[i] = static_cast<std::uint8_t>(c.platform.mmio_read(c, at + offset + i, 1));
        }
        Insn insn;
        insn.mode = mode;
        Op op;
        op.start = static_cast<std::uint16_t>(offset);
        op.base = op.index = reg_zero * 8;
        op.seg = seg_none;
        const auto m5 = [&] { return have >= 2 && static_cast<const std::uint8_t *>(from)[0] == 0x0f &&
                                     static_cast<const std::uint8_t *>(from)[1] == 0x04; };
        ZyanStatus status = m5() ? ZYDIS_STATUS_DECODING_ERROR
                                 : ZydisDecoderDecodeFull(&decoder(mode), from, std::min(have, kLongest), &insn.z, insn.op);
        if ((status == ZYDIS_STATUS_NO_MORE_DATA || (m5() && have < 4)) && have < kLongest) {
            if (!ops.empty())
                break; // it becomes the first of the next block
            // Its rest lies in the next page.
            if (known_second)
                second = *known_second;
            if (!known_second && !translate(c, (va | (kPage - 1)) + 1, Kind::fetch, c.cpl == 3, second))
                return nullptr;
            const unsigned head = have;
            if (from != window)
                std::memcpy(window, from, head);
            for (unsigned i = 0; i < kLongest; ++i) {
                const std::byte *p = phys_.host(second + i);
                crossed[i] = p ? *p : std::byte{0xff};
            }
            for (unsigned i = head; i < kLongest; ++i)
                window[i] = static_cast<std::uint8_t>(crossed[i - head]);
            from = window;
            have = kLongest;
            status = m5() ? ZYDIS_STATUS_DECODING_ERROR
                          : ZydisDecoderDecodeFull(&decoder(mode), from, have, &insn.z, insn.op);
            crosses = true;
            ended = true;
        }
        if (m5()) {
            op.length = 4;
            op.imm = static_cast<const std::uint8_t *>(from)[2] | static_cast<const std::uint8_t *>(from)[3] << 8;
            op.exec = m5_instruction;
            ended = true;
        } else if (!ZYAN_SUCCESS(status)) {
            op.length = 1;
            op.exec = status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG || status == ZYDIS_STATUS_NO_MORE_DATA ? too_long
                                                                                                         : undefined;
            ended = true;
        } else {
            fill_operands(insn, op);
            const bool promised = (*promises_)(insn.z);
            const Form *form = promised ? lower(insn, op) : nullptr;
            if (!form)
                op.exec = lower_unmodelled(promised);
            ended = ended || !form || form->ends_block;
        }
        offset += op.length;
        left = op.length < left ? left - op.length : 0;
        ops.push_back(op);
    }
    Block::Ptr block = Block::make(ops.size() + 1);
    block->key = key;
    block->crosses = crosses;
    block->second = second;
    block->bytes = static_cast<std::uint16_t>(offset);
    block->count = static_cast<std::uint8_t>(ops.size());
    Op end;
    end.start = static_cast<std::uint16_t>(offset);
    end.imm = rip_mask(mode);
    end.exec = end_of_block;
    ops.push_back(end);
    std::copy(ops.begin(), ops.end(), block->ops());

    if (limit == 1 || !bytes) { // not kept, so nobody needs to be told of writes
        if (single_.size() <= c.number)
            single_.resize(c.number + 1);
        single_[c.number] = std::move(block);
        return single_[c.number].get();
    }
    // While this core walked page tables for the second half, another may have decoded the same.
    if (Block *known = blocks_.find(key))
        return known;
    block->kept = true;
    Block *b = block.release();
    blocks_.insert(key, b);
    enter(*b, at, {bytes, std::min<Addr>(offset, kPage - (at.value & (kPage - 1)))});
    if (b->crosses)
        enter(*b, b->second, {crossed, kLongest});
    return b;
}

void BlockCache::enter(Block &b, PhysAddr at, std::span<const std::byte> bytes) {
    Page &p = pages_[at.value >> 12];
    mark(at.value >> 12, true);
    if (p.blocks.empty()) {
        guard(at.value & ~(kPage - 1));
        if (!beside_others_) // else no core writes directly
            for_each_peer([&](BlockCache &o) { o.guard(at.value & ~(kPage - 1)); });
    }
    p.blocks.push_back(&b);
    for (Addr line = at.value >> kLineBits; line <= (at.value + bytes.size() - 1) >> kLineBits; ++line)
        p.lines.set(line & 63);
    if (beside_others_)
        note({at, bytes.size(), true, digest(bytes)});
}

void BlockCache::guard(Addr page) {
    for (Core *c : cores_)
        for (Tlb &t : c->tlbs)
            t.guard(page);
}

void BlockCache::written(PhysAddr a, unsigned size) {
    written_here(a, size);
    if (beside_others_)
        note({a, size, false});
    else
        for_each_peer([&](BlockCache &o) { o.written_here(a, size); });
}

void BlockCache::written_here(PhysAddr a, std::uint64_t size) {
    const auto it = pages_.find(a.value >> 12);
    if (it == pages_.end())
        return;
    bool code = false;
    for (Addr line = a.value >> kLineBits; line <= (a.value + size - 1) >> kLineBits; ++line)
        code |= it->second.lines.test(line & 63);
    if (!code)
        return;
    // The whole page goes: what is written next is likely more of the same.
    drop_page(a.value >> 12);
}

void BlockCache::written_range(PhysAddr a, std::uint64_t size) {
    if (!size)
        return;
    const auto drop_all = [&](BlockCache &c) {
        for (Addr page = a.value >> 12; page <= (a.value + size - 1) >> 12; ++page)
            if (c.pages_.contains(page))
                c.drop_page(page);
    };
    drop_all(*this);
    for_each_peer(drop_all);
}

void BlockCache::drop_page(Addr page) {
    const auto it = pages_.find(page);
    const std::vector<Block *> blocks = it->second.blocks;
    for (Block *b : blocks)
        drop(*b);
    pages_.erase(page);
    if (!beside_others_ && std::none_of(peers_.begin(), peers_.end(), [&](BlockCache *o) { return o->pages_.contains(page); }))
        mark(page, false);
}

void BlockCache::mark(Addr page, bool code) {
    const std::uint64_t d = phys_.dram_address(PhysAddr(page << 12));
    if (d == PhysMap::kNone)
        return;
    if (code_pages_->empty())
        *code_pages_ = Bits((phys_.dram >> 12) / 64 + 1);
    const std::uint64_t bit = std::uint64_t{1} << (d >> 12) % 64;
    std::atomic<std::uint64_t> &word = (*code_pages_)[(d >> 12) / 64];
    code ? word.fetch_or(bit, std::memory_order_relaxed) : word.fetch_and(~bit, std::memory_order_relaxed);
}

void BlockCache::join(const std::vector<std::unique_ptr<BlockCache>> &all) {
    for (const auto &a : all) {
        a->code_pages_ = all.front()->code_pages_;
        for (const auto &b : all)
            if (b != a)
                a->peers_.push_back(b.get());
    }
    if (all.size() > 1) // before several threads look
        *all.front()->code_pages_ = Bits((all.front()->phys_.dram >> 12) / 64 + 1);
}

void BlockCache::note(const News &n) {
    if (news_.empty() && on_news)
        on_news();
    news_.push_back(n);
}

std::size_t BlockCache::digest(std::span<const std::byte> bytes) {
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

void BlockCache::tell_peers() {
    const bool beside = std::exchange(beside_others_, false);
    for (const News &n : std::exchange(news_, {})) {
        if (!n.decoded)
            for_each_peer([&](BlockCache &o) { o.written_here(n.at, n.size); });
        else if (const std::byte *now = phys_.host(n.at); !now || digest({now, n.size}) != n.digest)
            written_here(n.at, n.size);
        const Addr page = n.at.value >> 12;
        if (!pages_.contains(page) && std::none_of(peers_.begin(), peers_.end(), [&](BlockCache *o) { return o->pages_.contains(page); }))
            mark(page, false);
    }
    beside_others_ = beside;
}

void BlockCache::drop(Block &b) {
    if (b.stale) // both halves of an instruction may lie in one page that is mapped twice
        return;
    b.stale = true;
    for (unsigned i = 0; i <= b.count; ++i)
        b.ops()[i].exec = gone_stale;
    for (Addr page : {b.key >> 14, b.second.value >> 12}) {
        const auto it = pages_.find(page);
        if (it != pages_.end())
            std::erase(it->second.blocks, &b);
    }
    blocks_.erase(b.key);
    graveyard_.emplace_back(&b);
}

void BlockCache::collect_over(std::size_t most) {
    const auto look = [most](BlockCache &c) {
        if (c.garbage() > most)
            c.collect();
    };
    look(*this);
    for_each_peer(look);
}

void BlockCache::collect() {
    // Only those: which others a core remembers must not depend on when this happens.
    for (Core *c : cores_)
        for (Core::Jump &j : c->jumps)
            if (j.block && j.block->stale)
                j = {};
    graveyard_.clear();
}

void BlockCache::clear() {
    for (Core *c : cores_)
        std::fill(std::begin(c->jumps), std::end(c->jumps), Core::Jump{});
    graveyard_.clear();
    blocks_.for_each(Block::Free());
    blocks_.clear();
    pages_.clear();
    news_.clear();
    for (auto &word : *code_pages_)
        word = 0;
}

} // namespace moscope::x86
