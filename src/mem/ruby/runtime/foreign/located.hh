// SPDX-License-Identifier: BSD-3-Clause
// The base of the controllers of protocols from outside the project. It knows which action or in_port runs, and its
// line in the protocol's text, so that every error names them. It also detects run-time mistakes of a protocol: null
// entries, empty queues, messages of another type, machines that do not exist. The project's own protocols are trusted
// and not checked for these. Functions such as number_of_set() check one operand: they return it, or throw
// ProtocolError.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/arithmetic.hh"
#include "mem/ruby/runtime/foreign/listeners.hh"
#include "mem/ruby/runtime/protocol_support.hh"

namespace moscope::ruby {

template <class A, class B> auto divide(A a, B b) { return checked_quotient<ProtocolError>(a, b); }
template <class A, class B> auto remainder_of(A a, B b) { return checked_remainder<ProtocolError>(a, b); }
template <class A, class B> auto shift_left(A a, B bits) { return checked_left<ProtocolError>(a, bits); }
template <class A, class B> auto shift_right(A a, B bits) { return checked_right<ProtocolError>(a, bits); }
inline Addr select_bits(Addr a, int low, int high) {
    if (__builtin_expect(low < 0 || low > high || high > 63, 0))
        throw ProtocolError("bitSelect: bits " + std::to_string(low) + " to " + std::to_string(high) +
                            ": expected the first and the last bit to be from 0 to 63");
    return bitSelect(a, low, high);
}
inline Addr mask_bits(Addr a, int bits) {
    if (__builtin_expect(bits < 0 || bits > 63, 0))
        throw ProtocolError("low order bits of an address: " + std::to_string(bits) + ": expected 0 to 63");
    return maskLowOrderBits(a, bits);
}

/// Some of a line's bytes.
inline void must_be_in_line(int offset, int bytes) {
    constexpr int all = static_cast<int>(kLineBytes);
    if (__builtin_expect(offset < 0 || bytes < 0 || offset > all || bytes > all - offset, 0))
        throw ProtocolError("bytes of a line: " + std::to_string(bytes) + " from byte " + std::to_string(offset) +
                            " on: expected bytes 0 to " + std::to_string(all - 1));
}
template <class To, class From> void copy_partial(To &to, const From &from, int offset, int bytes) {
    must_be_in_line(offset, bytes);
    to.copyPartial(from, offset, bytes);
}
inline void set_mask(WriteMask &mask, int offset, int bytes, bool on = true) {
    must_be_in_line(offset, bytes);
    mask.setMask(offset, bytes, on);
}
inline bool get_mask(const WriteMask &mask, int offset, int bytes) {
    must_be_in_line(offset, bytes);
    return mask.getMask(offset, bytes);
}
inline bool test_byte(const WriteMask &mask, int byte) {
    must_be_in_line(byte, 1);
    return mask.test(byte);
}
inline int first_bit_set(const WriteMask &mask, bool value, int from = 0) {
    must_be_in_line(from, 0);
    return mask.firstBitSet(value, from);
}
inline int count_bytes(const WriteMask &mask, int from = 0) {
    must_be_in_line(from, 0);
    return mask.count(from);
}
inline void set_block_size(WriteMask &mask, int bytes) {
    if (bytes != mask.getBlockSize())
        throw ProtocolError("WriteMask.setBlockSize: " + std::to_string(bytes) + ": expected " +
                            std::to_string(mask.getBlockSize()) + ", the bytes of a line");
}

/// The number of a Set's element, below kMaxNodes.
inline NodeID number_of_set(NodeID n) {
    if (__builtin_expect(n < 0 || static_cast<unsigned>(n) >= kMaxNodes, 0))
        throw ProtocolError("Set: element " + std::to_string(n) + ": expected 0 to " + std::to_string(kMaxNodes - 1));
    return n;
}

inline Addr next_address(const TimerTable &timers) {
    if (__builtin_expect(timers.isEmpty(), 0))
        throw ProtocolError("TimerTable.nextAddress: no timer is set: expected isReady(..) to be asked first");
    return timers.nextAddress();
}

/// An address whose home is the directory's node.
inline Addr kept_by(const DirectoryMemory &directory, Addr a) {
    if (__builtin_expect(!directory.isPresent(a), 0))
        throw ProtocolError(
            "DirectoryMemory: this node is not the home of the line: expected isPresent(..) to be asked first",
            line_of(a));
    return a;
}

// The text of an error is made in functions of their own, so that those that check save no registers for it.
[[noreturn, gnu::cold, gnu::noinline]] inline void present_already(Addr a) {
    throw ProtocolError("allocate: the line is present: expected isTagPresent(..) or lookup(..) to be asked first",
                        line_of(a));
}

/// The address of a line that a cache or directory does not have yet.
template <class C> Addr not_in(const C &entries, Addr a) {
    if (__builtin_expect(entries.lookup(a) != nullptr, 0))
        present_already(a);
    return a;
}
/// The address of a line for which a directory has an entry.
inline Addr entered_in(const DirectoryMemory &directory, Addr a) {
    if (__builtin_expect(directory.lookup(a) == nullptr, 0))
        throw ProtocolError("deallocate: the directory has no entry of the line", line_of(a));
    return a;
}

/// Whether a set has a controller. False if the machine has no controller of this type and number.
inline bool is_element(const NetDest &set, MachineID m) {
    if (__builtin_expect(m.type >= MachineType_NULL, 0))
        throw ProtocolError("NetDest: the MachineID was never set: expected a machine");
    return m.num >= 0 && m.num < NodeMap::current->count[m.type] && set.isElement(m);
}
inline void remove_from(NetDest &set, MachineID m) {
    if (is_element(set, m))
        set.remove(m);
}

/// Counts nested calls of the protocol's functions; ProtocolError if they call each other without end.
class Deeper {
  public:
    explicit Deeper(const char *function) {
        if (++depth_ > kMost) {
            depth_ = 0;
            throw ProtocolError(std::string("function ") + function + ": calls itself without end");
        }
    }
    Deeper(const Deeper &) = delete;
    Deeper &operator=(const Deeper &) = delete;
    ~Deeper() { depth_ -= depth_ > 0; }

