// SPDX-License-Identifier: BSD-3-Clause
// Allocation of messages: free lists by size class, in one pool for each simulating thread. A message may be freed on
// another thread than the one that made it; a pool with too many free messages gives some to the others through a
// depot.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/error.hh"
#include "mem/ruby/runtime/message.hh"

namespace moscope::ruby {

class MessagePool {
  public:
    static constexpr unsigned kThreads = 64; ///< that may simulate at once

    constexpr MessagePool() = default;
    /// The pool of thread number `thread`, from 1 on. Its messages have other numbers than those of all other threads.
    explicit MessagePool(unsigned thread) : thread_(thread), last_uid_(std::uint64_t{thread} << 56) {}
    MessagePool(const MessagePool &) = delete;
    MessagePool &operator=(const MessagePool &) = delete;

    template <class T> T *make() {
        T *m = make_without_history<T>();
        m->set_no_history();
        m->stamp = 0;
        return m;
    }
    /// The same for one whose history the caller sets.
    template <class T> T *make_without_history() {
        static_assert(std::is_base_of_v<Message, T> && std::is_trivially_copyable_v<T>);
        void *const p = allocate(sizeof(T));
        const std::uint64_t uid = ++last_uid_; // read before the fields get their values
        T *m = new (p) T;                      // each field has an initializer: nothing else is cleared
        m->bytes = sizeof(T);
        m->uid = uid;
        return m;
    }
    Message *clone(const Message *m) {
        void *p = allocate(m->bytes);
        std::memcpy(p, static_cast<const void *>(m), m->bytes);
        auto *c = static_cast<Message *>(p);
        c->uid = ++last_uid_;
        return c;
    }
    void free(Message *m) {
        FreeList &list = list_of(m->bytes);
        auto *n = reinterpret_cast<Node *>(m);
        n->next = list.first;
        list.first = n;
        if (__builtin_expect(++list.count == kMost, 0))
            give(list);
    }
    unsigned thread() const { return thread_; }
    /// Messages made here minus messages freed here. The sum over all pools is the number under way.
    std::int64_t live() const {
        std::int64_t n = taken_in_;
        for (const FreeList &list : free_)
            n -= list.count;
        return n;
    }
    /// Restarts the numbering; called when a machine is built, so that runs in one process are alike.
    void restart_numbering() { last_uid_ = 0; }
    /// Takes over the messages of a pool that is not used any more.
    void absorb(MessagePool &other);

  private:
    struct Node {
        Node *next;
    };
    static constexpr unsigned kGrain = 64, kClasses = 32;
    /// As large as the step between size classes, so that a size, rounded up, is the offset of its list.
    struct alignas(kGrain) FreeList {
        Node *first = nullptr;
        std::uint32_t count = 0;
    };
    static_assert(sizeof(FreeList) == kGrain);
    static constexpr std::uint32_t kMost = 1024, kGiven = kMost / 2; ///< of a class; size of pieces for the depot
    FreeList &list_of(std::uint32_t bytes) { return free_[(bytes + kGrain - 1) / kGrain]; }
    unsigned size_class(const FreeList &list) const { return static_cast<unsigned>(&list - free_.data()); }

    void *allocate(std::uint32_t bytes) {
        MOSCOPE_CHECK((bytes + kGrain - 1) / kGrain < kClasses);
        FreeList &list = list_of(bytes);
        Node *n = list.first;
        if (__builtin_expect(!n, 0))
            n = refill(list);
        list.first = n->next;
        --list.count;
        return n;
    }
    Node *refill(FreeList &list); ///< returns its first
    void give(FreeList &list);

    friend struct MessageDepot;
    std::array<FreeList, kClasses> free_{};
    unsigned thread_ = 0;
    std::uint64_t last_uid_ = 0;
    std::int64_t taken_in_ = 0; ///< from the host or the depot, less what was given to it
};

/// The default pool: that of the thread that runs machines.
extern constinit MessagePool the_message_pool;
/// Initial-exec, because it is read for each message.
extern thread_local constinit MessagePool *this_threads_pool __attribute__((tls_model("initial-exec")));
inline MessagePool &message_pool() { return *this_threads_pool; }

} // namespace moscope::ruby
