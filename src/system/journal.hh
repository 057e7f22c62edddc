// SPDX-License-Identifier: BSD-3-Clause
// What attribution is told by cores that run side by side: each chip's cores write it down, and between two windows of time all is
// told in the order of the simulated moments at which it happened. Two cores that touch one line do so at moments that lie
// further apart than a window, as the line has to travel, so their order is the same as on one queue.
#pragma once

#include <memory>
#include <vector>

#include "cpu/x86/timed/timed_core.hh"
#include "sim/event_queue.hh"

namespace moscope {

class Journal final : public x86::TransactionObserver {
  public:
    /// `full` is called when so much has been noted that it should be told.
    Journal(const EventQueue &queue, std::function<void()> full) : queue_(queue), full_(std::move(full)) {}

    void transaction(const x86::Transaction &t) override {
        transactions_.push_back({*t.access, t});
        note({.what = Entry::transaction, .number = static_cast<std::uint32_t>(transactions_.size() - 1)});
    }
    void spun(const x86::Spin &s) override {
        spins_.push_back(s);
        note({.what = Entry::spin, .number = static_cast<std::uint32_t>(spins_.size() - 1)});
    }
    void stored(unsigned core, Addr dram, unsigned size, Addr pc) override {
        note({.dram = dram, .pc = pc, .core = static_cast<std::uint8_t>(core), .size = static_cast<std::uint8_t>(size), .what = Entry::store});
    }
    void stored_by_device(Addr dram, unsigned size) {
        note({.dram = dram, .size = static_cast<std::uint8_t>(size), .what = Entry::device});
    }
    void expected(Addr) override {}
    bool full() const { return entries_.size() >= kMost; }

    /// Tells all that all of them have noted; `to` has `stored_by_device`, too.
    template <class Observer> static void tell(std::vector<std::unique_ptr<Journal>> &all, Observer &to) {
        while (true) {
            Journal *first = nullptr;
            for (const auto &j : all)
                if (j->told_ < j->entries_.size() && (!first || j->entries_[j->told_].tick < first->entries_[first->told_].tick))
                    first = j.get();
            if (!first)
                break;
            first->tell_one(to);
        }
        for (const auto &j : all)
            j->clear();
    }

  private:
    static constexpr std::size_t kMost = 1024;
    struct Entry {
        enum What : std::uint8_t { transaction, spin, store, device };
        Tick tick = 0;
        Addr dram = 0, pc = 0;
        std::uint8_t core = 0, size = 0;
        What what = store;
        std::uint32_t number = 0;
    };
    struct Ended {
        Access access;
        x86::Transaction transaction;
    };

    void note(Entry e) {
        e.tick = queue_.now();
        entries_.push_back(e);
        if (entries_.size() == kMost)
            full_();
    }
    template <class Observer> void tell_one(Observer &to) {
        const Entry &e = entries_[told_++];
        switch (e.what) {
        case Entry::transaction: {
            Ended &t = transactions_[e.number];
            t.transaction.access = &t.access;
            to.transaction(t.transaction);
            break;
        }
        case Entry::spin:
            to.spun(spins_[e.number]);
            break;
        case Entry::store:
            to.stored(e.core, e.dram, e.size, e.pc);
            break;
        case Entry::device:
            to.stored_by_device(e.dram, e.size);
            break;
        }
    }
    void clear() {
        entries_.clear();
        transactions_.clear();
        spins_.clear();
        told_ = 0;
    }

    const EventQueue &queue_;
    std::function<void()> full_;
    std::vector<Entry> entries_;
    std::size_t told_ = 0;
    std::vector<Ended> transactions_;
    std::vector<x86::Spin> spins_;
};

} // namespace moscope
