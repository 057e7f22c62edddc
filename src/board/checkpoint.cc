// SPDX-License-Identifier: BSD-3-Clause
#include "board/checkpoint.hh"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>

#include <zstd.h>

#include "base/write_error.hh"

namespace moscope {

namespace {

constexpr std::string_view kMagic = "moscope checkpoint\n";
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPagesPerFrame = 1024;
// Limits of the unpacked parts, in bytes: a larger part means that its length is damaged. The state contains all pages of
// the disk that the guest has written.
constexpr std::uint64_t kLargestText = std::uint64_t{16} << 20, kLargestState = std::uint64_t{1} << 40;
constexpr std::size_t kUnpackedAtOnce = std::size_t{16} << 20;
constexpr std::string_view kComplete = "complete";

using Bytes = std::vector<std::uint8_t>;
using File = std::unique_ptr<std::FILE, int (*)(std::FILE *)>;

Bytes text_bytes(std::string_view s) { return {s.begin(), s.end()}; }

class Writer {
  public:
    Writer(const std::string &path, std::FILE *f) : path_(path), f_(f), context_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, 1);
        ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_checksumFlag, 1);
    }
    void raw(const void *p, std::size_t n) {
        if (std::fwrite(p, 1, n, f_) != n)
            throw write_error(path_, errno);
    }
    void part(const void *p, std::size_t n) {
        out_.resize(ZSTD_compressBound(n));
        const std::size_t size = ZSTD_compress2(context_.get(), out_.data(), out_.size(), p, n);
        MOSCOPE_CHECK(!ZSTD_isError(size));
        const std::uint64_t length = size;
        raw(&length, sizeof length);
        raw(out_.data(), size);
    }

  private:
    std::string path_;
    std::FILE *f_;
    std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx *)> context_;
    Bytes out_;
};

class Reader {
  public:
    Reader(const std::string &path, std::FILE *f) : path_(path), f_(f), context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
        std::fseek(f, 0, SEEK_END);
        left_ = static_cast<std::uint64_t>(std::ftell(f));
        std::fseek(f, 0, SEEK_SET);
    }
    [[noreturn]] void truncated() const {
        throw UserError(path_ + ": is truncated: expected the whole checkpoint as it was written");
    }
    [[noreturn]] void altered() const {
        throw UserError(path_ + ": was altered (a checksum does not match): expected the checkpoint as it was written");
    }
    void check_end() const {
        if (left_ != 0)
            throw UserError(path_ + ": has " + std::to_string(left_) +
                            " more bytes after its end: expected the checkpoint as it was written");
    }
    void raw(void *p, std::size_t n) {
        if (n > left_ || std::fread(p, 1, n, f_) != n)
            truncated();
        left_ -= n;
    }
    /// A part of at most so many bytes when unpacked.
    Bytes part(std::uint64_t largest) {
        std::uint64_t length;
        raw(&length, sizeof length);
        if (length > ZSTD_compressBound(largest))
            altered();
        if (length > left_)
            truncated();
        in_.resize(length);
        raw(in_.data(), length);
        const unsigned long long size = ZSTD_getFrameContentSize(in_.data(), in_.size());
        if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > largest)
            altered();
        if (size > kUnpackedAtOnce)
            return large_part(size);
        Bytes out(size);
        const std::size_t got = ZSTD_decompressDCtx(context_.get(), out.data(), out.size(), in_.data(), in_.size());
        if (ZSTD_isError(got) || got != size)
            altered();
        return out;
    }

  private:
    /// A part whose size may be damaged: memory is taken as the content comes.
    Bytes large_part(std::uint64_t size) {
        ZSTD_inBuffer from{in_.data(), in_.size(), 0};
        Bytes out;
        std::size_t done = 0, more = 1;
        while (more != 0) {
            out.resize(std::min<std::uint64_t>(size, done + std::max(done, kUnpackedAtOnce)));
            ZSTD_outBuffer to{out.data(), out.size(), done};
            more = ZSTD_decompressStream(context_.get(), &to, &from);
            if (ZSTD_isError(more) || (more != 0 && to.pos == done))
                altered();
            done = to.pos;
        }
        if (from.pos != from.size || done != size)
            altered();
        return out;
    }

    std::string path_;
    std::FILE *f_;
    std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx *)> context_;
    std::uint64_t left_ = 0;
    Bytes in_;
};

