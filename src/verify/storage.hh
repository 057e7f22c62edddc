// SPDX-License-Identifier: BSD-3-Clause
// The arrays of a model (caches, directories, TBEs): a place for each line of the model, in use or zero. The capacity
// of a cache is left open, but at least one line. If the cache holds another line, the exploration therefore tries both
// answers to a question for room, and each line that it holds as the victim. So replacement happens whenever it can.
#pragma once

#include "verify/world.hh"

namespace moscope::verify {

/// Lines of a model; a request for line kElsewhere only makes room for it.
inline constexpr unsigned kMaxLines = 3;
inline constexpr Addr kElsewhere = kMaxLines + 1;

struct AbstractCacheEntry {
    void changePermission(AccessPermission) {}
};

/// Stands in for the TBE type of machines without one.
struct NoTbe {};

/// `used`: an entry of the line exists.
template <class E, unsigned kLines> struct Table {
    std::uint8_t used[kLines];
    E entries[kLines];

    E *find(Addr a) { return a - 1u < kLines && used[a - 1] ? &entries[a - 1] : nullptr; }
    /// `what`: the entry's name in errors.
    E *make(Addr a, const char *what) {
        if (a - 1u >= kLines)
            throw Violation(std::string(what) + " is allocated for an address that is not a line of the model");
        if (used[a - 1])
            throw Violation(std::string(what) + " for this line is allocated already");
        used[a - 1] = 1;
        world().changed(this);
        return &(entries[a - 1] = E{});
    }
    /// Clears those fields of the line's entry on which no rule depends.
    void forget(Addr a) {
        if (E *e = find(a))
            e->forget();
    }
    void drop(Addr a, const char *what) {
        if (!find(a))
            throw Violation(std::string(what) + " is deallocated for a line that has none");
        used[a - 1] = 0;
        world().changed(this);
        std::memset(static_cast<void *>(&entries[a - 1]), 0, sizeof(E));
    }
};

inline constexpr const char *kAnEntry = "an entry", *kATbe = "a TBE";

template <class E> struct NewEntry {};

/// CacheMemory and DirectoryMemory.
template <class E, unsigned kLines> struct CacheArray : Table<E, kLines> {
    E *lookup(Addr a) { return this->find(a); }
    template <class New> E *allocate(Addr a, New, bool = false) { return this->make(a, kAnEntry); }
    template <class New> void allocateVoid(Addr a, New) { this->make(a, kAnEntry); }
    void deallocate(Addr a) { this->drop(a, kAnEntry); }
    E *getNullEntry() { return nullptr; }
    bool isTagPresent(Addr a) { return this->find(a); }
    bool isPresent(Addr a) { return a - 1u < kLines; }
    void invalidateBlock(Addr) {}
    bool cacheAvail(Addr a) {
        if (this->find(a))
            return true;
        const unsigned others = count();
        if (!others)
            return true;
        return a != kElsewhere && world().choose(2, this, a, false) == 0;
    }
    Addr cacheProbe(Addr a) {
        unsigned n = world().choose(count(), this, a, true);
        for (unsigned i = 0; i < kLines; ++i)
            if (this->used[i] && n-- == 0)
                return static_cast<Addr>(i + 1);
        throw Violation("cacheProbe of an empty array");
    }
    template <class... X> void setMRU(X...) {}
    std::int64_t getTagLatency() { return 0; }
    std::int64_t getDataLatency() { return 0; }
    int getCacheSize() { return 64; }
    int getNumBlocks() { return static_cast<int>(kLines); }
    template <class... X> void recordRequestType(X...) {}
    template <class... X> bool checkResourceAvailable(X...) { return true; }
    void profileDemandHit() {}
    void profileDemandMiss() {}
    void profilePrefetchHit() {}
    void profilePrefetchMiss() {}

  private:
    unsigned count() const {
        unsigned n = 0;
        for (const auto u : this->used)
            n += u;
        return n;
    }
};

/// An entry of a directory's memory exists from the beginning; protocols differ in whether they allocate it.
template <class E, unsigned kLines> struct PerfectCacheArray : Table<E, kLines> {
    /// A nullable pointer where the protocol handles the entries by pointers, else a reference.
    auto lookup(Addr a) -> std::conditional_t<std::is_base_of_v<AbstractCacheEntry, E>, E *, E &> {
        E *const e = this->find(a);
        if constexpr (std::is_base_of_v<AbstractCacheEntry, E>) {
            return e;
        } else {
            if (!e)
                throw Violation("PerfectCacheMemory.lookup of a line without an entry");
            return *e;
        }
    }
    void allocate(Addr a) { this->make(a, kAnEntry); }
    void deallocate(Addr a) { this->drop(a, kAnEntry); }
    bool isTagPresent(Addr a) { return this->find(a); }
    bool cacheAvail(Addr) { return true; }
};

/// The first of several TBEs that is not null.
template <class T, class... More> T *first_of(T *tbe, More *...others) {
    if constexpr (sizeof...(others) == 0)
        return tbe;
    else
        return tbe ? tbe : first_of(others...);
}

template <class T, unsigned kLines> struct TBEArray : Table<T, kLines> {
    T *lookup(Addr a) { return this->find(a); }
    T *getNullEntry() { return nullptr; }
    void allocate(Addr a) { this->make(a, kATbe); }
    void deallocate(Addr a) { this->drop(a, kATbe); }
    bool isPresent(Addr a) { return this->find(a); }
    template <class... X> bool areNSlotsAvailable(X...) { return true; }
};

} // namespace moscope::verify
