// SPDX-License-Identifier: BSD-3-Clause
// The values of a protocol as a model has them: all of one byte or arrays of bytes, so that a state has no padding and
// equal states have equal bytes. Addresses are line numbers from 1; 0 is no line. Times are always 0: the order of
// events, not their distance, makes a state. A block of data is its age: the number of writes to its line since it was
// current. The names are those that SLICC's prelude declares.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/arithmetic.hh"
#include "mem/ruby/runtime/prelude_enums.hh"

namespace moscope::verify {

using namespace moscope::ruby;

using Addr = std::uint8_t; ///< line number from 1
using Tick = std::int64_t;
using Cycles = std::int64_t;
using NodeID = std::int32_t;
using RequestorID = std::int32_t;
struct Packet {};
using PacketPtr = Packet *;
using RequestPtr = void *;

/// What the exploration looks for: a rule that broke the protocol or a property.
class Violation : public std::exception {
  public:
    explicit Violation(std::string text) : text_(std::move(text)) {}
    const char *what() const noexcept override { return text_.c_str(); }
    /// Adds where in the protocol it happened, and the machine if the text does not name it.
    void locate(const std::string &machine, const std::string &where) {
        text_ += " (" + (text_.find(machine) == std::string::npos ? "machine " + machine + ", " : "") + where + ")";
    }

  private:
    std::string text_;
};

/// A value does not fit into a state. This says nothing about the protocol.
struct TooLarge : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// error(..) and assert(..) where there is no controller: in methods of structures, and in functions outside of
/// machines.
[[noreturn]] inline void error_at_(const char *where, const std::string &what) {
    throw Violation(std::string(where) + ": " + what);
}

/// A pointer whose fields are about to be used; Violation if it is null.
template <class T> T *present_(T *p, const char *what) {
    if (!p)
        throw Violation(std::string(what) + " is null: expected is_valid(..) before its fields are used");
    return p;
}
template <class A, class B> auto divide(A a, B b) { return checked_quotient<Violation>(a, b); }
template <class A, class B> auto remainder_of(A a, B b) { return checked_remainder<Violation>(a, b); }
template <class A, class B> auto shift_left(A a, B bits) { return checked_left<Violation>(a, bits); }
template <class A, class B> auto shift_right(A a, B bits) { return checked_right<Violation>(a, bits); }
/// Stores a number in a field, which may be a byte; TooLarge if it does not fit.
template <class T, class N> void assign_(T &field, N value, const char *where) {
    field = static_cast<T>(value);
    if (static_cast<std::int64_t>(field) != static_cast<std::int64_t>(value))
        throw TooLarge(std::string(where) + ": " + std::to_string(value) +
                       ": expected a number of one byte in a model");
}

/// The bytes that a store past the caches writes: the whole line, or a part of it.
struct WriteMask {
    std::uint8_t whole = 0;
    void clear() { whole = 0; }
};

/// Writes since the block was current: 0 is the last value written.
struct DataBlock {
    static constexpr std::uint8_t kOldest = 3; ///< the greatest age that differs from stale
    static constexpr std::uint8_t kMerged = 4; ///< the last value with a device's bytes, not yet in DRAM
    static constexpr std::uint8_t kDevice = 5; ///< what a device writes, not yet in DRAM
    static constexpr std::uint8_t kNew = 6;    ///< what a store past the caches brings: not yet a value of the line
    static constexpr std::uint8_t kStale = 7;  ///< older than any pending load may read, or never written
    std::uint8_t age = kStale;
    void clear() { age = kStale; }
    /// The line has been written elsewhere.
    void grow() {
        if (age <= kMerged)
            age = age < kOldest ? age + 1 : kStale;
    }
    /// The result is as old as its older part.
    template <class... X> void copyPartial(const DataBlock &o, X...) {
        if (o.age == kDevice)
            age = age == 0 ? kMerged : kStale;
        else if (o.age != kNew)
            age = age > o.age ? age : o.age;
    }
    void copyPartial(const DataBlock &o, const WriteMask &m) {
        if (m.whole)
            age = o.age;
        else
            copyPartial(o);
    }
    template <class... X> void atomicPartial(const DataBlock &o, X... x) { copyPartial(o, x...); }
    bool operator==(const DataBlock &) const = default;
};

struct MachineID {
    MachineType type = MachineType_NULL;
    std::uint8_t num = 0;
    MachineID() { static_assert(sizeof(MachineID) == 2); }
    MachineID(MachineType t, int n) : type(t), num(static_cast<std::uint8_t>(n)) {}
    bool operator==(const MachineID &) const = default;
    auto operator<=>(const MachineID &) const = default;
    bool isValid() const { return type != MachineType_NULL; }
    NodeID getNum() const { return num; }
    MachineType getType() const { return type; }
};

inline constexpr unsigned kMaxControllers = 16;

/// The controllers of the model, numbered machine by machine. Filled in by the generated model before its first rule.
struct Layout {
    std::uint8_t base[MachineType_NUM + 1]{}, count[MachineType_NUM + 1]{};
    unsigned total = 0;
    MachineID id[kMaxControllers];
    bool has(MachineID m) const { return m.num < count[m.type]; }
    unsigned index(MachineID m) const {
        if (!has(m))
            throw Violation(std::string("destination ") + MachineType_to_string(m.type) + "-" + std::to_string(m.num) +
                            ": no such machine: expected " +
                            (count[m.type] ? "a number from 0 to " + std::to_string(count[m.type] - 1)
                                           : std::string("a MachineType of the protocol")));
        return base[m.type] + m.num;
    }
};
inline Layout layout;
inline void add_machine(MachineType t, unsigned count) {
    layout.base[t] = static_cast<std::uint8_t>(layout.total);
    layout.count[t] = static_cast<std::uint8_t>(count);
    for (unsigned i = 0; i < count; ++i)
        layout.id[layout.total++] = {t, static_cast<int>(i)};
}

/// A set of node numbers of one machine type.
class Set {
  public:
    void setSize(int) {}
    void clear() { bits_ = 0; }
    void add(NodeID n) { bits_ |= static_cast<std::uint8_t>(1u << n); }
    void remove(NodeID n) { bits_ &= static_cast<std::uint8_t>(~(1u << n)); }
    void addSet(const Set &o) { bits_ |= o.bits_; }
    void removeSet(const Set &o) { bits_ &= static_cast<std::uint8_t>(~o.bits_); }
    bool isElement(NodeID n) const { return bits_ >> n & 1; }
    bool isEqual(const Set &o) const { return bits_ == o.bits_; }
    bool isSuperset(const Set &o) const { return (o.bits_ & ~bits_) == 0; }
    bool intersectionIsEmpty(const Set &o) const { return (o.bits_ & bits_) == 0; }
    bool isEmpty() const { return bits_ == 0; }
    int count() const { return std::popcount(bits_); }
    NodeID smallestElement() const {
        if (!bits_)
            throw Violation("Set.smallestElement of an empty set");
        return std::countr_zero(bits_);
    }
    bool operator==(const Set &) const = default;

