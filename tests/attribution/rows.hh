// SPDX-License-Identifier: BSD-3-Clause
// Attribution's packed rows as structures.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "attribution/attribution.hh"

namespace moscope {

template <class Row> std::vector<Row> unpacked(const std::string &bytes) {
    std::vector<Row> rows(bytes.size() / sizeof(Row));
    if (!rows.empty())
        std::memcpy(rows.data(), bytes.data(), bytes.size());
    return rows;
}
inline std::vector<LineRow> lines_of(const Attribution &a) { return unpacked<LineRow>(a.rows().lines); }
inline std::vector<PairRow> pairs_of(const Attribution &a) { return unpacked<PairRow>(a.rows().pairs); }
inline std::vector<TransferRow> transfers_of(const Attribution &a) { return unpacked<TransferRow>(a.rows().transfers); }

} // namespace moscope
