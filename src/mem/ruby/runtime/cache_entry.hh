// SPDX-License-Identifier: BSD-3-Clause
// What every line held by a SLICC cache or directory has: its address, the permission that the protocol's
// state gives, and where it sits. Protocols add their own fields by deriving. With a state and no data an entry has
// only 16 bytes, because the simulator reads many thousands of entries, more than the host's caches hold. Entries of
// arrays lie in the arrays; others come from free lists of their type, filled in blocks.
#pragma once

#include <array>
#include <new>
#include <vector>

#include "base/types.hh"
#include "mem/ruby/runtime/message_pool.hh"
#include "mem/ruby/runtime/prelude_enums.hh"

namespace moscope::ruby {

struct AbstractCacheEntry {
    Addr m_Address = 0;
    std::uint32_t slot = ~0u; ///< set * ways + way in the cache that holds it
    AccessPermission m_Permission = AccessPermission_NotPresent;
    bool m_locked = false;

    void changePermission(AccessPermission p) { m_Permission = p; }
    AccessPermission getPermission() const { return m_Permission; }
};

/// SLICC's `new Type` as the argument of an array's allocate(): the entry is constructed in its way.
template <class T> struct NewEntry {};

/// Free list of one entry type; T is trivially destructible.
template <class T> class EntryPool {
  public:
    static T *make() {
        auto &f = free_list();
        if (f.empty()) {
            constexpr std::size_t kBlock = 256;
            auto *block = static_cast<T *>(::operator new (sizeof(T) * kBlock, std::align_val_t{alignof(T)}));
            for (std::size_t i = 0; i < kBlock; ++i)
                f.push_back(block + (kBlock - 1 - i));
        }
        T *p = f.back();
        f.pop_back();
        return new (p) T();
    }
    static void give_back(T *e) { free_list().push_back(e); }

  private:
    /// The free list of the calling thread.
    static std::vector<T *> &free_list() {
        // The lists live as long as the process: a machine that is destroyed late still gives entries back.
        struct alignas(kLineBytes) List {
            std::vector<T *> entries;
        };
        static auto *lists = new std::array<List, MessagePool::kThreads>;
        return (*lists)[message_pool().thread()].entries;
    }
};

} // namespace moscope::ruby