  private:
    std::uint8_t bits_ = 0;
};

/// A set of controllers. Two bytes, without alignment.
class NetDest {
  public:
    void setSize(int) {}
    void setSize(int, int) {}
    void clear() { put(0); }
    void add(MachineID m) { put(bits() | 1u << layout.index(m)); }
    void remove(MachineID m) {
        if (isElement(m))
            put(bits() & ~(1u << layout.index(m)));
    }
    void addNetDest(const NetDest &o) { put(bits() | o.bits()); }
    void removeNetDest(const NetDest &o) { put(bits() & ~o.bits()); }
    void broadcast() { put((1u << layout.total) - 1); }
    void broadcast(MachineType t) { put(bits() | ((1u << layout.count[t]) - 1) << layout.base[t]); }
    void setNetDest(MachineType t, const Set &s) {
        for (int n = 0; n < layout.count[t]; ++n)
            s.isElement(n) ? add({t, n}) : remove({t, n});
    }
    /// False for a machine that does not exist, as on the engine.
    bool isElement(MachineID m) const {
        if (!m.isValid())
            throw Violation("NetDest: the MachineID was never set: expected a machine");
        return layout.has(m) && (bits() >> layout.index(m) & 1);
    }
    bool isSuperset(const NetDest &o) const { return (o.bits() & ~bits()) == 0; }
    bool intersectionIsEmpty(const NetDest &o) const { return (o.bits() & bits()) == 0; }
    bool isEqual(const NetDest &o) const { return bits() == o.bits(); }
    bool isEmpty() const { return bits() == 0; }
    int count() const { return std::popcount(bits()); }
    MachineID smallestElement() const {
        if (isEmpty())
            throw Violation("NetDest.smallestElement of an empty set");
        return layout.id[std::countr_zero(bits())];
    }
    MachineID smallestElement(MachineType t) const {
        for (int n = 0; n < layout.count[t]; ++n)
            if (isElement({t, n}))
                return {t, n};
        throw Violation("NetDest.smallestElement: no element of this machine type");
    }
    NetDest OR(const NetDest &o) const {
        NetDest r = *this;
        r.addNetDest(o);
        return r;
    }
    NetDest AND(const NetDest &o) const {
        NetDest r;
        r.put(bits() & o.bits());
        return r;
    }
    unsigned bits() const { return static_cast<unsigned>(low_ | high_ << 8); }
    void put(unsigned b) { low_ = static_cast<std::uint8_t>(b), high_ = static_cast<std::uint8_t>(b >> 8); }
    bool operator==(const NetDest &) const = default;

