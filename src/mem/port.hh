// SPDX-License-Identifier: BSD-3-Clause
// The only interface between the issuers of memory accesses (CPU models, traffic generators) and the memory system.
//
// Rules that both sides keep (design, decision 5):
// - An access lies within one 64-byte line. A load or store that spans two lines is two accesses, the lower
//   address first, each atomic by itself. A locked read-modify-write that spans two lines takes write
//   permission for both and runs its closure at a moment when it holds both; losing one means starting again.
// - Bytes live in guest memory; a load copies them out, a store copies them in and a locked read-modify-write
//   runs its closure on them at the simulated moment at which the protocol grants the permission. (In checking
//   mode the bytes are those that travelled in the protocol's messages; the caller sees no difference.)
// - The port does not order accesses of a core: in-order binding of loads, the store buffer and fences belong
//   to the core. Accesses to one line complete in the order of their issue.
// - The page walker's updates of accessed and dirty bits are locked read-modify-writes of the table entry.
// - A non-temporal store bypasses the caches: `nt_store` of a full line (write-combined by the core) needs no
//   fetch of the old bytes; the core keeps partial ones in its write-combining buffer and issues what it has.
// - `uncached_load` reads past the caches: no cache holds the line when it is done. It binds at the grant, like a load.
// - `flush` (CLFLUSH) returns when no cache in the system holds the line.
//
// Fast path: the slots below remember lines on which an access is a pure hit: it changes no state, and does nothing
// but call back and update the replacement order. The memory system empties a slot at any other event of its line.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hh"
#include "mem/path.hh"
#include "sim/clock.hh"
#include "sim/event_queue.hh"

namespace moscope {

/// An access in flight. The issuer owns it and keeps it alive until it is done.
struct Access {
    PhysAddr addr;
    std::uint16_t size = 0; ///< bytes; addr and addr + size - 1 lie in one line
    AccessKind kind = AccessKind::load;
    void *data = nullptr; ///< loads, fetch: receives the bytes (may be null); store, nt_store: the bytes

    /// Locked read-modify-write: called once, on the bytes at addr, under write permission.
    void (*rmw)(void *context, void *bytes) = nullptr;
    void *rmw_context = nullptr;

    /// Called at completion, at simulated time `done`; may issue further accesses.
    void (*on_done)(Access &) = nullptr;
    void *owner = nullptr;
    Addr pc = 0; ///< instruction address, for attribution
    Addr va = 0; ///< linear address, for attribution; 0 of a fetch or a page walk

    // Filled in by the memory system.
    Tick issued = 0;
    Tick done = kNever;
    TxnId txn = 0;
    PathTimes path;            ///< adds up to done - issued
    std::uint16_t hops = 0;    ///< links crossed on the path
    std::uint8_t supplier = 0; ///< protocol's machine type that supplied the data
    std::uint8_t supplier_state =
        kUnknown; ///< number of its state of the line when it sent the line; for a home, when it asked DRAM
    std::uint16_t supplier_number = kUnknown16; ///< its core; its version if it belongs to no core
    std::uint16_t supplier_chip = kUnknown16;
    std::uint16_t probes = 0; ///< controllers to which a probe or an invalidation was sent for it
    bool held = false;        ///< for a store or rmw: its core had the line, in a state that the write changed
    bool secondary = false;   ///< an older access or a prefetch of its core served it: no request left its core
    static constexpr std::uint8_t kUnknown =
        0xff; ///< no controller sent data: the core's own caches had it, or only write permission was missing
    static constexpr std::uint16_t kUnknown16 = 0xffff;
    Access *next = nullptr; ///< memory system's list
};

class Port {
  public:
    struct Slot {
        Addr tag = ~Addr{0};   ///< line address, with rights in the low bits
        Tick *touch = nullptr; ///< replacement time stamp of the cache entry
    };
    enum Right : unsigned { right_load = 1, right_store = 2 };
    static constexpr unsigned kSlots = 1024; ///< as many as a 64 KiB first-level cache has lines

    /// The line's bytes if the access may proceed inline; `when` is the tick at which it completes.
    std::byte *hit(Addr line, Right right, Tick when) {
        const Slot *const s = look(data_slots_, line, right, when);
        return __builtin_expect(s == nullptr, 0) ? nullptr : bytes_of(line, s - data_slots_.data(), data_bytes_);
    }
    /// The same for an instruction fetch, without the bytes.
    bool fetch_hit(Addr line, Tick when) { return look(fetch_slots_, line, right_load, when) != nullptr; }
    /// The bytes of a line that fetch_hit() has found.
    std::byte *fetched(Addr line) { return bytes_of(line, index(line), fetch_bytes_); }

