// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/decode/block.hh"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "cpu/x86/decode/isa.hh"
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/probes.hh"
#include "cpu/x86/mmu/paging.hh"
#include "cpu/x86/timed/op_timing.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

namespace {

constexpr Addr kPage = 0x1000;

const Op *end_of_block(Core &c, const Op *op) {
    c.rip = c.address_of(op) & op->imm;
    return nullptr;
}

const Op *gone_stale(Core &c, const Op *op) { return c.leave_before(op, Exit::restart); }

/// gem5's pseudo-instruction: 0F 04, then a 16-bit function number.
const Op *m5_instruction(Core &c, const Op *op) {
    c.platform.m5op(c, static_cast<unsigned>(op->imm));
    return c.leave_after(op, c.exit == Exit::none ? Exit::restart : c.exit);
}

std::uint64_t rip_mask(Mode mode) {
    return mode == Mode::code64 ? ~std::uint64_t{0} : 0xffffffff; // 16-bit code does not wrap to 0 after 64 KiB
}

} // namespace

Block::Ptr Block::make(std::size_t operations) {
    void *room = ::operator new (sizeof(Block) + operations * sizeof(Op), std::align_val_t{kLineBytes});
    Ptr block(new (room) Block);
    std::uninitialized_value_construct_n(block->ops(), operations);
    return block;
}

void Block::Free::operator()(Block *b) const { ::operator delete (b, std::align_val_t{kLineBytes}); }

BlockCache::BlockCache(const PhysMap &phys)
    : phys_(phys), timings_(std::make_shared<TimingTable>()), map_(std::make_shared<CodeMap>()) {}
BlockCache::~BlockCache() { free_all(); }

void BlockCache::free_all() {
    const Block::Free free;
    blocks_.for_each(free);
    for (Block *b : std::exchange(outdated_, {}))
        free(b);
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
            return found(c, b);
        if (b) {
            PhysAddr second;
            if (!translate(c, (va | (kPage - 1)) + 1, Kind::fetch, c.cpl == 3, second))
                return nullptr;
            // In detailed mode other cores may have run during the walk: look again.
            b = blocks_.find(key);
            if (b && second == b->second)
                return found(c, b);
            if (b && map_->side_by_side()) { // others may be running it, and whether they are depends on threads
                blocks_.erase(key);
                outdated_.push_back(b);
            } else if (b)
                drop(*b);
        }
    }
    return decode(c, key, at, va, single ? 1 : Block::kMaxOps);
}

Block *BlockCache::find_at_hand(Core &c) {
    const Addr va = c.rip;
    Core::Jump &j = c.jump_of(va);
    const Tlb::Entry &e = c.tlbs[c.cpl == 3].at(va);
    if (!c.code64() || e.page != (va & ~(kPage - 1)) || !(e.phys & Tlb::Entry::kExecutable) || !fresh_.empty())
        return nullptr;
    const std::uint64_t key = e.at(va).value << 2 | (static_cast<unsigned>(Mode::code64) + 1);
    Block *b = j.block;
    if (!b || b->key != key || b->stale)
        b = blocks_.find(key);
    if (!b || b->crosses)
        return nullptr;
    j = {va, va >> 63 && (e.phys & Tlb::Entry::kGlobal) ? c.global_tag : c.local_tag, b};
    return b;
}

/// A chip that runs a block which another chip of its thread has decoded since the last barrier logs the block's code
/// as its own.
inline Block *BlockCache::found(const Core &c, Block *b) {
    if (__builtin_expect(fresh_.empty(), 1))
        return b;
    for (const auto &[block, chip, news] : fresh_)
        if (block == b && chip != c.chip)
            map_->note(c.chip, news);
    return b;
}

Block *BlockCache::recall(Core &c, std::uint64_t key, PhysAddr second) {
    if (Block *b = blocks_.find(key))
        return b;
    const PhysAddr at(key >> 2);
    return key & 3 && phys_.host(at) ? decode(c, key, at, 0, Block::kMaxOps, &second) : nullptr;
}

/// Decodes instructions one after another from physical memory, up to the end of a page. A block of one instruction may
/// cross it.
class BlockCache::Decoder {
  public:
    /// `second`: the page after `at`'s, where its translation is known already.
    Decoder(BlockCache &cache, Core &c, Mode mode, PhysAddr at, Addr va, const PhysAddr *second)
        : cache_(cache),
          c_(c),
          mode_(mode),
          at_(at),
          va_(va),
          known_second_(second),
          bytes_(cache.phys_.host(at)),
          left_(static_cast<unsigned>(kPage - (at.value & (kPage - 1)))) {
        if (bytes_ && cache.map_->side_by_side()) { // another thread may write there: decode and log the same copy
            std::copy_n(bytes_, std::min<Addr>(sizeof copied_, left_), copied_);
            bytes_ = copied_;
        }
    }

