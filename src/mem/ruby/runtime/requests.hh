// SPDX-License-Identifier: BSD-3-Clause
// The messages that the engine itself makes or takes: requests of a core (RubyRequest), of a device
// (SequencerMsg) and to memory (MemoryMsg). Field names are those that SLICC protocols use.
#pragma once

#include "mem/ruby/runtime/data_block.hh"
#include "mem/ruby/runtime/message.hh"

namespace moscope::ruby {

/// A functional access: looks into caches and messages without simulated time.
struct Packet {
    Addr addr = 0;
    std::byte *bytes = nullptr; ///< a whole line
    bool found = false;
};
using PacketPtr = Packet *;
using RequestPtr = const Packet *;
using RequestorID = std::uint16_t;

struct RubyRequest : Message {
    Addr LineAddress = 0;
    Addr PhysicalAddress = 0;
    Addr ProgramCounter = 0;
    int Size = 0;
    int contextId = 0;
    // Side by side without a gap, so that few instructions set them.
    RubyRequestType Type = RubyRequestType_NULL;
    RubyAccessMode AccessMode = RubyAccessMode_User;
    PrefetchBit Prefetch = PrefetchBit_No;
    bool isSecure = false;
    int wfid = 0;
    bool htmFromTransaction = false;
    bool isTlbi = false;
    bool isGLCSet = false;
    bool isSLCSet = false;
    int htmTransactionUid = 0;
    std::uint64_t instSeqNum = 0;
    PacketPtr pkt = nullptr;
    Addr tlbiTransactionUid = 0;
    WriteMask writeMask;
    RawBlock WTData; ///< only full-line stores carry bytes

    RubyRequest() {}
    RequestPtr getRequestPtr() const { return pkt; }
    static constexpr std::uint16_t kType = 0xfffe;
};

struct SequencerMsg : Message {
    Addr LineAddress = 0;
    Addr PhysicalAddress = 0;
    SequencerRequestType Type = SequencerRequestType_NULL;
    Addr ProgramCounter = 0;
    RubyAccessMode AccessMode = RubyAccessMode_Device;
    WriteMask writeMask;
    RawBlock DataBlk;
    int Len = 0;
    PrefetchBit Prefetch = PrefetchBit_No;
    MessageSizeType MessageSize = MessageSizeType_Request_Control;

    SequencerMsg() {}
    static constexpr std::uint16_t kType = 0xfffd;
};

struct MemoryMsg : Message {
    Addr addr = 0;
    MemoryRequestType Type = MemoryRequestType_MEMORY_READ;
    MachineID Sender;
    MachineID OriginalRequestorMachId;
    RawBlock DataBlk;
    MessageSizeType MessageSize = MessageSizeType_Control;
    int Len = 0;
    PrefetchBit Prefetch = PrefetchBit_No;
    bool ReadX = false;
    int Acks = 0;
    bool isGLCSet = false;
    bool isSLCSet = false;

    MemoryMsg() {}
    static constexpr std::uint16_t kType = 0xfffc;
};

} // namespace moscope::ruby
