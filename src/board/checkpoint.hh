// SPDX-License-Identifier: BSD-3-Clause
// Checkpoint files: the state of all components (sim/archive.hh) and the guest pages that were touched, equal ones
// stored once, compressed with zstd, each part with a checksum. Layout, little-endian:
//   magic "moscope checkpoint\n" (19 bytes), version (u32), then parts: length of the compressed bytes (u64), a zstd frame
//   with its content checksum. Parts: the description (text, has to fit the machine that loads it), the state,
//   the page directory (pairs of page number and index among the different pages), the pages in frames of up to 1024,
//   and last the word "complete".
// A file is written under another name and then renamed, so a file that exists is whole unless it was damaged later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mem/guest_memory.hh"
#include "sim/archive.hh"

namespace moscope {

inline constexpr std::uint32_t kCheckpointVersion = 8;

/// UserError if the file cannot be written; nothing is left behind then.
void write_checkpoint(const std::string &path, const std::string &description, const Archive &state,
                      const GuestMemory &memory);

/// Fills `memory` (all zero before) and returns the state. UserError that says whether the file is truncated,
/// altered, of a newer version, or of another machine: one whose description does not fit.
Archive read_checkpoint(const std::string &path, const std::function<bool(const std::string &)> &fits,
                        GuestMemory &memory);

/// The description that the file was written with. UserError as for read_checkpoint.
std::string read_checkpoint_description(const std::string &path);

/// Numbers of the guest's pages that the host has given memory to, in order.
std::vector<std::uint64_t> touched_pages(const GuestMemory &memory);

} // namespace moscope
