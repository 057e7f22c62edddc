// SPDX-License-Identifier: BSD-3-Clause
// What attribution is told by cores that run side by side: each chip's cores write it down, and between two windows of time all is
// told in the order of the simulated moments at which it happened. Two cores that touch one line do so at moments that lie
// further apart than a window, as the line has to travel, so their order is the same as on one queue.
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
    /// `full` is called when so much has been noted that it should be told. In as many lists as there are parts that are told
    /// apart; one keeps everything in one order.
    /// Pages are looked at as `attribution` looks at them, when things happen: to be told of them comes much later.
    Journal(const EventQueue &queue, const Attribution &attribution, bool in_parts, std::function<void()> full)
        : queue_(queue), attribution_(attribution), in_parts_(in_parts), full_(std::move(full)) {}

    void transaction(const x86::Transaction &t) override {
        latest_[t.core] = {}; // what the core stores from here on comes after it
        auto &transactions = list_of(t.access->addr.value).transactions;
        transactions.push_back({*t.access, t, attribution_.look(t)});
        note(t.access->addr.value,
             {.what = Entry::transaction, .number = static_cast<std::uint32_t>(transactions.size() - 1)});
    }
    void spun(const x86::Spin &s) override {
        auto &spins = list_of(s.look.dram).spins;
        spins.push_back(s);
        note(s.look.dram, {.what = Entry::spin, .number = static_cast<std::uint32_t>(spins.size() - 1)});
    }
    /// Stores of a core to one line without a transaction of its own between them are one: nobody else has had the line in between, as to write
    /// it again would have taken one.
    void stored(unsigned core, Addr dram, unsigned size, Addr pc) override {
        const std::uint64_t bytes = AttributionPart::bytes_of(dram, size);
        Latest &l = latest_[core];
        for (const Latest::Store &s : l.store)
            if (s.line == line_of(dram)) {
                Entry &e = list_of(dram).entries[s.entry];
                e.bytes |= bytes;
                e.pc = pc;
                return;
            }
        l.store[l.next++ % l.store.size()] = {line_of(dram), static_cast<std::uint32_t>(list_of(dram).entries.size())};
        note(dram, {.bytes = bytes, .pc = pc, .core = static_cast<std::uint8_t>(core), .what = Entry::store});
    }
    void stored_by_device(Addr dram, unsigned size) {
        note(dram, {.bytes = AttributionPart::bytes_of(dram, size), .what = Entry::device});
    }
    void expected(Addr dram) override { attribution_.page_expected(dram); }
    bool full() const { return noted_ >= kMost; }

    /// Before all parts are told.
    void close() {
        latest_ = {};
        noted_ = 0;
    }
    /// Tells of one part all that all of them have noted, and forgets it; parts may be told side by side.
    static void tell(const std::vector<std::unique_ptr<Journal>> &all, unsigned part, Attribution &to) {
        while (true) {
            Journal *first = nullptr;
            Tick earliest = kNever;
            for (const auto &j : all)
                if (const List &l = j->lists_[part]; l.told < l.entries.size() && l.entries[l.told].tick < earliest) {
                    first = j.get();
                    earliest = l.entries[l.told].tick;
                }
            if (!first)
                break;
            first->lists_[part].tell_one(to);
        }
        for (const auto &j : all)
            j->lists_[part].clear();
    }

  private:
    static constexpr std::size_t kMost = 1024;
    struct Entry {
        enum What : std::uint8_t { transaction, spin, store, device };
        Tick tick = 0;
        Addr line = 0;
        std::uint64_t bytes = 0; ///< of the line, stored
        Addr pc = 0;
        std::uint8_t core = 0;
        What what = store;
        std::uint32_t number = 0;
    };
    struct Ended {
        Access access;
        x86::Transaction transaction;
        PageSeen page;
    };
    struct alignas(64) List { // parts are told on different threads
        std::vector<Entry> entries;
        std::vector<Ended> transactions;
        std::vector<x86::Spin> spins;
        std::size_t told = 0;

        void tell_one(Attribution &to) {
            const Entry &e = entries[told++];
            switch (e.what) {
            case Entry::transaction: {
                Ended &t = transactions[e.number];
                t.transaction.access = &t.access;
                to.transaction(t.transaction, t.page);
                break;
            }
            case Entry::spin: to.spun(spins[e.number]); break;
            case Entry::store: to.stored_bytes(e.core, e.line, e.bytes, e.pc); break;
            case Entry::device: to.stored_by_device_bytes(e.line, e.bytes); break;
            }
        }
        void clear() {
            entries.clear();
            transactions.clear();
            spins.clear();
            told = 0;
        }
    };
    /// Where a core's stores since its last transaction are noted.
    struct Latest {
        struct Store {
            Addr line = ~Addr{0};
            std::uint32_t entry = 0;
        };
        std::array<Store, 4> store;
        unsigned next = 0;
    };

    List &list_of(Addr dram) { return lists_[in_parts_ ? Attribution::part_of(dram) : 0]; }
    void note(Addr dram, Entry e) {
        e.tick = queue_.now();
        e.line = line_of(dram);
        list_of(dram).entries.push_back(e);
        if (++noted_ == kMost)
            full_();
    }

    const EventQueue &queue_;
    const Attribution &attribution_;
    const bool in_parts_;
    std::function<void()> full_;
    std::array<List, Attribution::kParts> lists_;
    std::size_t noted_ = 0;         ///< in all lists
    std::array<Latest, 64> latest_; ///< by core
};

} // namespace moscope
