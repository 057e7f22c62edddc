// SPDX-License-Identifier: BSD-3-Clause
// Names of controllers and sets of them, with the interface that SLICC gives to MachineID, Set and NetDest.
// Controllers are numbered machine by machine (all of a type side by side), so a NetDest is one flat bit set
// and travels in a message by value. The numbering belongs to the machine being simulated: NodeMap.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/error.hh"
#include "mem/ruby/runtime/prelude_enums.hh"

namespace moscope::ruby {

using NodeID = std::int32_t;
using NodeIndex = std::uint16_t; ///< position of a controller in the machine-wide numbering
inline constexpr unsigned kMaxNodes = 256;

struct MachineID {
    MachineType type = MachineType_NULL;
    NodeID num = 0;
    bool operator==(const MachineID &) const = default;
    auto operator<=>(const MachineID &) const = default;
    bool isValid() const { return type != MachineType_NULL; }
    NodeID getNum() const { return num; }
    MachineType getType() const { return type; }
};

/// Machine-wide numbering of controllers; the generated code's view of "which machine is this".
struct NodeMap {
    std::array<NodeIndex, MachineType_NUM + 1> base{}; ///< first number of a type
    std::array<NodeIndex, MachineType_NUM + 1> count{};
    unsigned total = 0;
    std::array<MachineID, kMaxNodes> id{};

    NodeIndex index(MachineID m) const { return static_cast<NodeIndex>(base[m.type] + m.num); }

    /// The map of the machine whose events run; set by the machine before it runs.
    static inline const NodeMap *current = nullptr;
};

/// A set of node numbers of one machine type.
class Set {
  public:
    void setSize(int) {}
    void add(NodeID n) { w_[n >> 6] |= bit(n); }
    void remove(NodeID n) { w_[n >> 6] &= ~bit(n); }
    void addSet(const Set &o) {
        each(o, [](auto a, auto b) { return a | b; });
    }
    void removeSet(const Set &o) {
        each(o, [](auto a, auto b) { return a & ~b; });
    }
    void clear() { w_ = {}; }
    int count() const {
        int n = 0;
        for (auto w : w_)
            n += std::popcount(w);
        return n;
    }
    bool isEmpty() const { return count() == 0; }
    bool isElement(NodeID n) const { return (w_[n >> 6] & bit(n)) != 0; }
    bool isEqual(const Set &o) const { return w_ == o.w_; }
    bool isSuperset(const Set &o) const {
        for (unsigned i = 0; i < w_.size(); ++i)
            if (o.w_[i] & ~w_[i])
                return false;
        return true;
    }
    bool intersectionIsEmpty(const Set &o) const {
        for (unsigned i = 0; i < w_.size(); ++i)
            if (o.w_[i] & w_[i])
                return false;
        return true;
    }
    NodeID smallestElement() const {
        for (unsigned i = 0; i < w_.size(); ++i)
            if (w_[i])
                return static_cast<NodeID>(64 * i + static_cast<unsigned>(std::countr_zero(w_[i])));
        throw ProtocolError("Set.smallestElement of an empty set");
    }
    bool operator==(const Set &) const = default;

  private:
    static std::uint64_t bit(NodeID n) { return std::uint64_t{1} << (n & 63); }
    template <class F> void each(const Set &o, F f) {
        for (unsigned i = 0; i < w_.size(); ++i)
            w_[i] = f(w_[i], o.w_[i]);
    }
    std::array<std::uint64_t, kMaxNodes / 64> w_{};
};

/// A set of controllers of any type.
class NetDest {
  public:
    static constexpr unsigned kWords = kMaxNodes / 64;

