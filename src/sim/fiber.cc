// SPDX-License-Identifier: BSD-3-Clause
// Switching of fibers, with the annotations of AddressSanitizer where it is on.
#include "sim/fiber.hh"

#include <utility>

#include <boost/context/protected_fixedsize_stack.hpp>

#ifdef MOSCOPE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace moscope {

namespace {
// Thrown through a suspended fiber so that its objects are destroyed when the fiber is dropped.
struct Unwind {};

// Remembers the bounds of the stack that it hands out: the sanitizer wants them at each switch.
struct NotingStack {
    boost::context::protected_fixedsize_stack inner;
    const void **bottom;
    std::size_t *size;
    boost::context::stack_context allocate() {
        auto s = inner.allocate();
        *size = s.size;
        *bottom = static_cast<char *>(s.sp) - s.size;
        return s;
    }
    void deallocate(boost::context::stack_context &s) {
#ifdef MOSCOPE_ASAN
        // The fiber's first frames never return, so their marks would stay with the addresses, which are handed out again.
        __asan_unpoison_memory_region(static_cast<char *>(s.sp) - s.size, s.size);
#endif
        inner.deallocate(s);
    }
};
} // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
    NotingStack stack{boost::context::protected_fixedsize_stack(kStackBytes), &stack_bottom_, &stack_size_};
    inside_ = boost::context::fiber(std::allocator_arg, stack, [this](boost::context::fiber &&outside) {
        outside_ = std::move(outside);
        enter_fiber();
        try {
            if (!abandoned_)
                body_();
        } catch (const Unwind &) {
        } catch (...) {
            error_ = std::current_exception();
        }
        finished_ = true;
#ifdef MOSCOPE_ASAN
        __sanitizer_start_switch_fiber(nullptr, outside_bottom_, outside_size_);
#endif
        return std::move(outside_);
    });
}

Fiber::~Fiber() {
    if (!finished_ && inside_) {
        abandoned_ = true;
        try {
            resume();
        } catch (...) {}
    }
}

void Fiber::enter_fiber() {
#ifdef MOSCOPE_ASAN
    __sanitizer_finish_switch_fiber(fake_inside_, &outside_bottom_, &outside_size_);
#endif
}

void Fiber::left_fiber() {
#ifdef MOSCOPE_ASAN
    __sanitizer_finish_switch_fiber(fake_outside_, nullptr, nullptr);
#endif
}

void Fiber::resume() {
#ifdef MOSCOPE_ASAN
    __sanitizer_start_switch_fiber(&fake_outside_, stack_bottom_, stack_size_);
#endif
    inside_ = std::move(inside_).resume();
    left_fiber();
    if (error_)
        std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::yield() {
#ifdef MOSCOPE_ASAN
    __sanitizer_start_switch_fiber(&fake_inside_, outside_bottom_, outside_size_);
#endif
    outside_ = std::move(outside_).resume();
    enter_fiber();
    if (abandoned_)
        throw Unwind{};
}

} // namespace moscope
