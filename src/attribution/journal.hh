// SPDX-License-Identifier: BSD-3-Clause
// Attribution events of chips that are simulated in parallel. Each chip logs its events in a journal; at a barrier the
// journals are merged in the order of simulated time and replayed. Accesses of two chips to one line are further apart
// than the lookahead, because the line has to travel. Their order is therefore the same as on one queue.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "attribution/attribution.hh"
#include "cpu/x86/timed/timed_core.hh"
#include "sim/event_queue.hh"

namespace moscope {

class Journal final : public x86::TransactionObserver {
  public:
    /// `full` is called when the journal has reached its capacity and should be replayed. `in_parts`: one list for each part of
    /// `attribution`; else one list keeps all events in one order. Page snapshots are taken when an event happens, not at replay.
    Journal(const EventQueue &queue, const Attribution &attribution, bool in_parts, std::function<void()> full)
        : queue_(queue), attribution_(attribution), in_parts_(in_parts), full_(std::move(full)) {}

    void transaction(const x86::Transaction &t) override {
        attribution_.sample(t);
        recent_stores_[t.core] = {}; // later stores of the core come after it
        auto &transactions = list_of(t.access->addr.value).transactions;
        transactions.push_back({*t.access, t, attribution_.snapshot(t)});
        append(t.access->addr.value,
               {.what = Entry::transaction, .number = static_cast<std::uint32_t>(transactions.size() - 1)});
    }
    void spun(const x86::Spin &s) override {
        attribution_.sample(s);
        auto &spins = list_of(s.look.dram).spins;
        spins.push_back(s);
        append(s.look.dram, {.what = Entry::spin, .number = static_cast<std::uint32_t>(spins.size() - 1)});
    }
    /// Stores of a core to one line without a transaction of that core between them are one event: no other core has held the line
    /// in between, as writing it again would have taken a transaction.
    void stored(unsigned core, Addr dram, unsigned size, Addr pc) override {
        const std::uint64_t bytes = AttributionPart::bytes_stored(dram, size);
        RecentStores &l = recent_stores_[core];
        for (const RecentStores::Store &s : l.store)
            if (s.line == line_of(dram)) {
                Entry &e = list_of(dram).entries[s.entry];
                e.bytes |= bytes;
                e.pc = pc;
                return;
            }
        l.store[l.next++ % l.store.size()] = {line_of(dram), static_cast<std::uint32_t>(list_of(dram).entries.size())};
        append(dram, {.bytes = bytes, .pc = pc, .core = static_cast<std::uint8_t>(core), .what = Entry::store});
    }
    void stored_by_device(Addr dram, unsigned size) {
        append(dram, {.bytes = AttributionPart::bytes_of(dram, size), .what = Entry::device});
    }
    /// A prefetch may return the right to write to a core that had lost it. The core's next store to the line is
    /// therefore a new event: another core may have stored since its last one.
    void prefetched(unsigned core, Addr dram) override {
        for (RecentStores::Store &s : recent_stores_[core].store)
            if (s.line == line_of(dram))
                s = {};
        append(dram, {.core = static_cast<std::uint8_t>(core), .what = Entry::prefetch});
    }
    void expected(Addr dram) override { attribution_.page_expected(dram); }
    bool full() const { return size_ >= kCapacity; }

    /// To be called before the parts are replayed.
    void close() {
        recent_stores_ = {};
        size_ = 0;
    }
    /// Replays one part of all journals in time order and clears it; parts may be replayed in parallel.
    static void replay(const std::vector<std::unique_ptr<Journal>> &all, unsigned part, Attribution &to) {
        while (true) {
            Journal *first = nullptr;
            Tick earliest = kNever;
            for (const auto &j : all)
                if (const List &l = j->lists_[part];
                    l.replayed < l.entries.size() && l.entries[l.replayed].tick < earliest) {
                    first = j.get();
                    earliest = l.entries[l.replayed].tick;
                }
            if (!first)
                break;
            first->lists_[part].replay_one(to);
        }
        for (const auto &j : all)
            j->lists_[part].clear();
    }

  private:
    static constexpr std::size_t kCapacity = 1024;
    struct Entry {
        enum What : std::uint8_t { transaction, spin, store, device, prefetch };
        Tick tick = 0;
        Addr line = 0;
        std::uint64_t bytes = 0; ///< stored bytes of the line, one bit each
        Addr pc = 0;
        std::uint8_t core = 0;
        What what = store;
        std::uint32_t number = 0;
    };
    struct EndedTransaction {
        Access access;
        x86::Transaction transaction;
        PageSnapshot page;
    };
    struct alignas(64) List { // parts are replayed on different threads
        std::vector<Entry> entries;
        std::vector<EndedTransaction> transactions;
        std::vector<x86::Spin> spins;
        std::size_t replayed = 0;

        void replay_one(Attribution &to) {
            const Entry &e = entries[replayed++];
            switch (e.what) {
            case Entry::transaction: {
                EndedTransaction &t = transactions[e.number];
                t.transaction.access = &t.access;
                to.transaction(t.transaction, t.page);
                break;
            }
            case Entry::spin: to.count_spin(spins[e.number]); break;
            case Entry::store: to.stored_bytes(e.core, e.line, e.bytes, e.pc); break;
            case Entry::prefetch: to.prefetched(e.core, e.line); break;
            case Entry::device: to.stored_by_device_bytes(e.line, e.bytes); break;
            }
        }
        void clear() {
            entries.clear();
            transactions.clear();
            spins.clear();
            replayed = 0;
        }
    };
    /// The entries of a core's stores since its last transaction.
    struct RecentStores {
        struct Store {
            Addr line = ~Addr{0};
            std::uint32_t entry = 0;
        };
        std::array<Store, 4> store;
        unsigned next = 0;
    };

    List &list_of(Addr dram) { return lists_[in_parts_ ? Attribution::part_of(dram) : 0]; }
    void append(Addr dram, Entry e) {
        e.tick = queue_.now();
        e.line = line_of(dram);
        list_of(dram).entries.push_back(e);
        if (++size_ == kCapacity)
            full_();
    }

    const EventQueue &queue_;
    const Attribution &attribution_;
    const bool in_parts_;
    std::function<void()> full_;
    std::array<List, Attribution::kParts> lists_;
    std::size_t size_ = 0;                       ///< in all lists
    std::array<RecentStores, 64> recent_stores_; ///< by core
};

} // namespace moscope
