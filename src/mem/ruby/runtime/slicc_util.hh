// SPDX-License-Identifier: BSD-3-Clause
// The free functions that SLICC's prelude declares. Mapping of addresses to homes belongs to the machine:
// AddressMap, installed while its events run.
#pragma once

#include <string>
#include <vector>

#include "mem/ruby/runtime/data_block.hh"
#include "mem/ruby/runtime/net_dest.hh"
#include "mem/ruby/runtime/requests.hh"

namespace moscope::ruby {

/// The home nodes of physical addresses.
struct AddressMap {
    struct Range {
        Addr base;
        std::uint64_t bytes;
        unsigned node;
    };
    std::vector<Range> ranges;  ///< by base, without gaps between them
    unsigned uniform_shift = 0; ///< log2 of the range size when all are equal and start at 0; else 0

    unsigned node_of(Addr a) const {
        if (uniform_shift)
            return static_cast<unsigned>(a >> uniform_shift);
        for (const auto &r : ranges)
            if (a - r.base < r.bytes)
                return r.node;
        throw ProtocolError("an address that has no home node");
    }
    static inline const AddressMap *current = nullptr;
};

inline MachineID mapAddressToMachine(Addr a, MachineType t) {
    return {t, static_cast<NodeID>(AddressMap::current->node_of(a))};
}
/// Interleaving by address bits, as gem5 spreads banks of a shared cache.
inline MachineID mapAddressToRange(Addr a, MachineType t, int low, int bits) {
    const Addr n = bits ? (a >> low) & ((Addr{1} << bits) - 1) : 0;
    const unsigned count = NodeMap::current->count[t]; // 0: sending to the result reports that there is none
    return {t, static_cast<NodeID>(count ? n % count : n)};
}
inline MachineID mapAddressToRange(Addr a, MachineType t, int low, int bits, NodeID cluster) {
    const Addr n = bits ? (a >> low) & ((Addr{1} << bits) - 1) : 0;
    return {t, static_cast<NodeID>(n + static_cast<Addr>(cluster) * (Addr{1} << bits))};
}
inline NetDest broadcast(MachineType t) {
    NetDest d;
    d.broadcast(t);
    return d;
}
inline int machineCount(MachineType t) { return NodeMap::current->count[t]; }
inline NodeID machineIDToNodeID(MachineID m) { return m.num; }
inline NodeID machineIDToVersion(MachineID m) { return m.num; }
inline MachineType machineIDToMachineType(MachineID m) { return m.type; }
inline MachineID createMachineID(MachineType t, NodeID n) { return {t, n}; }

/// Cycles of a controller's clock.
using Cycles = std::int64_t;

inline std::int64_t zero_time() { return 0; }
inline std::int64_t intToCycles(std::int64_t c) { return c; }
constexpr Tick intToTick(std::int64_t ps) { return ps * 1000; } // gem5's tick is a picosecond, here a femtosecond
inline NodeID intToID(int n) { return n; }
inline int IDToInt(NodeID n) { return n; }
inline int addressToInt(Addr a) { return static_cast<int>(a); }
inline Addr intToAddress(int a) { return static_cast<Addr>(a); }
inline int addressOffset(Addr a, Addr base) { return static_cast<int>(a - base); }
inline int max_tokens() { return 1024; }
inline Addr maskLowOrderBits(Addr a, int n) { return a & ~((Addr{1} << n) - 1); }
inline Addr makeLineAddress(Addr a) { return line_of(a); }
inline Addr makeLineAddress(Addr a, int line_bits) { return maskLowOrderBits(a, line_bits); }
inline int getOffset(Addr a) { return static_cast<int>(line_offset(a)); }
inline int mod(int v, int m) { return v % m; }
inline Addr bitSelect(Addr a, int low, int high) { return (a >> low) & ((Addr{2} << (high - low)) - 1); }
inline Addr makeNextStrideAddress(Addr a, int stride) {
    return line_of(a) + static_cast<Addr>(static_cast<std::int64_t>(stride) * kLineBytes);
}
using BoolVec = std::vector<bool>;
inline int countBoolVec(const BoolVec &v) {
    int n = 0;
    for (bool b : v)
        n += b;
    return n;
}
inline RequestorID getRequestorID(RequestPtr) { return 0; }

inline bool isWriteRequest(RubyRequestType t) {
    return t == RubyRequestType_ST || t == RubyRequestType_ATOMIC || t == RubyRequestType_ATOMIC_RETURN ||
           t == RubyRequestType_ATOMIC_NO_RETURN || t == RubyRequestType_RMW_Read || t == RubyRequestType_RMW_Write ||
           t == RubyRequestType_Store_Conditional || t == RubyRequestType_Locked_RMW_Read ||
           t == RubyRequestType_Locked_RMW_Write || t == RubyRequestType_FLUSH;
}
inline bool isDataReadRequest(RubyRequestType t) { return t == RubyRequestType_LD || t == RubyRequestType_Load_Linked; }
inline bool isReadRequest(RubyRequestType t) { return isDataReadRequest(t) || t == RubyRequestType_IFETCH; }
inline bool isHtmCmdRequest(RubyRequestType) { return false; }
inline bool isTlbiRequest(RubyRequestType) { return false; }
inline RubyRequestType htmCmdToRubyRequestType(Packet *) { return RubyRequestType_NULL; }
inline RubyRequestType tlbiCmdToRubyRequestType(Packet *) { return RubyRequestType_NULL; }

/// Functional accesses to a line held in a block. False in timing mode, where bytes live in guest memory.
template <class D> bool testAndRead(Addr a, const D &d, Packet *pkt) {
    if (line_of(a) != line_of(pkt->addr) || !d.bytes())
        return false;
    std::memcpy(pkt->bytes, d.bytes(), kLineBytes);
    return pkt->found = true;
}
template <class D> bool testAndReadMask(Addr a, const D &d, const WriteMask &m, Packet *pkt) {
    if (line_of(a) != line_of(pkt->addr) || !d.bytes())
        return false;
    for (unsigned i = 0; i < kLineBytes; ++i)
        if (m.test(static_cast<int>(i)))
            pkt->bytes[i] = d.bytes()[i];
    return pkt->found = true;
}
template <class D> bool testAndWrite(Addr a, D &d, Packet *pkt) {
    if (line_of(a) != line_of(pkt->addr) || !d.bytes())
        return false;
    std::memcpy(d.bytes(), pkt->bytes, kLineBytes);
    return true;
}

} // namespace moscope::ruby
