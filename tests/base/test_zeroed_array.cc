// SPDX-License-Identifier: BSD-3-Clause
// An array of zeros takes host memory only for the pages that are written.
#include "base/zeroed_array.hh"

#include <cstdint>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

namespace moscope {
namespace {

std::size_t resident_bytes() {
    std::size_t whole = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> whole >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(ZeroedArray, TakesHostMemoryOnlyForWhatIsWritten) {
    constexpr std::size_t kElements = std::size_t{1} << 25, kBytes = kElements * sizeof(std::uint64_t);
    const std::size_t before = resident_bytes();
    const ZeroedArray<std::uint64_t> array(kElements);
    EXPECT_EQ(array[0] + array[kElements / 2] + array[kElements - 1], 0u);
    array[kElements / 2] = 7;
    EXPECT_LT(resident_bytes() - before, kBytes / 8);
    EXPECT_EQ(array[kElements / 2], 7u);
    EXPECT_EQ(array[kElements / 2 + 1], 0u);
}

TEST(ZeroedArray, IsEmptyUntilItIsMade) {
    ZeroedArray<int> array;
    EXPECT_TRUE(array.empty());
    array = ZeroedArray<int>(1);
    EXPECT_FALSE(array.empty());
    EXPECT_EQ(array.data(), &array[0]);
}

} // namespace
} // namespace moscope
