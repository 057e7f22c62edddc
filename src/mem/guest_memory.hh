// SPDX-License-Identifier: BSD-3-Clause
// The guest's physical memory: one reserved range of host addresses. The host allocates a page when it is first
// touched, so 64 GB can be configured on a smaller host. Huge pages, the default of many hosts, are turned off: one
// byte would take 2 MiB, and the pages that the guest has touched could not be distinguished from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/mman.h>

#include "base/error.hh"

namespace moscope {

class GuestMemory {
  public:
    explicit GuestMemory(std::uint64_t bytes) : bytes_(bytes) {
        void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            throw UserError("memory: the host cannot reserve " + std::to_string(bytes >> 20) +
                            " MiB of addresses: expected less memory per node");
        base_ = static_cast<std::byte *>(p);
        madvise(base_, bytes, MADV_NOHUGEPAGE); // fails where the host has none
    }
    ~GuestMemory() { munmap(base_, bytes_); }
    GuestMemory(const GuestMemory &) = delete;
    GuestMemory &operator=(const GuestMemory &) = delete;

    /// All zero again; the host gets its pages back.
    void clear() { madvise(base_, bytes_, MADV_DONTNEED); }

    std::byte *base() const { return base_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    std::byte *base_ = nullptr;
    std::uint64_t bytes_;
};

} // namespace moscope
