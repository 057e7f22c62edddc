// SPDX-License-Identifier: BSD-3-Clause
// Stores of a core in detailed mode: through the store buffer, or past the caches through the write combiner; and waits
// for these buffers (for room, or until they are empty). Each entry that leaves the buffer during a wait ends one piece
// of it. The piece is charged to the access that this entry has waited for.
#include <algorithm>

#include "base/copy.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

void TimedCore::report_store(const Access &x, Tick exposed, bool wait) {
    if (observer)
        observer->transaction(
            {&x, c_.number, x.pc, x.va, exposed, false, static_cast<std::int64_t>(x.pc) >= 0, c_.cr3, wait});
}

void TimedCore::note_departed(const Access &x) {
    if (has_departed_)
        return; // of several accesses at one tick, the core has waited only for the first
    departed_ = x;
    has_departed_ = true;
}

void TimedCore::wait_for_departure(bool &waiting) {
    has_departed_ = false;
    waiting = waiting_memory_ = true;
    suspend();
    waiting = waiting_memory_ = false;
    if (!has_departed_)
        return;                         // the time so far is charged at the next departure
    if (const Tick exposed = stalled()) // else the entry had left already, and there was no wait
        report_store(departed_, exposed, true);
    charge(Charge::memory);
}

void TimedCore::drain_combiner(bool arrived) {
    while (combiner_.pending()) {
        if (ahead())
            catch_up();
        if (!combiner_.send(now()))
            wait_for_combiner([this, n = combiner_.under_way()] { return combiner_.under_way() < n; });
        lookahead_changed();
    }
    if (arrived)
        wait_for_combiner([this] { return combiner_.idle(); });
}

void TimedCore::store_around(Addr d, const void *from, unsigned size) {
    ++disturbances_;
    if (accesses_++)
        next_access();
    if (combiner_.must_send_before(line_of(d)))
        drain_combiner(false);
    // An older ordinary store to the line has to be performed before this one can pass the caches.
    fence_stores();
    combiner_.add(d, from, size, pc(), va_);
    buffers_filled();
    if (combiner_.full())
        drain_combiner(false);
}

void TimedCore::fence() {
    ++disturbances_;
    if (overlap_)
        overlap_->drain();
    drain_combiner(true);
    fence_stores();
}

void TimedCore::fence_stores() {
    wait_for_stores([this] { return stores_.empty(); });
}

void TimedCore::store_line(Addr d, const void *from, unsigned size) {
    ++disturbances_;
    if (op_->non_temporal) {
        store_around(d, from, size);
        return;
    }
    if (combiner_.holds(line_of(d)))
        drain_combiner(true);
    const auto *bytes = static_cast<const std::uint8_t *>(from);
    while (size) {
        const unsigned n = std::min(size, StoreBuffer::kBytes);
        if (accesses_++)
            next_access();
        store_issued(d, bytes, n);
        d += n, bytes += n, size -= n;
    }
}

bool TimedCore::store_later(Addr d, const void *from, unsigned size) {
    store_issued(d, from, size);
    if (__builtin_expect(c_.blocks->guarded_dram(c_, d, size), 0))
        wrote_code(c_.phys.phys_address(d), size);
    return true;
}

void TimedCore::wrote_code(PhysAddr a, unsigned size) {
    fence();
    charge(Charge::busy);
    serially([&] {
        c_.blocks->settle();
        c_.blocks->written(a, size);
        lookahead_changed();
        begin_group();
    });
}

void TimedCore::store_issued(Addr d, const void *from, unsigned size) {
    if (stores_.empty()) {
        look_at_buffers();
        if (ahead())
            catch_up();
        if (std::byte *b = writable(d)) {
            copy_few(b + line_offset(d), from, size);
            report_stored(d, size, pc());
            return;
        }
    }
    if (__builtin_expect(stores_.full(), 0))
        wait_for_stores([this] { return !stores_.full(); });
    stores_.push(d, from, size, now(), pc(), va_);
    buffers_filled();
    companion_changed();
}

} // namespace moscope::x86
