// SPDX-License-Identifier: BSD-3-Clause
// Read-modify-writes of a core in detailed mode, including locked ones on one line or two, and CLFLUSH.
#include <cstring>

#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

void TimedCore::modify(PhysAddr a, unsigned size, void (*f)(void *, void *), void *context, bool locked) {
    ++disturbances_;
    std::uint8_t bytes[kLineBytes];
    if (!locked) {
        load(a, bytes, size);
        f(context, bytes);
        store(a, bytes, size);
        return;
    }
    fence();
    const Addr d = dram(a);
    looks_at(d);
    if (line_offset(d) + size <= kLineBytes) {
        if (ahead())
            catch_up();
        if (std::byte *b = writable(d))
            f(context, b + line_offset(d));
        else {
            charge(Charge::busy);
            Access x;
            x.addr = PhysAddr(d);
            x.size = static_cast<std::uint16_t>(size);
            x.kind = AccessKind::rmw;
            x.rmw = f;
            x.rmw_context = context;
            x.pc = pc();
            x.va = walking_ ? 0 : va_;
            wait_memory(x);
            report(x);
        }
        report_stored(d, size, pc());
    } else {
        const unsigned first = kLineBytes - line_offset(d);
        modify_split({d, d + first}, {first, size - first}, f, context);
    }
    stand_still(params_.locked_cycles);
}

void TimedCore::flush(PhysAddr a) {
    const Addr d = dram(a);
    if (!port_.flushes_ || d == PhysMap::kNone)
        return;
    fence();
    if (ahead())
        catch_up();
    transact(AccessKind::flush, PhysAddr(d), nullptr, 1);
}

void TimedCore::take_split_lock() {
    constexpr std::int64_t kRetry = 50; // cycles between two attempts
    while (true) {
        charge(Charge::busy);
        bool free = false;
        serially([&] {
            free = !split_lock->holder;
            if (free)
                split_lock->holder = this;
        });
        if (free)
            return;
        advance_cycles(kRetry);
        begin_group();
        charge(Charge::core);
    }
}

void TimedCore::modify_across(const PhysAddr (&at)[2], const unsigned (&size)[2], void (*f)(void *, void *),
                              void *context) {
    ++disturbances_;
    fence();
    modify_split({dram(at[0]), dram(at[1])}, size, f, context);
    stand_still(params_.locked_cycles);
}

void TimedCore::modify_split(const Addr (&d)[2], const unsigned (&size)[2], void (*f)(void *, void *), void *context) {
    take_split_lock();
    while (true) {
        if (ahead())
            catch_up();
        std::byte *b[2];
        for (unsigned i = 0; i < 2; ++i)
            b[i] = writable(d[i]);
        if (b[0] && b[1]) {
            b[0] += line_offset(d[0]);
            std::uint8_t bytes[kLineBytes];
            std::memcpy(bytes, b[0], size[0]);
            std::memcpy(bytes + size[0], b[1], size[1]);
            f(context, bytes);
            std::memcpy(b[0], bytes, size[0]);
            std::memcpy(b[1], bytes + size[0], size[1]);
            for (unsigned i = 0; i < 2; ++i)
                report_stored(d[i], size[i], pc());
            charge(Charge::busy);
            serially([this] { split_lock->holder = nullptr; });
            return;
        }
        // Request write permission for the missing line. If the other line is lost meanwhile, there is another round.
        const unsigned i = b[0] ? 1 : 0;
        charge(Charge::busy);
        Access x;
        x.addr = PhysAddr(d[i]);
        x.size = 1;
        x.kind = AccessKind::rmw;
        x.rmw = [](void *, void *) {};
        x.pc = pc();
        x.va = va_ + (i ? size[0] : 0);
        wait_memory(x);
        report(x);
    }
}

} // namespace moscope::x86
