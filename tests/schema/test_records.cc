// SPDX-License-Identifier: BSD-3-Clause
// Records and enumerations as the build made them from src/schema: bytes as the description says, for the Python side of the
// comparison (test_both_sides.py), which reads what these tests write.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "schema/records.hh"

namespace moscope {
namespace {

TEST(Records, EnumerationsHaveTheirNames) {
    EXPECT_STREQ(name_of(Segment::home_queue), "home_queue");
    EXPECT_STREQ(name_of(MissClass::false_sharing), "false_sharing");
    EXPECT_EQ(static_cast<unsigned>(TimeKind::count), kTimeKinds);
    EXPECT_EQ(kAccessKindNames.size(), kAccessKinds);
}

TEST(Records, ARecordStartsWithTheDefaultsOfItsDescription) {
    const TransactionRecord r;
    EXPECT_EQ(r.writer, TransactionRecord::kNoWriter);
    EXPECT_EQ(r.supplier_chip, TransactionRecord::kNoSupplierChip);
    EXPECT_EQ(r.segments, (std::array<std::int64_t, kSegments>{}));
}

TEST(Records, WritesRowsForPython) {
    const char *path = std::getenv("MOSCOPE_TEST_ROWS");
    if (!path)
        GTEST_SKIP() << "test_both_sides.py runs this with MOSCOPE_TEST_ROWS";
    TransactionRecord r;
    r.issued = 1;
    r.done = 1000;
    r.segments = {1, 2, 3, 4, 5, 6, 7, 971};
    r.kind = static_cast<std::uint8_t>(AccessKind::rmw);
    r.miss = static_cast<std::uint8_t>(MissClass::true_sharing);
    r.flags = TransactionRecord::kUser | TransactionRecord::kBufferWait;
    r.probes = 3;
    r.use = 0xdeadbeef;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char *>(&r), sizeof r);
    const TransactionRecord blank;
    out.write(reinterpret_cast<const char *>(&blank), sizeof blank);
    const std::uint64_t layouts[] = {TransactionRecord::kLayout, LineRow::kLayout, PairRow::kLayout,
                                     TransferRow::kLayout, LoadRow::kLayout};
    out.write(reinterpret_cast<const char *>(layouts), sizeof layouts);
}

} // namespace
} // namespace moscope