struct Placed {
    std::uint64_t page, content;
};

/// FNV-1a over 64-bit words: equal pages are compared byte by byte, so it only has to spread.
std::uint64_t hash_page(const std::byte *p) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < kPage; i += 8) {
        std::uint64_t w;
        std::memcpy(&w, p + i, 8);
        h = (h ^ w) * 0x100000001b3;
        h ^= h >> 29;
    }
    return h;
}

bool is_zero(const std::byte *p) {
    static const std::byte zero[kPage] = {};
    return std::memcmp(p, zero, kPage) == 0;
}

void write_pages(Writer &w, const GuestMemory &memory) {
    std::vector<Placed> directory;
    std::vector<const std::byte *> contents;
    std::unordered_multimap<std::uint64_t, std::uint64_t> known;
    for (const std::uint64_t page : touched_pages(memory)) {
        const std::byte *p = memory.base() + page * kPage;
        if (is_zero(p))
            continue;
        const std::uint64_t h = hash_page(p);
        std::uint64_t content = contents.size();
        const auto [first, last] = known.equal_range(h);
        for (auto i = first; i != last; ++i)
            if (std::memcmp(contents[i->second], p, kPage) == 0) {
                content = i->second;
                break;
            }
        if (content == contents.size()) {
            contents.push_back(p);
            known.emplace(h, content);
        }
        directory.push_back({page, content});
    }
    w.part(directory.data(), directory.size() * sizeof(Placed));
    Bytes frame;
    for (std::size_t i = 0; i < contents.size(); i += kPagesPerFrame) {
        const std::size_t n = std::min(kPagesPerFrame, contents.size() - i);
        frame.resize(n * kPage);
        for (std::size_t k = 0; k < n; ++k)
            std::memcpy(frame.data() + k * kPage, contents[i + k], kPage);
        w.part(frame.data(), frame.size());
    }
}

void read_pages(Reader &r, GuestMemory &memory) {
    const Bytes raw = r.part(memory.bytes() / kPage * sizeof(Placed));
    if (raw.size() % sizeof(Placed))
        r.altered();
    std::vector<Placed> directory(raw.size() / sizeof(Placed));
    std::memcpy(directory.data(), raw.data(), raw.size());
    std::uint64_t contents = 0;
    for (const Placed &d : directory) {
        if (d.page >= memory.bytes() / kPage || d.content >= directory.size())
            r.altered();
        contents = std::max(contents, d.content + 1);
    }
    // By content, so that each frame is decompressed once and kept no longer than it is needed.
    std::vector<std::vector<std::uint64_t>> wanted(contents ? (contents - 1) / kPagesPerFrame + 1 : 0);
    for (std::uint64_t i = 0; i < directory.size(); ++i)
        wanted[directory[i].content / kPagesPerFrame].push_back(i);
    for (const auto &list : wanted) {
        const Bytes frame = r.part(kPagesPerFrame * kPage);
        for (const std::uint64_t i : list) {
            const std::uint64_t at = directory[i].content % kPagesPerFrame * kPage;
            if (at + kPage > frame.size())
                r.altered();
            std::memcpy(memory.base() + directory[i].page * kPage, frame.data() + at, kPage);
        }
    }
}

File open_to_read(const std::string &path) {
    File f(std::fopen(path.c_str(), "rb"), std::fclose);
    if (!f)
        throw UserError(path + ": cannot be read: " + std::strerror(errno) + ": expected a checkpoint");
    return f;
}

