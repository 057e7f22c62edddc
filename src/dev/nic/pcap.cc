// SPDX-License-Identifier: BSD-3-Clause
#include "dev/nic/pcap.hh"

#include <cerrno>

#include "base/write_error.hh"

namespace moscope::dev {

namespace {

struct FileHeader {
    std::uint32_t magic = 0xa1b23c4d;
    std::uint16_t major = 2, minor = 4;
    std::uint32_t zone = 0, accuracy = 0, longest = 65535, ethernet = 1;
};
struct PacketHeader {
    std::uint32_t seconds, nanoseconds, kept, length;
};
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

} // namespace

Pcap::Pcap(const std::string &path) : path_(path), file_(std::fopen(path.c_str(), "wb"), std::fclose) {
    if (!file_)
        throw write_error(path, errno);
    const FileHeader header;
    std::fwrite(&header, sizeof header, 1, file_.get());
    flush();
}

Pcap::~Pcap() {
    try {
        put_until(kNever);
    } catch (const UserError &) {} // of a destructor no error can come
}

void Pcap::write(net::Bytes frame, Tick at, Tick now) {
    put_until(now);
    if (at <= now)
        put(frame, at);
    else
        later_.emplace(at, net::Frame(frame.begin(), frame.end()));
}

void Pcap::put_until(Tick now) {
    for (; !later_.empty() && later_.begin()->first <= now; later_.erase(later_.begin()))
        put(later_.begin()->second, later_.begin()->first);
}

void Pcap::put(net::Bytes frame, Tick at) {
    const auto ns = static_cast<std::uint64_t>(at / kTicksPerNs);
    const auto size = static_cast<std::uint32_t>(frame.size());
    const PacketHeader header{static_cast<std::uint32_t>(ns / kNsPerSecond),
                              static_cast<std::uint32_t>(ns % kNsPerSecond), size, size};
    std::fwrite(&header, sizeof header, 1, file_.get());
    std::fwrite(frame.data(), 1, frame.size(), file_.get());
    flush();
}

void Pcap::flush() {
    if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0)
        throw write_error(path_, errno);
}

} // namespace moscope::dev
