// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/virtio_blk.hh"

#include <algorithm>
#include <array>
#include <cstring>

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

enum : std::uint32_t { kIn = 0, kOut = 1, kFlush = 4, kGetId = 8 };
enum : std::uint8_t { kOk = 0, kIoError = 1, kUnsupported = 2 };
enum : std::uint64_t { kSegmentLimit = 1 << 2, kReadOnly = 1 << 5, kBlockSize = 1 << 6, kFlushFeature = 1 << 9 };
constexpr unsigned kIdBytes = 20;

struct Header { // as it lies in guest memory
    std::uint32_t type, reserved;
    std::uint64_t sector;
};
static_assert(sizeof(Header) == 16);

void put(std::vector<std::uint8_t> &to, std::size_t offset, std::uint64_t value, unsigned size) {
    std::memcpy(to.data() + offset, &value, size);
}

} // namespace

VirtioBlk::VirtioBlk(std::string name, const Parameters &p, DiskImage &image, Dma &dma, MsiTarget &msi,
                     EventQueue &queue, const TimeSource &time)
    : VirtioPci(std::move(name),
                {.id = 2,
                 .class_code = 0x018000,
                 .features = kSegmentLimit | kBlockSize | kFlushFeature | (p.read_only ? std::uint64_t{kReadOnly} : 0)},
                dma, msi),
      p_(p),
      image_(image),
      time_(time),
      alarm_(queue, this->name(), [this](Tick) { work(0, [this] { complete(); }); }) {
    // Section 5.2.4: capacity in sectors, segments of a request, block size. Two of the 256 descriptors are header and
    // status.
    std::vector<std::uint8_t> config(60);
    put(config, 0, image.bytes() / DiskImage::kSector, 8);
    put(config, 12, 254, 4);
    put(config, 20, DiskImage::kSector, 4);
    put(config, 34, 1, 2);
    set_device_config(std::move(config));
}

void VirtioBlk::notified(unsigned queue) {
    Virtqueue::Chain chain;
    while (take(queue, chain)) {
        Tick due = std::max(time_.now() + p_.latency, busy_until_);
        if (p_.bytes_per_second != 0) {
            // A request as long as the disk is the longest that can succeed.
            const std::uint64_t bytes = std::min(chain.readable_bytes() + chain.writable_bytes(), image_.bytes());
            due += static_cast<Tick>(static_cast<unsigned __int128>(bytes) * kTicksPerSecond / p_.bytes_per_second);
        }
        busy_until_ = due;
        pending_.push_back({std::move(chain), due});
        chain = {};
    }
    if (!pending_.empty())
        alarm_.set(pending_.front().due);
}

void VirtioBlk::complete() {
    // Without bus mastering, or after a fault, the device moves no data, and requests under way are lost.
    if (!live() && !resetting()) {
        pending_.clear();
        return;
    }
    while (!pending_.empty() && pending_.front().due <= time_.now() && live()) {
        const Request request = std::move(pending_.front());
        pending_.pop_front();
        execute(request.chain);
    }
    if (!pending_.empty())
        alarm_.set(pending_.front().due);
}

