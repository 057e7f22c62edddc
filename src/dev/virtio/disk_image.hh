// SPDX-License-Identifier: BSD-3-Clause
// The content of a disk: a host file (raw image, squashfs, anything) that is mapped and never written. 4-KiB pages that
// the guest has written replace those of the file; they live in memory and in checkpoints. Offsets and sizes are bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "sim/archive.hh"

namespace moscope::dev {

class DiskImage {
  public:
    static constexpr std::uint64_t kSector = 512, kPage = 4096;

    /// UserError if the file cannot be read or is empty. A last sector that is not whole ends in zeros.
    explicit DiskImage(const std::string &path);
    /// A disk of zeros.
    explicit DiskImage(std::uint64_t bytes);
    ~DiskImage();
    DiskImage(const DiskImage &) = delete;
    DiskImage &operator=(const DiskImage &) = delete;

    /// A whole number of sectors.
    std::uint64_t bytes() const { return bytes_; }
    std::uint64_t pages_written() const { return written_.size(); }

    /// Offset and size lie within the disk.
    void read(std::uint64_t offset, std::span<std::uint8_t> to) const;
    void write(std::uint64_t offset, std::span<const std::uint8_t> from);

    void reset() { written_.clear(); }
    /// The written pages. UserError when the file is not the one that the checkpoint was made with.
    void archive(Archive &);

  private:
    using Page = std::array<std::uint8_t, kPage>;
    void read_file(std::uint64_t offset, std::span<std::uint8_t> to) const;
    std::uint64_t fingerprint() const;

    std::string path_;
    const std::uint8_t *file_ = nullptr;
    std::uint64_t file_bytes_ = 0, bytes_ = 0;
    std::map<std::uint64_t, Page> written_; ///< by page number; sorted, so that equal disks give equal checkpoints
};

} // namespace moscope::dev
