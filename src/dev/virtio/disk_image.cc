// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/disk_image.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hh"

namespace moscope::dev {

namespace {
std::uint64_t whole_sectors(std::uint64_t bytes) {
    return (bytes + DiskImage::kSector - 1) / DiskImage::kSector * DiskImage::kSector;
}
} // namespace

DiskImage::DiskImage(const std::string &path) : path_(path) {
    const auto refuse = [&](const std::string &what) {
        throw UserError(path + ": " + what + ": expected a disk image");
    };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        refuse(std::strerror(errno));
    struct stat st {};
    const bool regular = ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    void *map = MAP_FAILED;
    if (regular && st.st_size > 0)
        map = ::mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (!regular)
        refuse("not a regular file");
    if (st.st_size <= 0)
        refuse("an empty file");
    if (map == MAP_FAILED)
        refuse(std::strerror(error));
    file_ = static_cast<const std::uint8_t *>(map);
    file_bytes_ = static_cast<std::uint64_t>(st.st_size);
    bytes_ = whole_sectors(file_bytes_);
}

DiskImage::DiskImage(std::uint64_t bytes) : bytes_(whole_sectors(bytes)) {}

DiskImage::~DiskImage() {
    if (file_)
        ::munmap(const_cast<std::uint8_t *>(file_), file_bytes_);
}

void DiskImage::read_file(std::uint64_t offset, std::span<std::uint8_t> to) const {
    const std::uint64_t n = offset < file_bytes_ ? std::min<std::uint64_t>(to.size(), file_bytes_ - offset) : 0;
    if (n != 0)
        std::memcpy(to.data(), file_ + offset, n);
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(n), to.end(), std::uint8_t{0});
}

void DiskImage::read(std::uint64_t offset, std::span<std::uint8_t> to) const {
    MOSCOPE_CHECK(offset <= bytes_ && to.size() <= bytes_ - offset);
    while (!to.empty()) {
        const std::uint64_t in_page = offset % kPage, n = std::min<std::uint64_t>(to.size(), kPage - in_page);
        const auto at = written_.find(offset / kPage);
        if (at == written_.end())
            read_file(offset, to.first(n));
        else
            std::memcpy(to.data(), at->second.data() + in_page, n);
        offset += n;
        to = to.subspan(n);
    }
}

void DiskImage::write(std::uint64_t offset, std::span<const std::uint8_t> from) {
    MOSCOPE_CHECK(offset <= bytes_ && from.size() <= bytes_ - offset);
    while (!from.empty()) {
        const std::uint64_t in_page = offset % kPage, n = std::min<std::uint64_t>(from.size(), kPage - in_page);
        const auto [at, fresh] = written_.try_emplace(offset / kPage);
        if (fresh && n != kPage)
            read_file(offset - in_page, at->second);
        std::memcpy(at->second.data() + in_page, from.data(), n);
        offset += n;
        from = from.subspan(n);
    }
}

// FNV-1a over the first page of every MiB and the last bytes: enough to distinguish images without reading them whole.
std::uint64_t DiskImage::fingerprint() const {
    std::uint64_t h = 0xcbf29ce484222325ull ^ bytes_;
    Page page;
    const auto add = [&](std::uint64_t offset) {
        read_file(offset, page);
        for (const std::uint8_t b : page)
            h = (h ^ b) * 0x100000001b3ull;
    };
    for (std::uint64_t offset = 0; offset < file_bytes_; offset += 1 << 20)
        add(offset);
    add(file_bytes_ > kPage ? file_bytes_ - kPage : 0);
    return h;
}

void DiskImage::archive(Archive &a) {
    a.section("disk");
    std::uint64_t print = fingerprint(), pages = written_.size();
    const std::uint64_t own = print;
    a(print, pages);
    if (a.loading()) {
        if (print != own)
            throw UserError((path_.empty() ? std::string("disk") : path_) +
                            ": differs from the disk image of the checkpoint: expected the same file");
        written_.clear();
        for (std::uint64_t i = 0; i < pages; ++i) {
            std::uint64_t number = 0;
            a(number);
            if (number >= (bytes_ + kPage - 1) / kPage)
                throw UserError("checkpoint: a disk page beyond the disk: expected the file as it was written");
            Page &page = written_[number];
            a.raw(page.data(), page.size());
        }
    } else {
        for (auto &[number, page] : written_) {
            std::uint64_t n = number;
            a(n);
            a.raw(page.data(), page.size());
        }
    }
}

} // namespace moscope::dev