    void setSize(int) {}
    void setSize(int, int) {}
    void add(MachineID m) { add_index(map().index(m)); }
    void remove(MachineID m) { remove_index(map().index(m)); }
    void addNetDest(const NetDest &o) {
        for (unsigned i = 0; i < kWords; ++i)
            w_[i] |= o.w_[i];
    }
    void removeNetDest(const NetDest &o) {
        for (unsigned i = 0; i < kWords; ++i)
            w_[i] &= ~o.w_[i];
    }
    void setNetDest(MachineType t, const Set &s) {
        for (NodeID n = 0; n < map().count[t]; ++n)
            s.isElement(n) ? add({t, n}) : remove({t, n});
    }
    /// Every controller of every type.
    void broadcast() {
        for (unsigned i = 0; i < map().total; ++i)
            add_index(static_cast<NodeIndex>(i));
    }
    void broadcast(MachineType t) {
        for (unsigned i = 0; i < map().count[t]; ++i)
            add_index(static_cast<NodeIndex>(map().base[t] + i));
    }
    void clear() { w_ = {}; }
    int count() const {
        int n = 0;
        for (auto w : w_)
            n += std::popcount(w);
        return n;
    }
    bool isEmpty() const {
        std::uint64_t any = 0;
        for (auto w : w_)
            any |= w;
        return any == 0;
    }
    bool isElement(MachineID m) const { return has_index(map().index(m)); }
    bool isSuperset(const NetDest &o) const {
        for (unsigned i = 0; i < kWords; ++i)
            if (o.w_[i] & ~w_[i])
                return false;
        return true;
    }
    bool intersectionIsEmpty(const NetDest &o) const {
        for (unsigned i = 0; i < kWords; ++i)
            if (o.w_[i] & w_[i])
                return false;
        return true;
    }
    MachineID smallestElement() const {
        if (isEmpty())
            throw ProtocolError("NetDest.smallestElement of an empty set");
        return map().id[first_index()];
    }
    MachineID smallestElement(MachineType t) const {
        for (NodeID n = 0; n < map().count[t]; ++n)
            if (isElement({t, n}))
                return {t, n};
        throw ProtocolError("NetDest.smallestElement: no element of this machine type");
    }
    NetDest OR(const NetDest &o) const {
        NetDest r = *this;
        r.addNetDest(o);
        return r;
    }
    NetDest AND(const NetDest &o) const {
        NetDest r = *this;
        for (unsigned i = 0; i < kWords; ++i)
            r.w_[i] &= o.w_[i];
        return r;
    }
    bool operator==(const NetDest &) const = default;

    // The machine-wide numbering, for the network.
    void add_index(NodeIndex i) { w_[i >> 6] |= std::uint64_t{1} << (i & 63); }
    void remove_index(NodeIndex i) { w_[i >> 6] &= ~(std::uint64_t{1} << (i & 63)); }
    bool has_index(NodeIndex i) const { return (w_[i >> 6] >> (i & 63)) & 1; }
    NodeIndex first_index() const {
        for (unsigned i = 0; i < kWords; ++i)
            if (w_[i])
                return static_cast<NodeIndex>(64 * i + static_cast<unsigned>(std::countr_zero(w_[i])));
        return kMaxNodes;
    }
    /// The only element, or kMaxNodes if there are several or none.
    NodeIndex sole_index() const {
        std::uint64_t any = 0, several = 0;
        unsigned base = 0;
        for (unsigned i = 0; i < kWords; ++i) {
            several |= any & (w_[i] ? ~std::uint64_t{0} : 0);
            base = w_[i] ? 64 * i : base;
            any |= w_[i];
        }
        if (any == 0 || several != 0 || (any & (any - 1)) != 0)
            return kMaxNodes;
        return static_cast<NodeIndex>(base + static_cast<unsigned>(std::countr_zero(any)));
    }
    /// Calls f(NodeIndex) for each element, in increasing order.
    template <class F> void for_each(F &&f) const {
        for (unsigned i = 0; i < kWords; ++i)
            for (std::uint64_t w = w_[i]; w; w &= w - 1)
                f(static_cast<NodeIndex>(64 * i + static_cast<unsigned>(std::countr_zero(w))));
    }

  private:
    static const NodeMap &map() { return *NodeMap::current; }
    std::array<std::uint64_t, kWords> w_{};
};

} // namespace moscope::ruby
