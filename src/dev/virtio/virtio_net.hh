// SPDX-License-Identifier: BSD-3-Clause
// A virtio network device (Virtual I/O Device specification 1.2, section 5.1) in the place of the paper's Intel 82599: a
// pair of queues for each core, a control queue, receive side scaling, checksum offload, mergeable receive buffers. The
// limits around the queues are those of a real card: the link's rate, packets per second in and out, the FIFOs.
//
// An arriving frame waits in the receive FIFO until the card's packet rate lets the card handle it; a full FIFO drops
// the frame. The steering policy (dev/nic/steering.hh) then chooses its queue; if the driver has provided no
// buffer there, the frame is dropped. A frame to be sent is fetched when the transmit FIFO has room. Like a real card,
// this one returns the buffers of several sent frames of a queue together, or fewer after a time, so that a core that
// sends one frame after another does not miss on the ring each time.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>

#include "dev/nic/nic_settings.hh"
#include "dev/nic/out_fifo.hh"
#include "dev/nic/pcap.hh"
#include "dev/nic/steering.hh"
#include "dev/time.hh"
#include "dev/virtio/virtio_pci.hh"
#include "net/lan.hh"
#include "schema/card.hh"

namespace moscope::dev {

class VirtioNet final : public VirtioPci {
  public:
    enum Feature : std::uint64_t {
        kChecksum = 1ull << 0,      ///< the driver leaves checksums to the device
        kGuestChecksum = 1ull << 1, ///< the device marks frames whose checksum is right
        kMac = 1ull << 5,
        kMergeBuffers = 1ull << 15,
        kLinkStatus = 1ull << 16,
        kControl = 1ull << 17,
        kMultiQueue = 1ull << 22,
        kRss = 1ull << 60,
        kSpeed = 1ull << 63,
    };
    struct Counts {
        std::uint64_t in_packets = 0, in_bytes = 0, out_packets = 0, out_bytes = 0;
        std::uint64_t in_busy = 0, out_busy = 0; ///< ticks of the card's own work for packets; 0 without packet limits
        std::array<std::uint64_t, kDrops> dropped{};
        std::uint64_t deepest_fifo = 0; ///< the most bytes that waited at one time
    };
    struct QueueCounts {
        std::uint64_t in_packets = 0, out_packets = 0, dropped = 0;
    };

    VirtioNet(std::string name, const NicSettings &, std::uint64_t seed, Dma &, MsiTarget &, EventQueue &,
              const TimeSource &, std::function<void(std::uint64_t)> on_operations);

    const Counts &counts() const { return counts_; }
    const net::Lan &lan() const { return lan_; }
    unsigned active_pairs() const { return active_pairs_; }
    const RssConfig &rss() const { return rss_; }
    NetworkReport report() const;
    /// A frame that arrives from the link.
    void arrived(net::Frame frame, Tick now);
    void archive(Archive &) override;

  private:
    struct Waiting {
        net::Frame frame;
        Tick due = 0;
        void archive(Archive &a) { a(frame, due); }
    };
    /// Sent frames of a pair whose buffers have not been returned to the driver.
    struct Sent {
        std::vector<Virtqueue::Used> used;
        Tick due = kNever; ///< latest tick of their return
        void archive(Archive &a) { a(used, due); }
    };
    void notified(unsigned queue) override;
    void device_reset() override;
    void rang();
    void set_alarm();
    void dispatch(Tick now);
    void serve_received(unsigned pair);
    void serve_sent(unsigned pair);
    unsigned lane_of(unsigned queue) const override { return queue < 2 * pairs_ ? first_lane_ + queue : 0; }
    void serve_control(unsigned queue);
    NetworkDepths depths() const;
    void return_sent(unsigned pair);
    bool send(unsigned pair, const Virtqueue::Chain &);
    void receive(unsigned pair, const net::Frame &, std::vector<Virtqueue::Used> &);
    bool control(const std::vector<std::uint8_t> &command);
    bool configure_rss(std::span<const std::uint8_t> bytes);
    unsigned control_queue() const { return 2 * (driver_has(kMultiQueue | kRss) ? pairs_ : 1); }
    Tick packet_time(std::uint64_t per_second) const;
    void wake_blocked();
    void drop(Drop reason) { ++counts_.dropped[static_cast<unsigned>(reason)]; }

    const NicSettings p_;
    const unsigned pairs_;
    const unsigned first_lane_; ///< of the queues, which have one each
    const TimeSource &time_;
    net::Lan lan_;
    std::unique_ptr<Steering> steering_;
    std::unique_ptr<Pcap> pcap_;
    Alarm alarm_;
    RssConfig rss_;
    unsigned active_pairs_ = 1;
    std::deque<Waiting> fifo_;                       ///< received, in the order of arrival
    std::vector<std::deque<net::Frame>> steered_;    ///< by pair: on their way to the guest, still counted in the FIFO
    std::uint64_t fifo_frames_ = 0, fifo_bytes_ = 0; ///< until they are in the guest's buffers
    Tick in_free_ = 0, out_free_ = 0;                ///< when the card can handle another packet
    std::vector<std::deque<Virtqueue::Chain>> held_; ///< by pair: receive buffers taken and not used yet
    OutFifo out_;
    std::deque<std::uint32_t> blocked_;   ///< pairs that wait for room in the transmit FIFO, first come first
    std::vector<std::uint8_t> receiving_; ///< by pair: a piece of work for its frames is waiting or under way
    std::vector<Sent> sent_;              ///< by pair
    Tick return_due_ = kNever;            ///< earliest `due` of all pairs
    Counts counts_;
    std::vector<QueueCounts> queue_counts_;
};

} // namespace moscope::dev
