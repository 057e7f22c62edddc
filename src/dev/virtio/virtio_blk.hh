// SPDX-License-Identifier: BSD-3-Clause
// A virtio block device (Virtual I/O Device specification 1.1, section 5.2): one queue; read, write, flush and get-id
// on a disk image. A request completes a fixed latency after it was made, and requests share the device's bandwidth.
// Bytes move at completion; then the device interrupts the driver.
#pragma once

#include <deque>
#include <string>

#include "dev/time.hh"
#include "dev/virtio/disk_image.hh"
#include "dev/virtio/virtio_pci.hh"

namespace moscope::dev {

class VirtioBlk final : public VirtioPci {
  public:
    struct Parameters {
        Tick latency = 50'000 * kTicksPerNs;            ///< of each request: a SATA SSD of the machine's day
        std::uint64_t bytes_per_second = 1'000'000'000; ///< of all requests together; 0: no limit
        std::string id = "moscope";                     ///< at most 20 bytes
        bool read_only = false;
    };
    /// The caller owns the image, which outlives the device.
    VirtioBlk(std::string name, const Parameters &, DiskImage &, Dma &, MsiTarget &, EventQueue &, const TimeSource &);

    struct Counts {
        std::uint64_t reads = 0, writes = 0, flushes = 0, bytes_read = 0, bytes_written = 0;
    };
    const Counts &counts() const { return counts_; }

    void archive(Archive &) override;

  private:
    struct Request {
        Virtqueue::Chain chain;
        Tick due = 0;
        void archive(Archive &a) { a(chain, due); }
    };
    void notified(unsigned queue) override;
    void device_reset() override;
    void complete();
    void execute(const Virtqueue::Chain &);
    bool transfer_in(std::uint64_t offset, std::uint64_t bytes, SegmentCursor &to);
    bool transfer_out(std::uint64_t offset, std::uint64_t bytes, SegmentCursor &from);

    Parameters p_;
    DiskImage &image_;
    const TimeSource &time_;
    Alarm alarm_;
    std::deque<Request> pending_; ///< in the order of their completion
    Tick busy_until_ = 0;         ///< when the last of them completes
    Counts counts_;
};

} // namespace moscope::dev