    /// At most `limit` instructions. False: fault.
    bool run(std::size_t limit) {
        bool ended = false;
        ops.reserve(16); // as many as most blocks have
        while (!ended && ops.size() < limit && left_) {
            fetch();
            Insn insn;
            insn.mode = mode_;
            Op op;
            op.start = static_cast<std::uint16_t>(offset);
            op.base = op.index = reg_zero * 8;
            op.seg = seg_none;
            ZyanStatus status = decode_one(insn);
            if ((status == ZYDIS_STATUS_NO_MORE_DATA || (is_m5() && have_ < 4)) && have_ < kLongest) {
                if (!ops.empty())
                    break; // it becomes the first of the next block
                if (!fetch_rest())
                    return false;
                status = decode_one(insn);
                ended = true;
            }
            ended |= choose(insn, status, op);
            offset += op.length;
            left_ = op.length < left_ ? left_ - op.length : 0;
            ops.push_back(op);
        }
        return true;
    }

    /// Bytes of the code in the first page; null: in a device.
    std::span<const std::byte> first_page() const {
        return {bytes_, std::min<Addr>(offset, kPage - (at_.value & (kPage - 1)))};
    }
    std::span<const std::byte> second_page() const { return crossed_; }
    bool in_device() const { return !bytes_; }

    std::vector<Op> ops;
    unsigned offset = 0; ///< bytes decoded
    bool crosses = false;
    PhysAddr second; ///< of a block that crosses pages

  private:
    /// The bytes of the next instruction within the page. Code in device memory is read byte by byte, as far as needed.
    void fetch() {
        from_ = bytes_ ? reinterpret_cast<const std::uint8_t *>(bytes_ + offset) : window_;
        have_ = left_;
        if (bytes_)
            return;
        have_ = std::min(left_, kLongest);
        for (unsigned i = 0; i < have_; ++i)
            window_[i] = static_cast<std::uint8_t>(c_.platform.mmio_read(c_, at_ + offset + i, 1));
    }

    /// Continues the instruction's bytes in the next page. False: fault.
    bool fetch_rest() {
        if (known_second_)
            second = *known_second_;
        else if (!translate(c_, (va_ | (kPage - 1)) + 1, Kind::fetch, c_.cpl == 3, second))
            return false;
        const unsigned head = have_;
        if (from_ != window_)
            std::memcpy(window_, from_, head);
        for (unsigned i = 0; i < kLongest; ++i) {
            const std::byte *p = cache_.phys_.host(second + i);
            crossed_[i] = p ? *p : std::byte{0xff};
        }
        for (unsigned i = head; i < kLongest; ++i)
            window_[i] = static_cast<std::uint8_t>(crossed_[i - head]);
        from_ = window_;
        have_ = kLongest;
        crosses = true;
        return true;
    }

    bool is_m5() const { return have_ >= 2 && from_[0] == 0x0f && from_[1] == 0x04; }
    ZyanStatus decode_one(Insn &insn) const {
        return is_m5() ? ZYDIS_STATUS_DECODING_ERROR
                       : ZydisDecoderDecodeFull(&decoder(mode_), from_, std::min(have_, kLongest), &insn.z, insn.op);
    }

    /// Op::exec and the operands. True: the block ends here.
    bool choose(const Insn &insn, ZyanStatus status, Op &op) const {
        if (is_m5()) {
            op.length = 4;
            op.imm = from_[2] | from_[3] << 8;
            op.exec = m5_instruction;
            return true;
        }
        if (!ZYAN_SUCCESS(status)) {
            op.length = 1;
            op.exec = status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG || status == ZYDIS_STATUS_NO_MORE_DATA ? protection
                                                                                                         : undefined;
            return true;
        }
        fill_operands(insn, op);
        const bool promised = (*cache_.promises_)(insn.z);
        const Form *form = promised ? lower(insn, op) : nullptr;
        if (!form)
            op.exec = lower_unmodelled(promised);
        return !form || form->ends_block;
    }

    BlockCache &cache_;
    Core &c_;
    const Mode mode_;
    const PhysAddr at_;
    const Addr va_;
    const PhysAddr *known_second_;
    const std::byte *bytes_;
    unsigned left_; ///< bytes to the end of the page
    const std::uint8_t *from_ = nullptr;
    unsigned have_ = 0; ///< bytes at from_
    std::uint8_t window_[kLongest];
    std::byte crossed_[kLongest] = {};
    std::byte copied_[Block::kMaxOps * kLongest];
};

