// SPDX-License-Identifier: BSD-3-Clause
#include "system/attribution.hh"

#include <algorithm>
#include <bit>

#include <nlohmann/json.hpp>

#include "mem/ruby/runtime/prelude_enums.hh"

namespace moscope {

namespace {

std::uint64_t byte_mask(Addr a, unsigned size) {
    const std::uint64_t bytes = size >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    return bytes << line_offset(a);
}

constexpr std::uint64_t bit(unsigned core) { return std::uint64_t{1} << core; }

/// Of a writer: a device, or nobody, is none of the cores.
constexpr std::uint64_t bit_of(unsigned writer) { return writer < 64 ? bit(writer) : 0; }

Tick waited(const nlohmann::json &row) { return row["stall"].get<Tick>() + row["spin"].get<Tick>(); }

} // namespace

Attribution::Attribution(std::vector<unsigned> chip_of_core, std::uint64_t dram_bytes)
    : cores_(static_cast<unsigned>(chip_of_core.size())), chip_of_core_(std::move(chip_of_core)), pages_((dram_bytes >> 21) + 1) {
    MOSCOPE_CHECK(cores_ <= 64);
}

Attribution::Page *Attribution::page_at(Addr dram) {
    auto &block = pages_[dram >> 21];
    if (!block)
        block = std::make_unique<std::array<std::unique_ptr<Page>, 512>>();
    auto &page = (*block)[dram >> 12 & 511];
    if (!page)
        page = std::make_unique<Page>();
    known_[(dram >> 12) % known_.size()] = {dram >> 12, page.get()};
    return page.get();
}

void Attribution::expected(Addr dram) { __builtin_prefetch(&line_at(dram), 1); }

void Attribution::tell(Line &l, std::uint64_t cores) {
    if (!l.tenure || !cores)
        return;
    if (!l.written)
        l.written = std::make_unique<std::uint64_t[]>(cores_);
    for (; cores; cores &= cores - 1)
        l.written[static_cast<unsigned>(std::countr_zero(cores))] |= l.tenure;
}

void Attribution::written(Line &l, std::uint8_t by, Addr dram, unsigned size, Addr pc) {
    if (l.writer != by) {
        // Bytes of the previous writer's tenure are news from here on to everybody else who has had the line.
        tell(l, l.had & ~bit_of(l.writer));
        l.tenure = 0;
        l.writer = by;
    }
    l.tenure |= byte_mask(dram, size);
    l.writer_pc = pc;
}

void Attribution::stored(unsigned core, Addr dram, unsigned size, Addr pc) {
    Line &l = line_at(dram);
    written(l, static_cast<std::uint8_t>(core), dram, size, pc);
}

MissClass Attribution::classify(Line &l, const x86::Transaction &t, std::uint64_t bytes) {
    const unsigned c = t.core;
    std::uint64_t news = l.written ? l.written[c] : 0;
    if (l.writer != c)
        news |= l.tenure;
    MissClass k;
    if (!(l.had & bit(c)))
        k = MissClass::cold;
    else if (news & bytes)
        k = MissClass::true_sharing;
    else if (news)
        k = MissClass::false_sharing;
    else if (t.access->held)
        k = MissClass::upgrade;
    else
        k = MissClass::capacity;

    // It has the line now: nothing in it is news any more.
    if (l.writer != kNobody && l.writer != c) {
        tell(l, l.had & ~bit_of(l.writer) & ~bit(c));
        l.tenure = 0;
    }
    if (l.written)
        l.written[c] = 0;
    l.had |= bit(c);
    return k;
}

Attribution::Counts &Attribution::counts_of(Line &l, Addr dram) {
    if (!l.counts) {
        l.counts = line_counts_.make();
        counted_.push_back(line_of(dram));
    }
    return *l.counts;
}

const PageSeen &Attribution::page_of(Addr dram) {
    const PageSeen &own = line_at(dram).counts->page;
    if (!own.told)
        for (Addr a = dram & ~Addr{4095}; a < (dram | 4095); a += kLineBytes)
            if (const Counts *n = line_at(a).counts; n && n->page.told)
                return n->page;
    return own;
}

void Attribution::spun(const x86::Spin &s) {
    const Addr a = s.look.dram;
    Counts &n = counts_of(line_at(a), a);
    Addr writer = 0;
    const Recent &recent = recent_[s.core];
    for (unsigned i = 0; i < recent.entry.size(); ++i) // the latest first
        if (const auto &e = recent.entry[(recent.next - 1 - i) % recent.entry.size()]; e.line == line_of(a)) {
            writer = e.writer;
            break;
        }
    line_counts_.spun(n, {writer, s.look.pc}, s.look.address_space, line_offset(a), s.time, s.turns);
    spinning_ += s.time;
    n.cores |= bit(s.core);
    if (!n.va) {
        n.va = s.look.va;
        n.address_space = s.look.address_space;
        n.user = s.look.user;
    }
}

void Attribution::transaction(const x86::Transaction &t) {
    const Access &x = *t.access;
    const Addr dram = x.addr.value;
    Line &l = line_at(dram);
    Counts &counts = counts_of(l, dram);
    const bool is_store = x.kind == AccessKind::store || x.kind == AccessKind::nt_store;
    if (pages_of_guest_ && !l.told) {
        counts.page = pages_of_guest_->look(dram);
        l.told = counts.page.told;
    }
    exposed_ += t.exposed;
    const auto writer = static_cast<std::uint8_t>(l.writer);
    const Addr writer_pc = l.writer_pc;
    LineCounts::Noted n;
    n.counts = &counts;
    n.exposed = t.exposed;
    const Addr other_pc = writer != t.core ? writer_pc : 0;
    if (is_store && !t.wait)
        l.before_pc = other_pc;
    n.pair = {t.wait ? l.before_pc : other_pc, t.pc}; // by the time of a wait for a store its core is the last writer
    n.va = t.va;
    n.address_space = t.address_space;
    n.way = x.supplier_chip == Access::kUnknown16 ? LineCounts::kNoWay
                                                  : LineCounts::way(x.supplier, x.supplier_chip, chip_of_core_[t.core]);
    n.offset = static_cast<std::uint8_t>(line_offset(dram));
    n.core = static_cast<std::uint8_t>(t.core);
    n.miss = MissClass::count;
    n.wait = t.wait; // the transaction itself was reported when it ended, at this moment
    n.user = t.user;
    n.walk = t.walk;
    n.fetch = x.kind == AccessKind::fetch;
    n.store = is_store;
    n.changes_hands = writer < kDevice && writer != t.core;
    if (!t.wait) {
        n.miss = classify(l, t, byte_mask(dram, x.size));
        ++transactions_;
        if (x.kind == AccessKind::load || x.kind == AccessKind::rmw) {
            Recent &recent = recent_[t.core];
            recent.entry[recent.next++ % recent.entry.size()] = {line_of(dram), n.pair.writer};
        }
        for (unsigned s = 0; s < kSegments; ++s)
            segments_[s] += x.path.in[s];
        MOSCOPE_CHECK(x.done >= x.issued && x.done != kNever);
        const auto ns = static_cast<std::uint64_t>((x.done - x.issued) / kTicksPerNs);
        ++latencies_.by_log2_cycles[static_cast<unsigned>(std::bit_width(ns))];
    }
    if (log_)
        record(t, writer, writer_pc, n.miss);
    line_counts_.note(n);
}

void Attribution::record(const x86::Transaction &t, std::uint8_t writer, Addr writer_pc, MissClass k) {
    const Access &x = *t.access;
    TransactionRecord r;
    r.issued = x.issued;
    r.done = t.wait ? x.issued : x.done;
    r.exposed = t.exposed;
    r.line = line_of(x.addr.value);
    r.va = t.va;
    r.pc = t.pc;
    r.address_space = t.address_space;
    r.writer_pc = writer_pc;
    if (!t.wait)
        r.segments = x.path.in;
    r.hops = x.hops;
    r.core = static_cast<std::uint8_t>(t.core);
    r.writer = writer;
    r.kind = static_cast<std::uint8_t>(x.kind);
    r.miss = static_cast<std::uint8_t>(k);
    r.supplier = x.supplier;
    if (!t.wait) {
        r.supplier_number = x.supplier_number;
        r.supplier_chip = x.supplier_chip;
        r.supplier_state = x.supplier_state;
        r.probes = x.probes;
    }
    r.flags = static_cast<std::uint8_t>((t.walk ? TransactionRecord::kWalk : 0) | (t.user ? TransactionRecord::kUser : 0) |
                                        (t.wait ? TransactionRecord::kBufferWait : 0));
    log_->write(r);
}

void Attribution::reset() {
    if (log_)
        log_->restart();
    for (const Addr a : counted_) {
        Line &l = line_at(a);
        l.counts = nullptr;
        l.told = false;
    }
    counted_.clear();
    line_counts_.reset();
    exposed_ = spinning_ = 0;
    transactions_ = 0;
    segments_ = {};
    latencies_ = {};
}

std::string Attribution::json(std::size_t most) const {
    using nlohmann::json;
    if (log_)
        log_->flush();
    auto &self = const_cast<Attribution &>(*this);
    self.line_counts_.count();
    std::vector<std::pair<Tick, Addr>> order;
    for (const Addr a : counted_) {
        const Counts &c = *self.line_at(a).counts;
        order.emplace_back(c.stall + c.spin, a);
    }
    const std::size_t n = std::min(most, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(), [](const auto &a, const auto &b) {
        return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    json out;
    out["schema"] = "moscope.attribution/1";
    out["exposed"] = exposed_;
    out["spin"] = spinning_;
    out["transactions"] = transactions_;
    for (unsigned s = 0; s < kSegments; ++s)
        out["segments"][kSegmentNames[s]] = segments_[s];
    out["latency_log2_ns"] = latencies_.by_log2_cycles;
    out["lines_total"] = counted_.size();
    json classes = json::object(), lines = json::array();
    std::array<std::uint64_t, kMissClasses> count{};
    std::array<Tick, kMissClasses> stall{};
    for (const Addr a : counted_)
        for (unsigned k = 0; k < kMissClasses; ++k) {
            count[k] += self.line_at(a).counts->by_class[k];
            stall[k] += self.line_at(a).counts->stall_by_class[k];
        }
    for (unsigned k = 0; k < kMissClasses; ++k)
        classes[kMissClassNames[k]] = {{"count", count[k]}, {"stall", stall[k]}};
    out["classes"] = classes;
    for (std::size_t i = 0; i < n; ++i) {
        const Counts &c = *self.line_at(order[i].second).counts;
        json line = {{"line", order[i].second}, {"va", c.va}, {"address_space", c.address_space}, {"user", c.user},
                     {"walk", c.walk}, {"fetch", c.fetch}, {"stall", c.stall}, {"spin", c.spin}, {"turns", c.turns},
                     {"transfers", c.transfers}, {"cores", std::popcount(c.cores)}};
        for (unsigned k = 0; k < kMissClasses; ++k)
            line["classes"][kMissClassNames[k]] = {{"count", c.by_class[k]}, {"stall", c.stall_by_class[k]}};
        json pairs = json::array();
        for (const auto &[p, w] : c.pairs)
            pairs.push_back({{"writer", p.writer}, {"waiter", p.waiter}, {"stall", w.stall}, {"spin", w.spin},
                             {"count", w.count}, {"offset", w.offset}});
        std::sort(pairs.begin(), pairs.end(), [](const json &a, const json &b) {
            return std::tuple(-waited(a), a["writer"].get<Addr>(), a["waiter"].get<Addr>()) <
                   std::tuple(-waited(b), b["writer"].get<Addr>(), b["waiter"].get<Addr>());
        });
        if (pairs.size() > 50)
            pairs.erase(pairs.begin() + 50, pairs.end());
        line["pairs"] = pairs;
        json writers = json::array();
        for (const auto &[pc, times] : c.writers)
            writers.push_back({{"pc", pc}, {"count", times}});
        std::sort(writers.begin(), writers.end(), [](const json &a, const json &b) {
            return std::tuple(-a["count"].get<std::int64_t>(), a["pc"].get<Addr>()) <
                   std::tuple(-b["count"].get<std::int64_t>(), b["pc"].get<Addr>());
        });
        line["writers"] = writers;
        json moves = json::array();
        for (const auto &[way, m] : c.moves)
            moves.push_back({{"supplier", ruby::MachineType_to_string(static_cast<ruby::MachineType>(way >> 32))},
                             {"from", way >> 16 & 0xffff}, {"to", way & 0xffff}, {"count", m.count}, {"stall", m.stall}});
        std::sort(moves.begin(), moves.end(), [](const json &a, const json &b) {
            const auto key = [](const json &m) {
                return std::tuple(-m["count"].get<std::int64_t>(), m["from"].get<int>(), m["to"].get<int>(),
                                  m["supplier"].get<std::string>());
            };
            return key(a) < key(b);
        });
        line["moves"] = moves;
        if (const PageSeen &p = self.page_of(order[i].second); p.told)
            line["page"] = {{"flags", p.flags}, {"part_of", p.part_of}, {"index", p.index}, {"type", p.type}, {"before", p.before}};
        lines.push_back(std::move(line));
    }
    out["lines"] = lines;
    json pcs = json::array();
    for (const auto &[code, w] : line_counts_.by_code())
        pcs.push_back({{"pc", code.pc}, {"address_space", code.address_space}, {"stall", w.stall}, {"spin", w.spin}, {"count", w.count}});
    std::sort(pcs.begin(), pcs.end(), [](const json &a, const json &b) {
        const auto key = [](const json &i) { return std::tuple(-waited(i), i["pc"].get<Addr>(), i["address_space"].get<Addr>()); };
        return key(a) < key(b);
    });
    out["instructions"] = pcs;
    return out.dump();
}

} // namespace moscope
