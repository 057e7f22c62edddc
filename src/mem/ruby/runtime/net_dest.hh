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

/// A flat set of small numbers: what Set and NetDest have in common.
template <class Self> class NodeBits {
  public:
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
    bool isEqual(const Self &o) const { return w_ == o.w_; }
    bool isSuperset(const Self &o) const {
        for (unsigned i = 0; i < kWords; ++i)
            if (o.w_[i] & ~w_[i])
                return false;
        return true;
    }
    bool intersectionIsEmpty(const Self &o) const {
        for (unsigned i = 0; i < kWords; ++i)
            if (o.w_[i] & w_[i])
                return false;
        return true;
    }
    bool operator==(const NodeBits &) const = default;

  protected:
    static constexpr unsigned kWords = kMaxNodes / 64;

    bool has(unsigned n) const { return (w_[n >> 6] >> (n & 63)) & 1; }
    void insert(unsigned n) { w_[n >> 6] |= std::uint64_t{1} << (n & 63); }
    void erase(unsigned n) { w_[n >> 6] &= ~(std::uint64_t{1} << (n & 63)); }
    void insert_all(const Self &o) {
        for (unsigned i = 0; i < kWords; ++i)
            w_[i] |= o.w_[i];
    }
    void erase_all(const Self &o) {
        for (unsigned i = 0; i < kWords; ++i)
            w_[i] &= ~o.w_[i];
    }
    /// The smallest element, or kMaxNodes.
    unsigned first() const {
        for (unsigned i = 0; i < kWords; ++i)
            if (w_[i])
                return 64 * i + static_cast<unsigned>(std::countr_zero(w_[i]));
        return kMaxNodes;
    }

    std::array<std::uint64_t, kWords> w_{};
};

/// A set of node numbers of one machine type.
class Set : public NodeBits<Set> {
    friend NodeBits;

  public:
    void setSize(int) {}
    void add(NodeID n) { insert(static_cast<unsigned>(n)); }
    void remove(NodeID n) { erase(static_cast<unsigned>(n)); }
    void addSet(const Set &o) { insert_all(o); }
    void removeSet(const Set &o) { erase_all(o); }
    bool isElement(NodeID n) const { return has(static_cast<unsigned>(n)); }
    NodeID smallestElement() const {
        if (const unsigned n = first(); n != kMaxNodes)
            return static_cast<NodeID>(n);
        throw ProtocolError("Set.smallestElement of an empty set");
    }
    bool operator==(const Set &) const = default;
};

/// A set of controllers of any type.
class NetDest : public NodeBits<NetDest> {
    friend NodeBits;

  public:
    void setSize(int) {}
    void setSize(int, int) {}
    void add(MachineID m) { add_index(map().index(m)); }
    void remove(MachineID m) { remove_index(map().index(m)); }
    void addNetDest(const NetDest &o) { insert_all(o); }
    void removeNetDest(const NetDest &o) { erase_all(o); }
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
    bool isElement(MachineID m) const { return has_index(map().index(m)); }
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
    void add_index(NodeIndex i) { insert(i); }
    void remove_index(NodeIndex i) { erase(i); }
    bool has_index(NodeIndex i) const { return has(i); }
    NodeIndex first_index() const { return static_cast<NodeIndex>(first()); }
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
};

} // namespace moscope::ruby
