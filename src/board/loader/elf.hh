// SPDX-License-Identifier: BSD-3-Clause
// The parts of an executable ELF file (System V gABI, chapters 4 and 5) that a boot loader needs, for both word
// sizes: load segments by physical address, and notes. Every offset in the file is checked before it is used.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "board/loader/boot_memory.hh"

namespace moscope::loader {

struct ElfSegment {
    std::uint32_t type = 0;
    std::uint64_t offset = 0, virtual_address = 0, address = 0, file_size = 0, memory_size = 0, align = 0;
};

class ElfFile {
  public:
    static constexpr std::uint32_t kLoad = 1, kNote = 4;

    /// UserError if the file is cut short or for another processor.
    ElfFile(std::string name, Bytes file);

    std::uint64_t entry() const { return entry_; }
    bool is_64bit() const { return wide_; }
    const std::vector<ElfSegment> &segments() const { return segments_; }
    /// The file's bytes of a segment.
    Bytes content(const ElfSegment &s) const { return file_.subspan(s.offset, s.file_size); }
    /// The content of the first note of this owner and type; empty if there is none.
    Bytes note(const std::string &owner, std::uint32_t type) const;
    /// Writes the load segments to their physical addresses; returns the first and one past the last address.
    std::pair<Addr, Addr> load(BootMemory &memory) const;
    /// A virtual address as the physical one at which its segment is loaded; itself if no segment holds it.
    Addr physical(Addr a) const;

  private:
    std::string name_;
    Bytes file_;
    bool wide_ = false;
    std::uint64_t entry_ = 0;
    std::vector<ElfSegment> segments_;
};

} // namespace moscope::loader
