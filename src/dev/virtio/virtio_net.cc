// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/virtio_net.hh"

#include <algorithm>
#include <utility>

#include "dev/devices.hh"
#include "net/checksum.hh"

namespace moscope::dev {

namespace {

struct Header { // before each frame in the guest's buffers (section 5.1.6)
    std::uint8_t flags = 0, segmentation = 0;
    std::uint16_t header_bytes = 0, segment_bytes = 0, checksum_start = 0, checksum_offset = 0, buffers = 1;
};
static_assert(sizeof(Header) == 12);
enum : std::uint8_t { kNeedsChecksum = 1, kDataValid = 2 };

constexpr std::size_t kLongestFrame = net::kEthernetHeader + net::kMtu + 4; // with a VLAN tag
constexpr unsigned kBatch = 64; ///< most frames sent by one piece of work; then other work of the lane has its turn
constexpr unsigned kBurst = 8;  ///< most frames handled together: their entries of the used ring fill a line
constexpr std::uint64_t kBurstBytes = kBurst * kLongestFrame;
constexpr unsigned kPrefetched = 16; ///< receive buffers that the card fetches together
constexpr net::Mac kAddress = {0x02, 0x00, 0x0a, 0x01, 0x00, 0x01};

struct Config { // as it lies in the device's configuration (section 5.1.4)
    net::Mac mac = kAddress;
    std::uint16_t status = 1; // the link is up
    std::uint16_t pairs = 1, mtu = net::kMtu;
    std::uint32_t speed = 0; // Mbit/s
    std::uint8_t duplex = 1, key_bytes = RssConfig::kKeyBytes;
    std::uint16_t table_entries = RssConfig::kEntries;
    std::uint32_t hash_types = RssConfig::kIpv4 | RssConfig::kTcpv4 | RssConfig::kUdpv4;
};
static_assert(sizeof(Config) == 24);

std::uint64_t features(const NicSettings &p) {
    using F = VirtioNet::Feature;
    return F::kChecksum | F::kGuestChecksum | F::kMac | F::kMergeBuffers | F::kLinkStatus | F::kControl | F::kSpeed |
           (p.queues > 1 ? F::kMultiQueue | F::kRss : 0ull);
}

net::Link::Parameters link_of(const NicSettings &p) {
    return {.bits_per_second = p.link_megabits * 1'000'000ull,
            .latency = p.link_latency_fs,
            .lost = p.lost,
            .duplicated = p.duplicated,
            .delayed = p.delayed};
}

} // namespace

VirtioNet::VirtioNet(std::string name, const NicSettings &p, std::uint64_t seed, Dma &dma, MsiTarget &msi,
                     EventQueue &queue, const TimeSource &time, std::function<void(std::uint64_t)> on_operations)
    : VirtioPci(std::move(name), {.id = 1, .class_code = 0x020000, .features = features(p), .queues = 2 * p.queues + 1},
                dma, msi),
      p_(p),
      pairs_(p.queues),
      first_lane_(dma.make_lanes(2 * p.queues)),
      time_(time),
      lan_(
          link_of(p), seed, [this](net::Frame f, Tick now) { arrived(std::move(f), now); }, std::move(on_operations)),
      steering_(make_steering(p.steering, p.first_port)),
      pcap_(p.pcap.empty() ? nullptr : std::make_unique<Pcap>(p.pcap)),
      alarm_(queue, this->name(), [this](Tick) { rang(); }),
      steered_(p.queues),
      held_(p.queues),
      out_(p.out_fifo_bytes),
      receiving_(p.queues),
      sent_(p.queues),
      queue_counts_(p.queues) {
    MOSCOPE_CHECK(pairs_ >= 1 && pairs_ <= NicSettings::Most::queues);
    Config config;
    config.pairs = static_cast<std::uint16_t>(p.queues);
    config.speed = static_cast<std::uint32_t>(p.link_megabits);
    const auto *bytes = reinterpret_cast<const std::uint8_t *>(&config);
    set_device_config({bytes, bytes + sizeof config});
}

// --- time ---------------------------------------------------------------------------------------------------------

void VirtioNet::rang() {
    const Tick now = time_.now();
    lan_.run(now);
    dispatch(now);
    if (return_due_ <= now) {
        return_due_ = kNever;
        for (unsigned pair = 0; pair < pairs_; ++pair)
            if (sent_[pair].due <= now) {
                sent_[pair].due = kNever;
                work(lane_of(2 * pair + 1), [this, pair] { return_sent(pair); });
            } else {
                return_due_ = std::min(return_due_, sent_[pair].due);
            }
    }
    wake_blocked();
    set_alarm();
}

void VirtioNet::set_alarm() {
    Tick next = std::min(lan_.next(), return_due_);
    if (!fifo_.empty())
        next = std::min(next, fifo_.front().due);
    if (!blocked_.empty())
        next = std::min(next, out_.has_room(kBurstBytes));
    alarm_.set(next);
}

/// Resumes as many queues as the transmit FIFO has room for, in the order in which they were blocked.
void VirtioNet::wake_blocked() {
    out_.advance(time_.now());
    const std::uint64_t each = out_.wanted(kBurstBytes);
    for (std::uint64_t room = out_.room(); room >= each && !blocked_.empty(); room -= each) {
        const unsigned pair = blocked_.front();
        blocked_.pop_front();
        work(lane_of(2 * pair + 1), [this, pair] { serve_sent(pair); });
    }
}

// --- from the link to the guest -----------------------------------------------------------------------------------

void VirtioNet::arrived(net::Frame frame, Tick now) {
    if (pcap_)
        pcap_->write(frame, now, now);
    if (!(status() & kDriverOk) || (status() & kNeedsReset)) {
        drop(Drop::not_ready);
        return;
    }
    if (fifo_bytes_ + frame.size() > p_.in_fifo_bytes) {
        drop(Drop::fifo_full);
        return;
    }
    const Tick own = packet_time(p_.in_per_second);
    counts_.in_busy += static_cast<std::uint64_t>(own);
    in_free_ = std::max(in_free_, now) + own;
    ++fifo_frames_;
    fifo_bytes_ += frame.size();
    counts_.deepest_fifo = std::max(counts_.deepest_fifo, fifo_bytes_);
    fifo_.push_back({std::move(frame), in_free_});
}

/// Moves the frames that the card may handle to their queues. They leave the FIFO when they are in the guest's buffers.
void VirtioNet::dispatch(Tick now) {
    while (!fifo_.empty() && fifo_.front().due <= now) {
        const unsigned pair = steering_->queue_of(net::flow_of(fifo_.front().frame), active_pairs_, rss_);
        steered_[pair].push_back(std::move(fifo_.front().frame));
        fifo_.pop_front();
        if (!std::exchange(receiving_[pair], std::uint8_t{1}))
            work(lane_of(2 * pair), [this, pair] { serve_received(pair); });
    }
}

/// Ticks that the card takes for a packet, from its limit of packets per second; 0 without a limit.
Tick VirtioNet::packet_time(std::uint64_t per_second) const {
    if (per_second == 0)
        return 0;
    const unsigned further = active_pairs_ - std::min<unsigned>(active_pairs_, p_.full_rate_queues);
    const Tick alone = kTicksPerSecond / static_cast<Tick>(per_second);
    return alone + alone / 1000 * static_cast<Tick>(further * p_.queue_cost);
}

void VirtioNet::serve_received(unsigned pair) {
    auto &frames = steered_[pair];
    while (!frames.empty() && !resetting()) {
        std::vector<Virtqueue::Used> used;
        for (unsigned served = 0; !frames.empty() && !resetting() && served < kBurst; ++served) {
            const net::Frame frame = std::move(frames.front());
            frames.pop_front();
            receive(pair, frame, used);
            --fifo_frames_;
            fifo_bytes_ -= frame.size();
        }
        if (!used.empty())
            put_back(2 * pair, used);
        signal(2 * pair);
    }
    receiving_[pair] = 0;
}

void VirtioNet::receive(unsigned pair, const net::Frame &frame, std::vector<Virtqueue::Used> &used) {
    if (!live()) { // it may have fetched buffers while it was
        drop(Drop::not_ready);
        return;
    }
    const bool merge = driver_has(kMergeBuffers);
    std::vector<std::uint8_t> bytes(sizeof(Header) + frame.size());
    auto &held = held_[pair];
    std::uint64_t room = 0;
    std::size_t chains = 0;
    while (room < bytes.size() && (merge || chains == 0)) {
        if (chains == held.size() && take(2 * pair, held, kPrefetched) == 0)
            break;
        if (held[chains].writable.empty() || !held[chains].readable.empty()) {
            fail("a receive buffer that the device may not write");
            return;
        }
        room += held[chains++].writable_bytes();
    }
    if (room < bytes.size()) {
        if (resetting()) { // while it fetched buffers
            drop(Drop::not_ready);
            return;
        }
        drop(Drop::no_buffer);
        ++queue_counts_[pair].dropped;
        return;
    }
    Header header;
    header.buffers = static_cast<std::uint16_t>(chains);
    if (driver_has(kGuestChecksum) && net::transport_checksum_right(frame).value_or(false))
        header.flags = kDataValid;
    std::memcpy(bytes.data(), &header, sizeof header);
    std::copy(frame.begin(), frame.end(), bytes.begin() + sizeof header);
    ++counts_.in_packets;
    counts_.in_bytes += frame.size();
    ++queue_counts_[pair].in_packets;
    for (std::span<const std::uint8_t> left = bytes; !left.empty() && !resetting();) {
        const Virtqueue::Chain chain = std::move(held.front());
        held.pop_front();
        const auto piece = left.first(std::min<std::uint64_t>(left.size(), chain.writable_bytes()));
        SegmentCursor(dma(), chain.writable).write(piece);
        used.push_back({chain.head, static_cast<std::uint32_t>(piece.size())});
        left = left.subspan(piece.size());
    }
}

// --- from the guest to the link -----------------------------------------------------------------------------------

void VirtioNet::notified(unsigned queue) {
    if (queue == control_queue())
        serve_control(queue);
    else if (queue < control_queue() && queue % 2 == 1)
        serve_sent(queue / 2);
    // A receive queue that has buffers again needs no action: the next frame will find them.
}

void VirtioNet::serve_sent(unsigned pair) {
    const unsigned queue = 2 * pair + 1;
    unsigned served = 0;
    bool more = true;
    while (more && served < kBatch && !resetting()) {
        std::deque<Virtqueue::Chain> chains;
        out_.advance(time_.now());
        if (out_.full()) {
            if (std::find(blocked_.begin(), blocked_.end(), pair) == blocked_.end())
                blocked_.push_back(pair);
            break;
        }
        const auto most = static_cast<unsigned>(std::clamp<std::uint64_t>(out_.room() / kLongestFrame, 1, kBurst));
        out_.reserve(most * kLongestFrame);
        more = take(queue, chains, most) != 0;
        for (const Virtqueue::Chain &chain : chains) {
            if (!send(pair, chain))
                drop(resetting() ? Drop::not_ready : Drop::bad_request);
            sent_[pair].used.push_back({chain.head, 0});
        }
        out_.release(most * kLongestFrame);
        wake_blocked();
        if (sent_[pair].used.size() >= p_.sent_together)
            return_sent(pair);
        else if (!sent_[pair].used.empty() && sent_[pair].due == kNever)
            return_due_ = std::min(return_due_, sent_[pair].due = time_.now() + p_.sent_after_fs);
        served += static_cast<unsigned>(chains.size());
        set_alarm();
    }
    set_alarm();
    if (served >= kBatch)
        work(lane_of(queue), [this, pair] { serve_sent(pair); });
}

void VirtioNet::return_sent(unsigned pair) {
    sent_[pair].due = kNever;
    if (sent_[pair].used.empty() || !live()) // returned with later frames, or dropped by a reset
        return;
    const auto used = std::exchange(sent_[pair].used, {});
    put_back(2 * pair + 1, used);
    signal(2 * pair + 1);
}

bool VirtioNet::send(unsigned pair, const Virtqueue::Chain &chain) {
    const std::uint64_t size = chain.readable_bytes();
    if (size < sizeof(Header) + net::kEthernetHeader || size > sizeof(Header) + kLongestFrame)
        return false;
    std::vector<std::uint8_t> bytes(size);
    if (!SegmentCursor(dma(), chain.readable).read(bytes) || resetting())
        return false;
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    net::Frame frame(bytes.begin() + sizeof header, bytes.end());
    if (header.segmentation != 0)
        return false; // segmentation offload was not offered
    if (header.flags & kNeedsChecksum) {
        // The field holds the sum of the pseudo header (section 5.1.6.2.1).
        const std::size_t start = header.checksum_start, at = start + header.checksum_offset;
        if (start >= frame.size() || at + 2 > frame.size())
            return false;
        const std::uint16_t sum = net::Sum().add(net::Bytes(frame).subspan(start)).checksum();
        net::put16(frame, at, sum ? sum : 0xffff);
    }
    if (frame.size() < net::kLeastFrame)
        frame.resize(net::kLeastFrame);
    const Tick now = std::max(time_.now(), out_free_), own = packet_time(p_.out_per_second);
    counts_.out_busy += static_cast<std::uint64_t>(own);
    out_free_ = now + own;
    ++counts_.out_packets;
    counts_.out_bytes += frame.size();
    ++queue_counts_[pair].out_packets;
    steering_->sent(net::flow_of(frame), pair);
    if (pcap_)
        pcap_->write(frame, lan_.link().leaves(net::Link::kToClients, frame.size(), now), time_.now());
    const std::size_t length = frame.size();
    lan_.transmit(std::move(frame), now);
    out_.push(length, lan_.link().busy_until(net::Link::kToClients));
    return true;
}

void VirtioNet::device_reset() {
    active_pairs_ = 1;
    rss_ = {};
    counts_.dropped[static_cast<unsigned>(Drop::not_ready)] += fifo_frames_;
    fifo_.clear();
    fifo_frames_ = fifo_bytes_ = 0;
    for (auto &frames : steered_)
        frames.clear();
    for (auto &held : held_)
        held.clear();
    blocked_.clear();
    std::fill(sent_.begin(), sent_.end(), Sent{});
    return_due_ = kNever;
}

NetworkReport VirtioNet::report() const {
    const auto &in = lan_.link().counts(net::Link::kToGuest), &out = lan_.link().counts(net::Link::kToClients);
    const CardStats card{
        .in_packets = counts_.in_packets,
        .in_bytes = counts_.in_bytes,
        .out_packets = counts_.out_packets,
        .out_bytes = counts_.out_bytes,
        .in_busy_ns = counts_.in_busy / static_cast<std::uint64_t>(kTicksPerNs),
        .out_busy_ns = counts_.out_busy / static_cast<std::uint64_t>(kTicksPerNs),
        .dropped = counts_.dropped,
        .deepest_fifo_bytes = counts_.deepest_fifo,
        .link_lost = in.lost + out.lost,
        .link_duplicated = in.duplicated + out.duplicated,
        .link_delayed = in.delayed + out.delayed,
    };
    std::map<std::string, std::uint64_t> all;
    CardStats::visit(
        [&all](const std::string &name, const auto &value, const auto &...by_reason) {
            if constexpr (sizeof...(by_reason) == 0)
                all[name] = value;
            else // `value`: the names of the reasons
                for (std::size_t i = 0; i < value.size(); ++i)
                    all[name + "_" + value[i]] = (by_reason[i], ...);
        },
        card);
    for (unsigned pair = 0; pair < pairs_; ++pair) {
        all["queue" + std::to_string(pair) + "_in_packets"] = queue_counts_[pair].in_packets;
        all["queue" + std::to_string(pair) + "_out_packets"] = queue_counts_[pair].out_packets;
        all["queue" + std::to_string(pair) + "_dropped"] = queue_counts_[pair].dropped;
    }
    return {std::move(all), lan_.hosts().reports(), depths()};
}

NetworkDepths VirtioNet::depths() const {
    NetworkDepths d{
        .fifo_frames = fifo_frames_, .fifo_bytes = fifo_bytes_, .out_fifo_frames = out_.frames(), .queues = {}};
    for (unsigned pair = 0; pair < active_pairs_; ++pair)
        d.queues.push_back({steered_[pair].size(), held_[pair].size() + waiting(2 * pair), waiting(2 * pair + 1)});
    return d;
}

void VirtioNet::archive(Archive &a) {
    MOSCOPE_CHECK(std::all_of(steered_.begin(), steered_.end(), [](const auto &frames) { return frames.empty(); }));
    VirtioPci::archive(a);
    a(lan_);
    steering_->archive(a);
    a(rss_, active_pairs_, fifo_, fifo_frames_, fifo_bytes_, in_free_, out_free_, held_, out_, blocked_, sent_,
      return_due_, counts_, queue_counts_);
    if (!a.loading())
        return;
    if (held_.size() != pairs_ || blocked_.size() > pairs_ || sent_.size() != pairs_ ||
        queue_counts_.size() != pairs_ || active_pairs_ < 1 || active_pairs_ > pairs_)
        throw UserError("checkpoint: a network card of another size: expected the file as it was written");
    if (std::any_of(blocked_.begin(), blocked_.end(), [this](unsigned pair) { return pair >= pairs_; }))
        throw UserError("checkpoint: a queue that the network card does not have: expected the file as it was written");
    for (const auto &list : held_)
        for (const Virtqueue::Chain &chain : list)
            for (const Virtqueue::Segment &s : chain.writable)
                if (s.size == 0 || !dma().reaches(PhysAddr(s.at), s.size))
                    throw UserError("checkpoint: a network buffer outside memory: expected the file as it was "
                                    "written");
    set_alarm();
}

namespace {

constexpr unsigned kPciDevice = 4;

const RegisteredDevice registered(160, "virtio-net", [](Devices &d) {
    if (!d.machine.nic)
        return;
    auto &nic =
        d.own<VirtioNet>("nic", *d.machine.nic, d.machine.seed, d.dma(), d.apic_bus, d.queue, d.time, d.on_operations);
    d.pci().add(kPciDevice, 0, nic);
    d.network = [&nic] { return nic.report(); };
});

} // namespace

} // namespace moscope::dev
