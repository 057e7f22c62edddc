// SPDX-License-Identifier: BSD-3-Clause
// What every generated protocol source includes, and the helpers that print messages.
#pragma once

#include <cstdio>
#include <string>

#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/dma_sequencer.hh"
#include "mem/ruby/runtime/perfect_cache_memory.hh"
#include "mem/ruby/runtime/requests.hh"
#include "mem/ruby/runtime/sequencer.hh"
#include "mem/ruby/runtime/slicc_util.hh"

namespace moscope::ruby {

/// Stands in for the TBE type of machines without one.
struct NoTbe {};

/// SLICC's `out_msg := m`: the fields that the protocol declares. A new message has a number of its own, and has
/// crossed no link.
template <class M> void copy_fields(M &out_msg, const M &m) {
    const auto uid = out_msg.uid;
    out_msg = m;
    out_msg.uid = uid;
    out_msg.hops = 0;
    out_msg.entered = false;
}

inline bool size_carries_data(MessageSizeType t) {
    switch (t) {
    case MessageSizeType_Data:
    case MessageSizeType_Response_Data:
    case MessageSizeType_ResponseL2hit_Data:
    case MessageSizeType_ResponseLocal_Data:
    case MessageSizeType_Writeback_Data: return true;
    default: return false;
    }
}

/// gem5's global settings, where protocols ask for them.
struct RubySystem {
    static int getBlockSizeBits() { return kLineBits; }
    static int getBlockSizeBytes() { return kLineBytes; }
};

/// Prefetchers of protocols are not modelled (docs/warts.md): protocols run with prefetching turned off.
struct RubyPrefetcher {
    void observeMiss(Addr, RubyRequestType) {}
    void observePfHit(Addr) {}
    void observePfMiss(Addr) {}
};

// error() and assert() where there is no controller: in methods of messages, and in functions outside of machines.
[[noreturn, gnu::cold, gnu::noinline]] inline void protocol_error(const std::string &what, const char *file, int line) {
    throw ProtocolError(std::string(file) + ":" + std::to_string(line) + ": " + what);
}
[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char *what, const char *file, int line) {
    protocol_error(what, file, line);
}
inline void protocol_assert(bool ok, const char *what, const char *file, int line) {
    if (__builtin_expect(!ok, 0))
        assertion_failed(what, file, line);
}

inline void complete_message(RubyRequest &m) { m.line = line_of(m.LineAddress); }
inline void complete_message(SequencerMsg &m) { m.line = line_of(m.LineAddress); }
inline void complete_message(MemoryMsg &m) {
    m.line = line_of(m.addr);
    m.size_type = static_cast<std::uint8_t>(m.MessageSize);
    m.carries_data = size_carries_data(m.MessageSize);
}

inline std::string to_text(bool v) { return v ? "true" : "false"; }
inline std::string to_text(MachineID v) {
    return v.isValid() ? std::string(MachineType_to_string(v.type)) + "-" + std::to_string(v.num) : "none";
}
inline std::string to_text(const NetDest &v) {
    std::string s;
    v.for_each([&](NodeIndex i) { s += (s.empty() ? "" : " ") + to_text(NodeMap::current->id[i]); });
    return "{" + s + "}";
}
template <class T>
requires std::is_integral_v<T> std::string to_text(T v) { return std::to_string(v); }
template <class T> void append_field(std::string &s, const char *name, const T &v) {
    if constexpr (requires { to_text(v); }) {
        if (!s.empty())
            s += ", ";
        s += name;
        s += "=";
        s += to_text(v);
    }
}

inline std::string describe_engine_message(const Message &m) {
    switch (m.type) {
    case RubyRequest::kType:
        return std::string("Type=") + RubyRequestType_to_string(static_cast<const RubyRequest &>(m).Type);
    case SequencerMsg::kType:
        return std::string("Type=") + SequencerRequestType_to_string(static_cast<const SequencerMsg &>(m).Type);
    case MemoryMsg::kType:
        return std::string("Type=") + MemoryRequestType_to_string(static_cast<const MemoryMsg &>(m).Type);
    default: return "";
    }
}

} // namespace moscope::ruby
