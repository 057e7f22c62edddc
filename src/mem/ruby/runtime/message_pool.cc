// SPDX-License-Identifier: BSD-3-Clause
#include "mem/ruby/runtime/message_pool.hh"

#include <mutex>
#include <utility>
#include <vector>

namespace moscope::ruby {

constinit MessagePool the_message_pool;
thread_local constinit MessagePool *this_threads_pool = &the_message_pool;

Message no_message = [] {
    Message m;
    m.uid = 0;
    m.source = 0xffff;
    m.set_no_history();
    return m;
}();

/// Pieces of free lists that one thread had too many of, of MessagePool::kGiven each.
struct MessageDepot {
    std::mutex mutex;
    std::array<std::vector<MessagePool::Node *>, MessagePool::kClasses> pieces;
};

namespace {

MessageDepot &depot() {
    static MessageDepot d;
    return d;
}

} // namespace

void MessagePool::give(FreeList &list) {
    Node *last = list.first;
    for (unsigned i = 1; i < kGiven; ++i)
        last = last->next;
    Node *piece = std::exchange(list.first, last->next);
    last->next = nullptr;
    list.count -= kGiven;
    taken_in_ -= kGiven;
    const std::lock_guard lock(depot().mutex);
    depot().pieces[size_class(list)].push_back(piece);
}

MessagePool::Node *MessagePool::refill(FreeList &list) {
    const unsigned k = size_class(list);
    {
        const std::lock_guard lock(depot().mutex);
        if (auto &pieces = depot().pieces[k]; !pieces.empty()) {
            list.first = pieces.back();
            list.count = kGiven;
            taken_in_ += kGiven;
            pieces.pop_back();
            return list.first;
        }
    }
    constexpr unsigned kBatch = 128;
    char *p = static_cast<char *>(::operator new (std::size_t{k} * kGrain * kBatch, std::align_val_t{64}));
    for (unsigned i = 0; i < kBatch; ++i) {
        auto *n = reinterpret_cast<Node *>(p + std::size_t{i} * k * kGrain);
        n->next = list.first;
        list.first = n;
    }
    list.count = kBatch;
    taken_in_ += kBatch;
    return list.first;
}

void MessagePool::absorb(MessagePool &other) {
    taken_in_ += std::exchange(other.taken_in_, 0);
    for (unsigned k = 0; k < kClasses; ++k) {
        other.free_[k].count = 0;
        while (Node *n = other.free_[k].first) {
            other.free_[k].first = n->next;
            n->next = free_[k].first;
            free_[k].first = n;
            if (++free_[k].count == kMost)
                give(free_[k]);
        }
    }
}

} // namespace moscope::ruby
