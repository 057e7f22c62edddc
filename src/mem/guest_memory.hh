// SPDX-License-Identifier: BSD-3-Clause
// The guest's physical memory: one reserved range of host addresses. The host allocates a page when it is first
// touched, so 64 GB can be configured on a smaller host. Huge pages, the default of many hosts, are turned off: one
// byte would take 2 MiB, and the pages that the guest has touched could not be distinguished from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include <sys/mman.h>

#include "base/error.hh"
#include "base/zeroed_array.hh"

namespace moscope {

class GuestMemory {
  public:
    explicit GuestMemory(std::uint64_t bytes) : memory_(reserved(bytes)), bytes_(bytes) {
        madvise(base(), bytes, MADV_NOHUGEPAGE); // fails where the host has none
    }

    /// All zero again; the host gets its pages back.
    void clear() { madvise(base(), bytes_, MADV_DONTNEED); }

    std::byte *base() const { return memory_.data(); }
    std::uint64_t bytes() const { return bytes_; }

  private:
    static ZeroedArray<std::byte> reserved(std::uint64_t bytes) {
        try {
            return ZeroedArray<std::byte>(bytes);
        } catch (const std::bad_alloc &) {
            throw UserError("memory: the host cannot reserve " + std::to_string(bytes >> 20) +
                            " MiB of addresses: expected less memory per node");
        }
    }

    ZeroedArray<std::byte> memory_;
    std::uint64_t bytes_;
};

} // namespace moscope
