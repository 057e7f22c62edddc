// SPDX-License-Identifier: BSD-3-Clause
// The 64 bytes of a line inside messages and cache entries. In checking mode (MOSCOPE_CHECK_DATA) a DataBlock
// holds real bytes and what an access returns is what travelled; in timing mode bytes live only in guest
// memory and a DataBlock is empty, so that messages and entries stay small. The two live in different inline
// namespaces because libraries of both kinds can be loaded into one process. RawBlock always has storage: it
// stands in the messages that the engine itself builds (requests, memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/types.hh"

namespace moscope::ruby {

/// One bit per byte of a line.
class WriteMask {
  public:
    void clear() { m_ = 0; }
    void fillMask() { m_ = ~std::uint64_t{0}; }
    bool test(int i) const { return (m_ >> i) & 1; }
    bool isEmpty() const { return m_ == 0; }
    bool isFull() const { return m_ == ~std::uint64_t{0}; }
    bool containsMask(const WriteMask &o) const { return (o.m_ & ~m_) == 0; }
    bool isOverlap(const WriteMask &o) const { return (o.m_ & m_) != 0; }
    void andMask(const WriteMask &o) { m_ &= o.m_; }
    void orMask(const WriteMask &o) { m_ |= o.m_; }
    void setInvertedMask(const WriteMask &o) { m_ = ~o.m_; }
    void setMask(int offset, int len, bool on = true) {
        for (int i = offset; i < offset + len && i < static_cast<int>(kLineBytes); ++i)
            m_ = on ? m_ | bit(i) : m_ & ~bit(i);
    }
    bool getMask(int offset, int len) const {
        for (int i = offset; i < offset + len; ++i)
            if (!test(i))
                return false;
        return true;
    }
    int firstBitSet(bool value, int from = 0) const {
        for (int i = from; i < static_cast<int>(kLineBytes); ++i)
            if (test(i) == value)
                return i;
        return static_cast<int>(kLineBytes);
    }
    int count(int from = 0) const { return from < static_cast<int>(kLineBytes) ? __builtin_popcountll(m_ >> from) : 0; }
    int getBlockSize() const { return static_cast<int>(kLineBytes); }
    void setBlockSize(int) {} // gem5 24.1; all lines have one size here
    bool operator==(const WriteMask &) const = default;

  private:
    static std::uint64_t bit(int i) { return std::uint64_t{1} << i; }
    std::uint64_t m_ = 0;
};

#ifndef MOSCOPE_CHECK_DATA
#define MOSCOPE_CHECK_DATA 0
#endif

#if MOSCOPE_CHECK_DATA
inline namespace checking {
class DataBlock {
  public:
    static constexpr bool kReal = true;
    DataBlock() : b_{} {}
    void clear() { std::memset(b_, 0, sizeof b_); }
    void copyPartial(const DataBlock &o, int offset, int len) {
        std::memcpy(b_ + offset, o.b_ + offset, static_cast<std::size_t>(len));
    }
    void copyPartial(const DataBlock &o, const WriteMask &mask) {
        for (int i = 0; i < static_cast<int>(kLineBytes); ++i)
            if (mask.test(i))
                b_[i] = o.b_[i];
    }
    void atomicPartial(const DataBlock &o, const WriteMask &mask, bool = false) { copyPartial(o, mask); }
    int numAtomicLogEntries() const { return 0; }
    void clearAtomicLogEntries() {}
    std::byte *bytes() { return b_; }
    const std::byte *bytes() const { return b_; }
    bool operator==(const DataBlock &o) const { return std::memcmp(b_, o.b_, sizeof b_) == 0; }

  private:
    std::byte b_[kLineBytes];
};
} // namespace checking
#else
inline namespace timing {
class DataBlock {
  public:
    static constexpr bool kReal = false;
    void clear() {}
    void copyPartial(const DataBlock &, int, int) {}
    void copyPartial(const DataBlock &, const WriteMask &) {}
    void atomicPartial(const DataBlock &, const WriteMask &, bool = false) {}
    int numAtomicLogEntries() const { return 0; }
    void clearAtomicLogEntries() {}
    std::byte *bytes() { return nullptr; }
    const std::byte *bytes() const { return nullptr; }
    bool operator==(const DataBlock &) const { return true; }
};
} // namespace timing
#endif

template <class D>
concept AnyDataBlock = std::is_class_v<D> && requires {
    D::kReal;
};

class RawBlock {
  public:
    RawBlock() {}
    template <AnyDataBlock D> RawBlock(const D &d) { *this = d; }
    template <AnyDataBlock D> RawBlock &operator=(const D &d) {
        if constexpr (D::kReal)
            std::memcpy(b_, d.bytes(), sizeof b_);
        return *this;
    }
    template <AnyDataBlock D> operator D() const {
        D d;
        if constexpr (D::kReal)
            std::memcpy(d.bytes(), b_, sizeof b_);
        return d;
    }
    void clear() { std::memset(b_, 0, sizeof b_); }
    std::byte *bytes() { return b_; }
    const std::byte *bytes() const { return b_; }

  private:
    std::byte b_[kLineBytes];
};

} // namespace moscope::ruby