    /// Slower inline path: asks the memory system whether the access at this address is a pure hit (and fills the slot).
    /// Returns the bytes of its line; null: it is not.
    std::byte *probe(AccessKind kind, Addr at, Tick when) { return probe_(memory_, *this, kind, at, when); }
    /// The line that the memory system uses for this address; in a what-if run it may be another one (mem/what_if.hh).
    Addr line(Addr at) const { return __builtin_expect(line_ != nullptr, 0) ? line_(memory_, at) : line_of(at); }
    /// Whether a slot holds the line, so that its loss is reported.
    bool remembers(Addr line) const {
        const unsigned i = index(line);
        return line_of(data_slots_[i].tag) == line || line_of(fetch_slots_[i].tag) == line;
    }

    /// All lines lie side by side from this host address on, so slots need not record where each one is.
    void lines_lie_at(std::byte *of_line_zero) {
        bytes_ = of_line_zero;
        data_bytes_ = fetch_bytes_ = {};
    }

    /// Whether prefetches are under way. A prefetched line may replace any other line when it arrives, so a core that
    /// wants to sleep until one of its lines changes must first wait for the prefetches.
    bool prefetching() const { return prefetches_ && *prefetches_; }
    /// A prefetched line has arrived: called by the memory system before it completes the accesses that wait for the line.
    void prefetched(Addr line) {
        if (prefetched_)
            prefetched_(prefetched_owner_, line);
    }

    /// Starts an access at tick `now`; completion is reported through on_done.
    void issue(Access &a, Tick now) {
        a.issued = now;
        a.done = kNever;
        issue_(memory_, a);
    }

    /// The tick at which an access that is issued at `now` completes if it hits in the first-level cache.
    Tick hit_done(Tick now) const { return hit_done_(memory_, now); }

    /// Makes a slot remember a line, with its rights (Right, by bit) and the stamp that a hit writes.
    void fill(bool fetch, Addr line, unsigned rights, Tick *touch, std::byte *bytes) {
        const unsigned i = index(line);
        forgotten_ = kEmpty;
        filled_[i / 64] |= std::uint64_t{1} << (i & 63);
        (fetch ? fetch_slots_ : data_slots_)[i] = {line | rights, touch};
        if (!bytes_)
            (fetch ? fetch_bytes_ : data_bytes_)[i] = bytes;
    }
    /// Called before anything about a line changes. If the core sleeps and a slot has the line, the core first does
    /// what it would have done by now.
    void before_change(Addr line) {
        if (__builtin_expect(sleeping_ == nullptr, 1))
            return;
        if (remembers(line))
            wake_(sleeping_);
    }
    /// Forgets a line: called by the memory system, at the current tick of the event queue.
    void forget(Addr line) {
        if (line == forgotten_) // a line is often forgotten by one array, and again by the transition
            return;
        forgotten_ = line;
        if (const unsigned i = index(line); __builtin_expect(filled_[i / 64] >> (i & 63) & 1, 0))
            forget_filled(line, i);
    }
    [[gnu::noinline]] void forget_filled(Addr line, unsigned i) {
        for (Slot *s : {&data_slots_[i], &fetch_slots_[i]})
            if (line_of(s->tag) == line) {
                MOSCOPE_CHECK(!sleeping_);                                          // it would miss the change
                MOSCOPE_CHECK(!used_before_ || *s->touch <= used_before_(memory_)); // no core acts beyond its lookahead
                s->tag = kEmpty, ++lost;
            }
    }
    /// The same for an access of the core's own, which may be ahead of the queue.
    void forget_own(Addr line) {
        const unsigned i = index(line);
        for (Slot *s : {&data_slots_[i], &fetch_slots_[i]})
            if (line_of(s->tag) == line)
                s->tag = kEmpty, ++lost;
    }
    void forget_all() {
        for (unsigned i = 0; i < kSlots; ++i)
            data_slots_[i].tag = fetch_slots_[i].tag = kEmpty;
    }

    /// Earliest tick at which something may change what this port's hits depend on: the controller's own next
    /// wake-up, or the next event anywhere plus the shortest path from there to here. Hits before it are final.
    /// While this port has no request under way, only unsolicited messages can arrive: through the relay, whose next
    /// wake-up is known, or over long paths.
    Tick lookahead_end(const EventQueue &queue) const {
        // Unsigned, so that a sum beyond kNever counts as later than all ticks.
        using Unsigned = std::uint64_t;
        auto t = static_cast<Unsigned>(controller_ ? controller_->next_wake() : kNever);
        const auto after = [&t](Tick from, Tick delay) {
            t = std::min(t, static_cast<Unsigned>(from) + static_cast<Unsigned>(delay));
        };
        const Tick own = queue.next(), outside = queue.outside();
        if (unsolicited_ > lookahead_ && !(*routed_ & unsolicited_vnets_) && !lines_in_flight_ && quiet_(memory_)) {
            after(own, unsolicited_);
            after(outside, from_outside_);
            if (relay_)
                after(relay_->next_wake(), relay_latency_);
        } else {
            after(std::min(own, outside), lookahead_);
        }
        return std::min(static_cast<Tick>(t), queue.limit());
    }

