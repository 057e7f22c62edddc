// SPDX-License-Identifier: BSD-3-Clause
// Attribution of all lines as packed rows, for the front end to name and to write as columns (docs/run-directory.md).
// src/schema/records.py describes LineRow, PairRow and TransferRow. Little-endian; times in femtoseconds.
#pragma once

#include <string>

#include "schema/records.hh"

namespace moscope {

/// Rows one after the other: lines by address and use; pairs and transfers in the order of their lines.
struct AttributionRows {
    std::string lines, pairs, transfers;
};

} // namespace moscope