Block *BlockCache::decode(Core &c, std::uint64_t key, PhysAddr at, Addr va, unsigned limit,
                          const PhysAddr *known_second) {
    if (!promises_)
        promises_ = std::make_unique<Promises>(c.model);
    const auto mode = static_cast<Mode>((key & 3) - 1);
    Decoder d(*this, c, mode, at, va, known_second);
    if (!d.run(limit))
        return nullptr;
    Block::Ptr block = Block::make(d.ops.size() + 1);
    block->key = key;
    block->crosses = d.crosses;
    block->second = d.second;
    block->count = static_cast<std::uint8_t>(d.ops.size());
    Op end;
    end.start = static_cast<std::uint16_t>(d.offset);
    end.imm = rip_mask(mode);
    end.exec = end_of_block;
    d.ops.push_back(end);
    std::copy(d.ops.begin(), d.ops.end(), block->ops());
    if (probes_)
        probes_->attach(*block);

    if (limit == 1 || d.in_device()) { // not kept, so stores to it need no report
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
    enter(c, *b, at, d.first_page());
    if (b->crosses)
        enter(c, *b, b->second, d.second_page());
    return b;
}

void BlockCache::enter(const Core &c, Block &b, PhysAddr at, std::span<const std::byte> bytes) {
    pages_[at.value >> 12].push_back(&b);
    const Addr dram = phys_.dram_address(at);
    if (dram == PhysMap::kNone)
        return;
    if (!map_->side_by_side() && !map_->marked(dram >> 12)) // otherwise settle() does it
        guard(PhysAddr(at.value & ~(kPage - 1)));
    if (!map_->side_by_side()) {
        map_->mark(dram, bytes.size());
        return;
    }
    fresh_.push_back({&b, c.chip, {dram, bytes.size(), CodeMap::digest(bytes)}});
    map_->note(c.chip, fresh_.back().news);
}

void BlockCache::guard(PhysAddr page) {
    for (Core *c : cores_)
        for (Tlb &t : c->tlbs)
            t.guard(page.value);
}

void BlockCache::written(PhysAddr a, unsigned size) {
    // The whole page goes: what is written next is likely more of the same.
    if (const Addr dram = phys_.dram_address(a); map_->holds(dram, size))
        drop_page(a.value >> 12);
}

void BlockCache::written_late(const Core &c, Addr dram, unsigned size) {
    if (map_->side_by_side())
        map_->note_store(c.chip, dram, size);
    else
        written(phys_.phys_address(dram), size);
}

void BlockCache::written_range(PhysAddr a, std::uint64_t size) {
    if (!size)
        return;
    for (Addr page = a.value >> 12; page <= (a.value + size - 1) >> 12; ++page)
        if (code_page(PhysAddr(page << 12)))
            drop_page(page);
}

/// Drops the blocks of this page, here and in the other caches.
void BlockCache::drop_page(Addr page) {
    const auto drop_here = [page](BlockCache &c) {
        const auto it = c.pages_.find(page);
        if (it == c.pages_.end())
            return;
        for (Block *b : std::exchange(it->second, {}))
            c.drop(*b);
        c.pages_.erase(page);
    };
    drop_here(*this);
    for_each_peer(drop_here);
    map_->forget(phys_.dram_address(PhysAddr(page << 12)) >> 12);
    for (Core *c : cores_)
        if (c->timed)
            c->timed->code_dropped();
}

void BlockCache::join(const std::vector<std::unique_ptr<BlockCache>> &all) {
    for (const auto &a : all) {
        a->map_ = all.front()->map_;
        a->timings_ = all.front()->timings_;
        for (const auto &b : all)
            if (b != a)
                a->peers_.push_back(b.get());
    }
}

void BlockCache::settle() {
    const auto all_know = [](BlockCache &c) { c.fresh_.clear(); };
    all_know(*this);
    for_each_peer(all_know);
    if (probes_)
        probes_->settle();
    std::vector<Addr> changed;
    map_->settle(
        [&](const CodeMap::News &n, bool first) {
            const PhysAddr at = phys_.phys_address(n.dram);
            if (first)
                guard(PhysAddr(at.value & ~(kPage - 1)));
            if (CodeMap::digest({phys_.host(at), n.size}) != n.digest)
                changed.push_back(at.value >> 12);
        },
        [&](Addr dram) { changed.push_back(phys_.phys_address(dram).value >> 12); });
    for (const Addr page : changed)
        drop_page(page);
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
            std::erase(it->second, &b);
    }
    if (!std::erase(outdated_, &b)) // otherwise another may have taken its place
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
    // Forget only stale ones: which others a core remembers must not depend on when this happens.
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
    free_all();
    blocks_.clear();
    pages_.clear();
    fresh_.clear();
    map_->clear();
    if (probes_)
        probes_->forget();
}

void BlockCache::probe(std::shared_ptr<Probes> probes) {
    clear();
    probes_ = std::move(probes);
    if (probes_)
        probes_->add_cache(*this);
}

} // namespace moscope::x86