    /// The end of the core's lookahead; null: there is no core. A prefetch, which the memory system issues by itself,
    /// may shorten it.
    Tick *core_lookahead_ = nullptr;

    // Set once by the memory system that stands behind the port.
    const Component *controller_ = nullptr;
    Tick lookahead_ = 0;   ///< shortest path from any other component to here
    Tick unsolicited_ = 0; ///< the same for unsolicited messages, except those of the relay's pending wake-up
    /// The same from the end of an epoch in which another logical process has sent the first unsolicited message.
    Tick from_outside_ = 0;
    std::uint32_t unsolicited_vnets_ = 0; ///< virtual networks that carry unsolicited messages, by bit
    /// Virtual networks, by bit, whose messages have passed a router: for these, only the bound lookahead_ holds.
    const std::uint32_t *routed_ = nullptr;
    const Component *relay_ = nullptr;      ///< forwards unsolicited messages (the chip's shared cache)
    Tick relay_latency_ = 0;                ///< from the relay's wake-up to here
    unsigned lines_in_flight_ = 0;          ///< to which accesses of this port are under way
    bool (*quiet_)(void *memory) = nullptr; ///< whether a port without lines in flight has nothing else under way
    bool flushes_ = false;                  ///< the protocol has a flush
    unsigned hit_cycles_ = 0;               ///< first-level hit, in cycles of core_clock_
    Clock core_clock_;
    void *memory_ = nullptr;
    void (*issue_)(void *memory, Access &) = nullptr;
    std::byte *(*probe_)(void *memory, Port &, AccessKind, Addr at, Tick when) = nullptr;
    Tick (*hit_done_)(void *memory, Tick now) = nullptr;
    Addr (*line_)(void *memory, Addr at) = nullptr; ///< null: the address's own
    const unsigned *prefetches_ = nullptr;          ///< lines that a prefetcher has under way; null: there is none
    void (*prefetched_)(void *owner, Addr line) = nullptr; ///< notifies the core; null: it needs no notice
    void *prefetched_owner_ = nullptr;
    Tick (*used_before_)(void *memory) = nullptr; ///< no past hit completes later than this

    std::uint64_t inline_hits = 0;
    std::uint64_t lost = 0; ///< slots emptied

    /// The core, while it sleeps because it only hits lines that it has; wake_ is called before one of them changes.
    void *sleeping_ = nullptr;
    void (*wake_)(void *sleeping) = nullptr;

  private:
    static constexpr Addr kEmpty = ~Addr{0} << kLineBits;
    /// Line number n has slot n + n / kSlots (modulo kSlots), computed by one multiplication. Neighbouring lines have
    /// different slots, and so have lines at the same offset in neighbouring blocks of kSlots lines. A kernel's task
    /// structures lie like that. A core that spins while the owner of a lock runs reads two of them; if they shared a
    /// slot, no iteration could be skipped.
    static unsigned index(Addr line) {
        constexpr unsigned kBits = std::countr_zero(kSlots);
        return static_cast<unsigned>(line * ((Addr{1} << 28) + (Addr{1} << (28 - kBits))) >> (28 + kLineBits)) &
               (kSlots - 1);
    }

    const Slot *look(const std::array<Slot, kSlots> &slots, Addr line, unsigned right, Tick when) {
        const Slot &s = slots[index(line)];
        // One comparison: the same line, and the right among its rights.
        if (__builtin_expect(((s.tag ^ (line | right)) & (~Addr{kLineBytes - 1} | right)) != 0, 0))
            return nullptr;
        *s.touch = when;
        ++inline_hits;
        return &s;
    }

    std::byte *bytes_of(Addr line, std::size_t slot, const std::vector<std::byte *> &bytes) const {
        return __builtin_expect(bytes_ != nullptr, 1) ? bytes_ + line : bytes[slot];
    }

    std::byte *bytes_ = nullptr;                      ///< of line 0; null: the vectors below say where lines are
    Addr forgotten_ = kEmpty;                         ///< the line forgotten last, unless a slot has been filled since
    std::array<std::uint64_t, kSlots / 64> filled_{}; ///< indices at which a slot has been filled
    alignas(kLineBytes) std::array<Slot, kSlots> data_slots_;
    std::array<Slot, kSlots> fetch_slots_;
    /// By slot; empty if lines lie side by side.
    std::vector<std::byte *> data_bytes_ = std::vector<std::byte *>(kSlots), fetch_bytes_ = data_bytes_;
};

} // namespace moscope