  private:
    static constexpr int kMost = 1000; // of frames of a few hundred bytes: fibers have small stacks
    static inline thread_local int depth_ = 0;
};

/// The entry of a line, which comes into being when it is first asked for, as in gem5.
template <class T> T *lookup_or_make(PerfectCacheMemory<T> &table, Addr a) {
    if (!table.isTagPresent(a))
        table.allocate(a);
    return table.lookup(a);
}

/// A name's number in a table of the generated code, found at compile time.
template <const auto &table> struct NumberIn {
    std::uint32_t number = 0;
    consteval NumberIn(const char *name) { // NOLINT(google-explicit-constructor): at("cache.sm", 12) says it
        while (std::string_view(table[number]) != name)
            ++number;
    }
};

/// Thrown by an in_port if the first message is not of its type.
struct OfAnotherType {};

class LocatedController : public AbstractController {
  public:
    using AbstractController::AbstractController;

  protected:
    // Where the protocol is at work, as numbers, because many statements set them.
    const char *const *whats_ = nullptr, *const *files_ = nullptr; ///< their names
    static constexpr std::uint32_t place_number(std::uint32_t file, std::uint32_t line) {
        return file << kBitsOfLine | line;
    }
    void set_place(std::uint32_t where) { place_ = where; }
    void set_what(std::uint32_t number) { what_ = number; }
    std::string where(bool with_machine) const {
        const std::string machine = with_machine ? "machine " + name() + ", " : "";
        if (what_ == kNothing)
            return machine + "before any action";
        const std::uint32_t line = place_ & ((1u << kBitsOfLine) - 1);
        return machine + whats_[what_] + ", " + files_[place_ >> kBitsOfLine] + ":" + std::to_string(line);
    }
    /// Runs f, which polls the in_ports.
    template <class F> [[gnu::always_inline]] void located(F &&f) {
        try {
            what_ = kNothing;
            f();
            free_also_retired();
        } catch (const ProtocolError &error) {
            const std::string what = error.what();
            throw ProtocolError(what + " (" + where(what.find("machine ") == std::string::npos) + ")", error.line);
        } catch (const SimulatorBug &bug) {
            throw ProtocolError(std::string(bug.what()) + " (" + where(true) + ")");
        } catch (const std::exception &other) { // of the protocol's own C++
            throw ProtocolError(std::string("exception in C++: ") + other.what() + " (" + where(true) + ")");
        }
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void wrong(const std::string &what,
                                                             Addr line = ProtocolError::kNoLine) {
        throw ProtocolError(what, line);
    }
    [[noreturn, gnu::cold, gnu::noinline]] void absent(const char *what, std::uint32_t where) {
        set_place(where);
        wrong(std::string(what) + " is null: expected is_valid(..) before its fields are used");
    }
    // What fails here records its own place, so that no statement has to do so because of it.
    template <class T> T *present(T *p, const char *what, std::uint32_t where) {
        if (__builtin_expect(p == nullptr, 0))
            absent(what, where);
        return p;
    }
    template <class T> T *present(T *p, const char *what) { return present(p, what, place_); }
    [[noreturn, gnu::cold, gnu::noinline]] void failed_at(std::uint32_t where, const char *what, const char *file,
                                                          int line) {
        set_place(where);
        assertion_failed(what, file, line);
    }
    [[gnu::always_inline]] void protocol_assert(bool ok, const char *what, const char *file, int line,
                                                std::uint32_t where) {
        if (__builtin_expect(!ok, 0))
            failed_at(where, what, file, line);
    }
    void must_be_ready(const MessageBuffer &b, const char *verb) const {
        if (__builtin_expect(!b.isReady(now_), 0))
            not_ready(b, verb);
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void not_ready(const MessageBuffer &b, const char *verb) {
        wrong(std::string(verb) + ": " + b.name + " has no message that is due");
    }
    using AbstractController::cause;
    /// The message at the head of a port becomes the cause of what follows; an in_port may also start a transition without one.
    void cause(MessageBuffer &b) { b.isReady(now_) ? AbstractController::cause(b) : no_cause(); }
    [[gnu::always_inline]] Tick take(MessageBuffer &b) {
        must_be_ready(b, "dequeue");
        return __builtin_expect(retired_ == nullptr || retired_ != cause_, 1) ? dequeue(b) : take_also(b);
    }
    /// Keeps the cause, whose history is inherited by what the transition sends.
    [[gnu::noinline]] Tick take_also(MessageBuffer &b) {
        also_retired_.push_back(b.pop(now_));
        return 0;
    }
    void dequeueMemRespQueue() {
        if (__builtin_expect(!memory_responses, 0))
            wrong("dequeueMemRespQueue: the machine has no queue of answers from memory");
        take(*memory_responses);
    }
    /// For the statement at `where`.
    template <class T> [[gnu::always_inline]] T &head(MessageBuffer &b, std::uint32_t where) {
        if (__builtin_expect(!b.isReady(now_), 0))
            cannot_peek(b, where);
        return ready_head<T>(b, where);
    }
    /// The same where isReady() has been true.
    template <class T> [[gnu::always_inline]] T &ready_head(MessageBuffer &b, std::uint32_t where) {
        Message *const m = b.peek();
        if (__builtin_expect(m->type != T::kType, 0))
            cannot_peek(b, where);
        return *static_cast<T *>(m);
    }
    [[noreturn, gnu::cold, gnu::noinline]] void cannot_peek(const MessageBuffer &b, std::uint32_t where) {
        set_place(where);
        must_be_ready(b, "peek");
        wrong("peek: the message in " + b.name + " is of another type");
    }
    /// The same where in_ports take different types from one buffer: another type is left to the next in_port.
    template <class T> T &head_for(MessageBuffer &b, std::uint32_t where) {
        if (__builtin_expect(!b.isReady(now_), 0))
            cannot_peek(b, where);
        if (b.peek()->type != T::kType) {
            set_place(where); // for taken_by_one()
            throw OfAnotherType{};
        }
        return *static_cast<T *>(b.peek());
    }
    /// Called after all in_ports of a buffer (`ports`) were polled; `left` of them do not take its first message's
    /// type.
    void taken_by_one(const MessageBuffer &b, int left, int ports) const {
        if (__builtin_expect(left == ports && b.isReady(now_), 0))
            wrong("in_ports: the message in " + b.name + " is of a type that none of its in_ports takes");
    }
    void stall_head(MessageBuffer &b, Addr a) {
        must_be_ready(b, "stall_and_wait");
        b.stall(a);
    }
    void recycle_head(MessageBuffer &b, Tick now, Tick later) {
        must_be_ready(b, "recycle");
        b.recycle(now, now + later);
    }
    static void must_not_be_past(std::int64_t latency) {
        if (__builtin_expect(latency < 0, 0))
            is_past(latency);
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void is_past(std::int64_t latency) {
        wrong("enqueue: latency " + std::to_string(latency) + ": expected 0 or more cycles");
    }
    /// Whether the message goes into the network, where its destinations have to have buffers.
    bool addressed(const MessageBuffer &b, Message &m) const {
        m.source = node;
        m.vnet = b.vnet;
        const bool to_network = b.ingress && b.vnet != 0xff;
        if (__builtin_expect(to_network && m.size_type == MessageSizeType_NUM, 0))
            lacks_size(b);
        return to_network && m.dest_offset;
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void lacks_size(const MessageBuffer &b) {
        wrong("enqueue: the message into " + b.name + " has no MessageSize: expected an assignment of one");
    }
    void send(MessageBuffer &b, Message *m, std::int64_t latency) {
        must_not_be_past(latency);
        if (addressed(b, *m))
            m->destination().for_each([&](NodeIndex to) { must_listen(*m, to); });
        AbstractController::send(b, m, latency);
    }
    /// Into a buffer that no network empties. The message arrives at an edge of the clock, which is computed once.
    void send_inside(MessageBuffer &b, Message *m, std::int64_t latency) {
        if (__builtin_expect(b.ingress != nullptr || b.consumer != this || trace != nullptr, 0))
            return send(b, m, latency);
        must_not_be_past(latency);
        m->note_destination();
        const ClockCursor::Edge edge = clock_.edge_after(now_, latency);
        note_sending(b, m, edge.tick);
        b.enqueue_at_edge(m, edge);
    }
    void send_only_to(MessageBuffer &b, Message *m, MachineID to, std::int64_t latency) {
        must_not_be_past(latency);
        if (addressed(b, *m))
            must_listen(*m, index_of(to));
        AbstractController::send_only_to(b, m, index_of(to), latency);
    }
    static MachineID existing(MachineID m) {
        if (__builtin_expect(m.type >= MachineType_NULL || m.num < 0 || m.num >= NodeMap::current->count[m.type], 0))
            no_machine(m);
        return m;
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void no_machine(MachineID m) {
        const bool named = m.type < MachineType_NULL;
        const int count = named ? NodeMap::current->count[m.type] : 0;
        const std::string name = named ? MachineType_to_string(m.type) + ("-" + std::to_string(m.num)) : to_text(m);
        const std::string right =
            count ? "a number from 0 to " + std::to_string(count - 1) : "a MachineType of the protocol";
        wrong("destination " + name + ": no such machine: expected " + right);
    }
    Addr victim_of(const CacheMemory &cache, Addr a) const {
        if (__builtin_expect(cache.cacheAvail(a), 0))
            wrong("cacheProbe: the set has a free way: expected cacheAvail(..) to be asked first", line_of(a));
        return cache.cacheProbe(a);
    }

    // Under the names that protocols declare whose controllers form a hierarchy by parameters, such as gem5's CHI.
    Tick curTick() const { return now_; }
    void scheduleEvent(std::int64_t cycles) { schedule_no_later_than(clock_.after(cycles)); }
    NetDest allUpstreamDest() const { return upstream; }
    template <class... A> void incomingTransactionStart(A...) {} // statistics of gem5's
    template <class... A> void incomingTransactionEnd(A...) {}
    template <class... A> void outgoingTransactionStart(A...) {}
    template <class... A> void outgoingTransactionEnd(A...) {}

    // Requests to DRAM as protocols of gem5 before 2020 make them.
    MessageBuffer memory_requests_;
    /// Forks of gem5 pass more arguments, which say what the read is for.
    template <class... More> void queueMemoryRead(MachineID id, Addr a, std::int64_t latency, More...) {
        auto &m = *new_message<MemoryMsg>();
        m.Type = MemoryRequestType_MEMORY_READ;
        m.MessageSize = MessageSizeType_Request_Control;
        ask_memory(m, id, a, latency);
    }
    template <class D> void queueMemoryWrite(MachineID id, Addr a, std::int64_t latency, const D &data) {
        queueMemoryWritePartial(id, a, latency, data, 0);
    }
    /// `bytes` of the line from the address on; 0: all.
    template <class D>
    void queueMemoryWritePartial(MachineID id, Addr a, std::int64_t latency, const D &data, int bytes) {
        auto &m = *new_message<MemoryMsg>();
        m.Type = MemoryRequestType_MEMORY_WB;
        m.MessageSize = MessageSizeType_Writeback_Data;
        m.DataBlk = data;
        m.Len = bytes;
        ask_memory(m, id, a, latency);
    }

  private:
    void ask_memory(MemoryMsg &m, MachineID id, Addr a, std::int64_t latency) {
        m.addr = a;
        m.Sender = id;
        complete_message(m);
        send(memory_requests_, &m, latency);
    }

    void free_also_retired() {
        if (__builtin_expect(!also_retired_.empty(), 0))
            free_them();
    }
    [[gnu::noinline]] void free_them() {
        for (Message *const m : also_retired_)
            message_pool().free(m);
        also_retired_.clear();
    }

    std::vector<Message *> also_retired_; ///< messages that a transition of this wake-up has taken after its cause
    static constexpr unsigned kBitsOfLine = 20;
    static constexpr std::uint32_t kNothing = ~0u;
    std::uint32_t place_ = 0;       ///< the file's number and the line
    std::uint32_t what_ = kNothing; ///< the action's or in_port's number
};

} // namespace moscope::ruby
