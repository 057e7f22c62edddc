// SPDX-License-Identifier: BSD-3-Clause
// An array of zeros. The host gives memory only to those of its pages that are written. The pages come from the host
// itself: calloc() also takes memory that was in use before, and clears it.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include <sys/mman.h>

namespace moscope {

template <class T> class ZeroedArray {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    ZeroedArray() = default;
    /// n > 0
    explicit ZeroedArray(std::size_t n) {
        const std::size_t bytes = n * sizeof(T); // NOLINT(bugprone-sizeof-expression): T may be a pointer
        void *const p =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            throw std::bad_alloc();
        first_ = {static_cast<T *>(p), Unmap{bytes}};
    }
    bool empty() const { return !first_; }
    T *data() const { return first_.get(); }
    T &operator[](std::size_t i) const { return first_.get()[i]; }

  private:
    struct Unmap {
        std::size_t bytes = 0;
        void operator()(T *p) const { munmap(p, bytes); }
    };
    std::unique_ptr<T, Unmap> first_;
};

} // namespace moscope
