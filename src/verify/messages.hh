// SPDX-License-Identifier: BSD-3-Clause
// Messages under way, and the messages that the engine's own components exchange with a protocol: requests of cores and
// devices, and traffic with DRAM. A message lies in a slot of the state until its receiver takes it.
#pragma once

#include "verify/values.hh"

namespace moscope::verify {

struct RubyRequest {
    static constexpr std::uint8_t kKind = 1;
    Addr LineAddress = 0, PhysicalAddress = 0;
    RubyRequestType Type = RubyRequestType_NULL;
    RubyAccessMode AccessMode = RubyAccessMode_User;
    PrefetchBit Prefetch = PrefetchBit_No;
    std::uint8_t Size = 64, contextId = 0, ProgramCounter = 0;
    DataBlock WTData;
    WriteMask writeMask;
    RequestPtr getRequestPtr() { return nullptr; }
    Addr line() const { return LineAddress; }
    template <class M, class V> static void visit(M &m, V &&v) {
        v.line("LineAddress", m.LineAddress), v.line("PhysicalAddress", m.PhysicalAddress), v.plain("Type", m.Type);
        v.data("WTData", m.WTData);
    }
};

struct MemoryMsg {
    static constexpr std::uint8_t kKind = 2;
    Addr addr = 0;
    MemoryRequestType Type = MemoryRequestType_MEMORY_READ;
    MachineID Sender, OriginalRequestorMachId;
    DataBlock DataBlk;
    MessageSizeType MessageSize = MessageSizeType_Control;
    std::int8_t Len = 0, Acks = 0;
    PrefetchBit Prefetch = PrefetchBit_No;
    bool ReadX = false, isGLCSet = false, isSLCSet = false;
    Addr line() const { return addr; }
    template <class M, class V> static void visit(M &m, V &&v) {
        v.line("addr", m.addr), v.plain("Type", m.Type), v.machine("Sender", m.Sender);
        v.machine("OriginalRequestorMachId", m.OriginalRequestorMachId), v.data("DataBlk", m.DataBlk);
    }
};

inline constexpr std::int8_t kLineBytes = 64;

/// A device's request.
struct SequencerMsg {
    static constexpr std::uint8_t kKind = 3;
    Addr LineAddress = 0, PhysicalAddress = 0, ProgramCounter = 0;
    SequencerRequestType Type = SequencerRequestType_NULL;
    RubyAccessMode AccessMode = RubyAccessMode_User;
    WriteMask writeMask;
    DataBlock DataBlk;
    std::int8_t Len = kLineBytes;
    PrefetchBit Prefetch = PrefetchBit_No;
    MessageSizeType MessageSize = MessageSizeType_Request_Control;
    Addr line() const { return LineAddress; }
    template <class M, class V> static void visit(M &m, V &&v) {
        v.line("LineAddress", m.LineAddress), v.line("PhysicalAddress", m.PhysicalAddress), v.plain("Type", m.Type);
        v.data("DataBlk", m.DataBlk);
    }
};

/// What a device requests: to read a line, to write a line, or to write a part of one.
enum class DeviceRequest : std::uint8_t { read, write, part };

inline constexpr std::uint8_t kFirstKind = 4; ///< of a protocol's own messages
inline constexpr std::uint8_t kMemory = 0xfe; ///< receiver of requests to DRAM

/// A message under way.
template <unsigned kBytes> struct Slot {
    std::uint8_t kind;   ///< 0: the slot is free
    std::uint8_t to;     ///< controller, or kMemory
    std::uint8_t buffer; ///< of the receiver
    std::uint8_t from;
    Addr line;            ///< that the message is about
    Addr aside;           ///< set aside until messages for this line are woken; 0: not
    std::uint8_t blocked; ///< it has reached the head of its buffer and has been stalled there
    std::uint8_t body[kBytes];

    template <class M> M &as() { return *reinterpret_cast<M *>(body); }
    template <class M> const M &as() const { return *reinterpret_cast<const M *>(body); }
};

/// What a core or a device waits for.
struct Core {
    static constexpr std::uint8_t kManyWrites = 3;
    std::uint8_t wants; ///< 1 + RubyRequestType; 0: nothing
    Addr line;
    std::uint8_t since; ///< writes to the line since the request, if it is a load; kManyWrites: so many or more.
                        ///< For a write of a device, or of a core past the caches: 1 once DRAM has the bytes
    bool waits() const { return wants != 0; }
    bool reads() const { return waits() && (type() == RubyRequestType_LD || type() == RubyRequestType_IFETCH); }
    RubyRequestType type() const { return static_cast<RubyRequestType>(wants - 1); }
};

} // namespace moscope::verify
