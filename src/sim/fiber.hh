// SPDX-License-Identifier: BSD-3-Clause
// A stackful coroutine (Boost.Context) for one simulated core: straight code that can stop in the middle of a
// memory access and go on when the access is done. Stacks are mapped lazily with a guard page. An exception
// that leaves the fiber's function is rethrown to the resumer. The asan variant tells the sanitizer about
// every switch.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>

#include <boost/context/fiber.hpp>

namespace moscope {

class Fiber {
  public:
    static constexpr std::size_t kStackBytes = 256 * 1024;

    /// `body` runs at the first resume.
    explicit Fiber(std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    /// Runs the fiber until it yields or ends.
    void resume();
    /// From inside: back to the resumer.
    void yield();
    bool finished() const { return finished_; }

  private:
    void enter_fiber();
    void left_fiber();

    std::function<void()> body_;
    boost::context::fiber inside_;  ///< the fiber while it is suspended
    boost::context::fiber outside_; ///< the resumer while the fiber runs
    std::exception_ptr error_;
    bool finished_ = false;
    bool abandoned_ = false;
    // Sanitizer bookkeeping; unused in other variants.
    void *fake_outside_ = nullptr;
    void *fake_inside_ = nullptr;
    const void *stack_bottom_ = nullptr;
    std::size_t stack_size_ = 0;
    const void *outside_bottom_ = nullptr;
    std::size_t outside_size_ = 0;
};

} // namespace moscope