void check_header(const std::string &path, Reader &r) {
    std::string magic(kMagic.size(), ' ');
    r.raw(magic.data(), magic.size());
    if (magic != kMagic)
        throw UserError(path + ": is not a checkpoint: expected a file that `boot --checkpoint-at` wrote");
    std::uint32_t version;
    r.raw(&version, sizeof version);
    if (version > kCheckpointVersion)
        throw UserError(path + ": has format " + std::to_string(version) + ", newer than this moscope's " +
                        std::to_string(kCheckpointVersion) + ": expected the moscope that wrote it");
    if (version != kCheckpointVersion)
        throw UserError(path + ": has format " + std::to_string(version) + ": expected format " +
                        std::to_string(kCheckpointVersion));
}

} // namespace

std::vector<std::uint64_t> touched_pages(const GuestMemory &memory) {
    // /proc/self/pagemap: bit 63: present, bit 62: swapped out (Linux, admin-guide/mm/pagemap).
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    std::vector<std::uint64_t> pages;
    const std::uint64_t first = reinterpret_cast<std::uintptr_t>(memory.base()) / kPage, count = memory.bytes() / kPage;
    std::vector<std::uint64_t> entries(1 << 16);
    for (std::uint64_t i = 0; i < count; i += entries.size()) {
        const std::uint64_t n = std::min<std::uint64_t>(entries.size(), count - i);
        const auto want = static_cast<ssize_t>(n * 8);
        const bool known = fd >= 0 && pread(fd, entries.data(), n * 8, static_cast<off_t>((first + i) * 8)) == want;
        for (std::uint64_t k = 0; k < n; ++k)
            if (!known || entries[k] >> 62) // without the pagemap every page counts, which is slow but right
                pages.push_back(i + k);
    }
    if (fd >= 0)
        close(fd);
    return pages;
}

void write_checkpoint(const std::string &path, const std::string &description, const Archive &state,
                      const GuestMemory &memory) {
    const std::string aside = path + ".part-" + std::to_string(getpid());
    File f(std::fopen(aside.c_str(), "wb"), std::fclose);
    if (!f)
        throw write_error(path, errno, "a folder that exists and can be written");
    try {
        Writer w(path, f.get());
        w.raw(kMagic.data(), kMagic.size());
        const std::uint32_t version = kCheckpointVersion;
        w.raw(&version, sizeof version);
        const Bytes text = text_bytes(description);
        w.part(text.data(), text.size());
        w.part(state.bytes().data(), state.bytes().size());
        write_pages(w, memory);
        w.part(kComplete.data(), kComplete.size());
        std::FILE *raw = f.release();
        const bool flushed = std::fflush(raw) == 0;
        if ((std::fclose(raw) != 0) | !flushed)
            throw write_error(path, errno);
        if (std::rename(aside.c_str(), path.c_str()) != 0)
            throw write_error(path, errno);
    } catch (...) {
        std::remove(aside.c_str());
        throw;
    }
}

Archive read_checkpoint(const std::string &path, const std::function<bool(const std::string &)> &fits,
                        GuestMemory &memory) {
    File f = open_to_read(path);
    Reader r(path, f.get());
    check_header(path, r);
    const Bytes text = r.part(kLargestText);
    if (!fits({text.begin(), text.end()}))
        throw UserError(path + ": was written by another machine: expected the options that it was written with");
    Archive state(r.part(kLargestState));
    read_pages(r, memory);
    if (r.part(kLargestText) != text_bytes(kComplete))
        r.altered();
    r.check_end();
    return state;
}

std::string read_checkpoint_description(const std::string &path) {
    File f = open_to_read(path);
    Reader r(path, f.get());
    check_header(path, r);
    const Bytes text = r.part(kLargestText);
    return {text.begin(), text.end()};
}

} // namespace moscope