void VirtioBlk::execute(const Virtqueue::Chain &chain) {
    const std::uint64_t readable = chain.readable_bytes(), writable = chain.writable_bytes();
    Header header;
    SegmentCursor out(dma(), chain.readable), in(dma(), chain.writable);
    if (writable < 1 || !out.read({reinterpret_cast<std::uint8_t *>(&header), sizeof header})) {
        fail("a request without room for header and status");
        return;
    }
    const std::uint64_t data_out = readable - sizeof header, data_in = writable - 1;
    const auto on_disk = [&](std::uint64_t bytes) {
        const std::uint64_t sectors = image_.bytes() / DiskImage::kSector;
        return bytes % DiskImage::kSector == 0 && header.sector <= sectors &&
               bytes / DiskImage::kSector <= sectors - header.sector;
    };
    const std::uint64_t offset = header.sector * DiskImage::kSector;
    std::uint64_t moved = 0; // to the guest
    std::uint8_t status = kOk;
    switch (header.type) {
    case kIn:
        if (on_disk(data_in) && transfer_in(offset, data_in, in)) {
            moved = data_in;
            ++counts_.reads;
            counts_.bytes_read += data_in;
        } else
            status = kIoError;
        break;
    case kOut:
        if (!p_.read_only && on_disk(data_out) && transfer_out(offset, data_out, out)) {
            ++counts_.writes;
            counts_.bytes_written += data_out;
        } else
            status = kIoError;
        break;
    case kFlush: ++counts_.flushes; break;
    case kGetId: {
        std::array<std::uint8_t, kIdBytes> id{};
        std::memcpy(id.data(), p_.id.data(), std::min<std::size_t>(p_.id.size(), kIdBytes));
        moved = std::min<std::uint64_t>(kIdBytes, data_in);
        if (!in.write(std::span(id).first(moved)))
            status = kIoError;
        break;
    }
    default: status = kUnsupported;
    }
    SegmentCursor last(dma(), chain.writable);
    last.skip(data_in);
    last.write({&status, 1});
    // The driver may rely only on the first bytes up to this number: it includes the status if no gap precedes that.
    give_back(0, chain.head,
              static_cast<std::uint32_t>(std::min<std::uint64_t>(moved == data_in ? writable : moved, ~0u)));
}

bool VirtioBlk::transfer_in(std::uint64_t offset, std::uint64_t bytes, SegmentCursor &to) {
    std::array<std::uint8_t, 16 * DiskImage::kPage> buffer;
    while (bytes != 0) {
        const auto piece = std::span(buffer).first(std::min<std::uint64_t>(bytes, buffer.size()));
        image_.read(offset, piece);
        if (!to.write(piece))
            return false;
        offset += piece.size();
        bytes -= piece.size();
    }
    return true;
}

bool VirtioBlk::transfer_out(std::uint64_t offset, std::uint64_t bytes, SegmentCursor &from) {
    std::array<std::uint8_t, 16 * DiskImage::kPage> buffer;
    while (bytes != 0) {
        const auto piece = std::span(buffer).first(std::min<std::uint64_t>(bytes, buffer.size()));
        if (!from.read(piece))
            return false;
        image_.write(offset, piece);
        offset += piece.size();
        bytes -= piece.size();
    }
    return true;
}

void VirtioBlk::device_reset() {
    pending_.clear();
    busy_until_ = 0;
    alarm_.set(kNever);
}

void VirtioBlk::archive(Archive &a) {
    VirtioPci::archive(a);
    image_.archive(a);
    a(pending_, busy_until_, counts_);
    if (a.loading()) {
        // The segments come from a file: they are checked as if they came from the guest.
        for (const Request &r : pending_)
            for (const auto *list : {&r.chain.readable, &r.chain.writable})
                for (const Virtqueue::Segment &s : *list)
                    if (s.size == 0 || !dma().reaches(PhysAddr(s.at), s.size))
                        throw UserError("checkpoint: a disk request to an address outside memory: expected the file as "
                                        "it was written");
        alarm_.set(pending_.empty() ? kNever : pending_.front().due);
    }
}

namespace {

constexpr unsigned kPciDevice = 3;

const RegisteredDevice registered(150, "virtio-blk", [](Devices &d) {
    if (d.machine.disk.empty())
        return;
    VirtioBlk::Parameters p;
    p.read_only = d.machine.disk_read_only;
    auto &image = d.own<DiskImage>(d.machine.disk);
    d.pci().add(kPciDevice, 0, d.own<VirtioBlk>("disk", p, image, d.dma(), d.apic_bus, d.queue, d.time));
});

} // namespace

} // namespace moscope::dev