  private:
    std::uint8_t low_ = 0, high_ = 0;
};

// --- the prelude's free functions

/// Home of a line: consecutive lines have consecutive homes. A type without machines is an error where it is used.
inline MachineID mapAddressToMachine(Addr a, MachineType t) { return {t, (a - 1) % std::max<int>(1, layout.count[t])}; }
inline MachineID mapAddressToRange(Addr a, MachineType t, int, int) { return mapAddressToMachine(a, t); }
inline MachineID mapAddressToRange(Addr a, MachineType t, int, int bits, NodeID cluster) {
    return {t, (a - 1) % (1 << bits) + cluster * (1 << bits)};
}
inline NetDest broadcast(MachineType t) {
    NetDest d;
    d.broadcast(t);
    return d;
}
inline int machineCount(MachineType t) { return layout.count[t]; }
inline NodeID machineIDToNodeID(MachineID m) { return m.num; }
inline NodeID machineIDToVersion(MachineID m) { return m.num; }
inline MachineType machineIDToMachineType(MachineID m) { return m.type; }
inline MachineID createMachineID(MachineType t, NodeID n) { return {t, n}; }
inline std::int64_t zero_time() { return 0; }
inline std::int64_t intToCycles(std::int64_t) { return 0; }
inline Tick intToTick(std::int64_t) { return 0; }
inline NodeID intToID(int n) { return n; }
inline int IDToInt(NodeID n) { return n; }
inline int addressToInt(Addr a) { return a; }
inline Addr intToAddress(int a) { return static_cast<Addr>(a); }
inline int max_tokens() { return 1024; }
inline Addr makeLineAddress(Addr a) { return a; }
inline int getOffset(Addr) { return 0; }
inline int addressOffset(Addr, Addr) { return 0; }
inline int mod(int v, int m) { return v % m; }

inline bool isWriteRequest(RubyRequestType t) {
    return t == RubyRequestType_ST || t == RubyRequestType_ATOMIC || t == RubyRequestType_RMW_Read ||
           t == RubyRequestType_RMW_Write || t == RubyRequestType_Locked_RMW_Read ||
           t == RubyRequestType_Locked_RMW_Write || t == RubyRequestType_FLUSH;
}
inline bool isDataReadRequest(RubyRequestType t) { return t == RubyRequestType_LD; }
inline bool isReadRequest(RubyRequestType t) { return isDataReadRequest(t) || t == RubyRequestType_IFETCH; }
inline bool isHtmCmdRequest(RubyRequestType) { return false; }
inline bool isTlbiRequest(RubyRequestType) { return false; }

/// Prefetching is turned off, as on the engine.
struct RubyPrefetcher {
    void observeMiss(Addr, RubyRequestType) {}
    void observePfHit(Addr) {}
    void observePfMiss(Addr) {}
};

struct RubySystem {
    static int getBlockSizeBits() { return 0; }
    static int getBlockSizeBytes() { return 64; }
};

/// Functional accesses do not occur in a model.
template <class... X> bool testAndRead(const X &...) { return false; }
template <class... X> bool testAndWrite(const X &...) { return false; }
inline void functionalMemoryRead(Packet *) {}
inline bool functionalMemoryWrite(Packet *) { return false; }

} // namespace moscope::verify
