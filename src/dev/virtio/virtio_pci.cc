// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/virtio_pci.hh"

#include <cstring>

namespace moscope::dev {

namespace {

// Offsets of the areas in base address range 0, a page each.
constexpr unsigned kBar = 0;
constexpr std::uint64_t kBarBytes = 0x8000;
constexpr Addr kCommon = 0, kIsr = 0x1000, kDeviceConfig = 0x2000, kNotify = 0x3000, kMsixTable = 0x4000,
               kMsixPending = 0x5000;
constexpr unsigned kNotifyMultiplier = 4;
constexpr std::uint8_t kVendorCapability = 9;

// Layout of the common configuration registers (section 4.1.4.3).
struct Common {
    std::uint32_t device_feature_select, device_feature, driver_feature_select, driver_feature;
    std::uint16_t msix_config, num_queues;
    std::uint8_t device_status, config_generation;
    std::uint16_t queue_select, queue_size, queue_msix_vector, queue_enable, queue_notify_off;
    std::uint64_t queue_area[3];
};
static_assert(sizeof(Common) == 0x38);

std::uint32_t half(std::uint64_t features, std::uint32_t select) {
    return select < 2 ? static_cast<std::uint32_t>(features >> (32 * select)) : 0;
}

std::vector<std::uint8_t> capability(std::uint8_t type, std::uint32_t offset, std::uint32_t length,
                                     unsigned extra = 0) {
    std::vector<std::uint8_t> c(14 + extra); // begins at the third byte of the capability
    c[0] = static_cast<std::uint8_t>(2 + c.size());
    c[1] = type;
    c[2] = kBar;
    for (unsigned i = 0; i < 4; ++i) {
        c[6 + i] = static_cast<std::uint8_t>(offset >> (8 * i));
        c[10 + i] = static_cast<std::uint8_t>(length >> (8 * i));
    }
    return c;
}

std::uint64_t slice(const void *from, std::size_t bytes, Addr offset, unsigned size) {
    std::uint64_t value = 0;
    if (offset < bytes)
        std::memcpy(&value, static_cast<const std::uint8_t *>(from) + offset,
                    std::min<std::uint64_t>(size, bytes - offset));
    return value;
}

} // namespace

VirtioPci::VirtioPci(std::string name, const Type &type, Dma &dma, MsiTarget &target)
    : PciFunction(std::move(name), {.vendor = 0x1af4,
                                    .device = static_cast<std::uint16_t>(0x1040 + type.id),
                                    .class_code = type.class_code,
                                    .revision = 1,
                                    .subsystem_vendor = 0x1af4,
                                    .subsystem = 0x1100}),
      type_(type),
      dma_(dma),
      msix_(type.queues + 1, target),
      features_(type.features | kIndirect | kEventIndex | kVersion1) {
    for (unsigned i = 0; i < type.queues; ++i)
        queues_.push_back({Virtqueue(type.queue_size)});
    use_intx();
    add_bar(kBar, kBarBytes, true);
    add_capability(kVendorCapability, capability(1, kCommon, sizeof(Common)));
    auto notify = capability(2, kNotify, kNotifyMultiplier * type.queues, 4);
    notify[14] = kNotifyMultiplier;
    add_capability(kVendorCapability, notify);
    add_capability(kVendorCapability, capability(3, kIsr, 4));
    add_capability(kVendorCapability, capability(4, kDeviceConfig, 0x1000));
    // Access to the range through configuration space: number of the range, offset, length and four bytes of data.
    access_capability_ = add_capability(kVendorCapability, capability(5, 0, 0, 4));
    set8(access_capability_ + 4, 0, 0xff);
    for (const unsigned at : {8u, 12u, 16u})
        set32(access_capability_ + at, 0, ~0u);
    msix_capability_ = add_capability(Msix::kCapability, std::vector<std::uint8_t>(10));
    set16(msix_capability_ + 2, static_cast<std::uint16_t>(msix_.vectors() - 1), Msix::kEnable | Msix::kMaskAll);
    set32(msix_capability_ + 4, kMsixTable | kBar);
    set32(msix_capability_ + 8, kMsixPending | kBar);
}

// --- registers ----------------------------------------------------------------------------------------------------

std::uint64_t VirtioPci::read_bar(Requester, unsigned, Addr offset, unsigned size) {
    const Addr in_page = offset & 0xfff;
    switch (offset & ~Addr{0xfff}) {
    case kCommon: {
        Common c{};
        c.device_feature_select = feature_select_;
        c.device_feature = half(features_, feature_select_);
        c.driver_feature_select = driver_feature_select_;
        c.driver_feature = half(driver_features_, driver_feature_select_);
        c.msix_config = config_vector_;
        c.num_queues = static_cast<std::uint16_t>(queues_.size());
        c.device_status = status_;
        c.queue_select = queue_select_;
        c.queue_msix_vector = kNoVector;
        if (queue_select_ < queues_.size()) {
            const Queue &q = queues_[queue_select_];
            c.queue_size = q.ring.size();
            c.queue_msix_vector = q.vector;
            c.queue_enable = q.ring.enabled();
            c.queue_notify_off = queue_select_;
            for (unsigned i = 0; i < 3; ++i)
                c.queue_area[i] = q.ring.area(i);
        }
        return slice(&c, sizeof c, in_page, size);
    }
    case kIsr: {
        if (in_page != 0)
            return 0;
        const std::uint8_t cause = isr_;
        isr_ = 0; // reading acknowledges
        update_intx();
        return cause;
    }
    case kDeviceConfig: return slice(device_config_.data(), device_config_.size(), in_page, size);
    case kMsixTable: return msix_.read_table(in_page, size);
    case kMsixPending: return msix_.read_pending(in_page, size);
    default: return 0;
    }
}

void VirtioPci::write_bar(Requester, unsigned, Addr offset, std::uint64_t value, unsigned size) {
    const Addr in_page = offset & 0xfff;
    switch (offset & ~Addr{0xfff}) {
    case kCommon:
        if (size == 8) { // two halves, as the areas of a queue are defined
            write_common(in_page, static_cast<std::uint32_t>(value), 4);
            write_common(in_page + 4, static_cast<std::uint32_t>(value >> 32), 4);
        } else {
            write_common(in_page, static_cast<std::uint32_t>(value), size);
        }
        break;
    case kNotify: notify(static_cast<unsigned>(in_page / kNotifyMultiplier)); break;
    case kMsixTable: msix_.write_table(in_page, value, size); break;
    default: break; // the device configuration is read-only
    }
}

// Fields are written whole (section 4.1.3.1); anything else is ignored.
void VirtioPci::write_common(Addr offset, std::uint32_t value, unsigned size) {
    const auto is = [&](std::size_t at, unsigned width) { return offset == at && size == width; };
    const auto known = [&](std::uint32_t v) { return v < msix_.vectors() ? static_cast<std::uint16_t>(v) : kNoVector; };
    if (is(offsetof(Common, device_feature_select), 4))
        feature_select_ = value;
    else if (is(offsetof(Common, driver_feature_select), 4))
        driver_feature_select_ = value;
    else if (is(offsetof(Common, driver_feature), 4)) {
        if (driver_feature_select_ < 2 && !(status_ & kFeaturesOk)) {
            const unsigned shift = 32 * driver_feature_select_;
            driver_features_ = (driver_features_ & ~(0xffffffffull << shift)) | std::uint64_t{value} << shift;
        }
    } else if (is(offsetof(Common, msix_config), 2))
        config_vector_ = known(value);
    else if (is(offsetof(Common, device_status), 1))
        write_status(static_cast<std::uint8_t>(value));
    else if (is(offsetof(Common, queue_select), 2))
        queue_select_ = static_cast<std::uint16_t>(value);
    else if (queue_select_ < queues_.size()) {
        Queue &q = queues_[queue_select_];
        if (is(offsetof(Common, queue_size), 2))
            q.ring.set_size(static_cast<std::uint16_t>(value));
        else if (is(offsetof(Common, queue_msix_vector), 2))
            q.vector = known(value);
        else if (is(offsetof(Common, queue_enable), 2)) {
            if (value == 1 && (status_ & kFeaturesOk))
                q.ring.enable(driver_has(kIndirect), driver_has(kEventIndex));
        } else if (size == 4 && offset % 4 == 0 && offset >= offsetof(Common, queue_area) && offset < sizeof(Common)) {
            const Addr at = offset - offsetof(Common, queue_area);
            q.ring.set_area(static_cast<unsigned>(at / 8), at % 8 != 0, value);
        }
    }
}

void VirtioPci::write_status(std::uint8_t value) {
    if (value == 0)
        begin_reset();
    if (value == 0 || resetting_)
        return;
    const std::uint8_t before = status_;
    if ((value & kFeaturesOk) && !(before & kFeaturesOk) &&
        ((driver_features_ & ~features_) != 0 || !driver_has(kVersion1)))
        value = static_cast<std::uint8_t>(value & ~kFeaturesOk); // the driver reads back that this subset is refused
    // Bits are set one after another and cleared by a reset only.
    status_ = static_cast<std::uint8_t>(before | value);
    status_ = static_cast<std::uint8_t>((status_ & ~kNeedsReset) | (before & kNeedsReset));
    if ((status_ & kDriverOk) && !(before & kDriverOk))
        for (unsigned i = 0; i < queues_.size(); ++i)
            notify(i);
}

void VirtioPci::begin_reset() {
    if (working_)
        resetting_ = true;
    else
        virtio_reset();
}

void VirtioPci::work(unsigned lane, std::function<void()> piece) {
    dma_.perform(lane, [this, piece = std::move(piece)] {
        ++working_;
        piece();
        if (--working_ == 0 && resetting_) {
            resetting_ = false;
            virtio_reset();
        }
    });
}

void VirtioPci::virtio_reset() {
    for (Queue &q : queues_) {
        q.ring.reset();
        q.vector = kNoVector;
    }
    driver_features_ = 0;
    feature_select_ = driver_feature_select_ = 0;
    config_vector_ = kNoVector;
    queue_select_ = 0;
    status_ = isr_ = 0;
    fault_ = nullptr;
    update_intx();
    device_reset();
}

// --- queues -------------------------------------------------------------------------------------------------------

void VirtioPci::notify(unsigned queue) {
    if (queue < queues_.size())
        work(lane_of(queue), [this, queue] {
            if (queues_[queue].ring.enabled() && live())
                notified(queue);
        });
}

bool VirtioPci::take(unsigned queue, Virtqueue::Chain &chain) {
    Virtqueue &ring = queues_[queue].ring;
    if (!live())
        return false;
    if (ring.pop(dma_, chain))
        return true;
    if (ring.fault())
        fail(ring.fault());
    return false;
}

unsigned VirtioPci::take(unsigned queue, std::deque<Virtqueue::Chain> &chains, unsigned most) {
    Virtqueue &ring = queues_[queue].ring;
    const unsigned taken = live() ? ring.pop(dma_, chains, most) : 0;
    if (ring.fault())
        fail(ring.fault());
    return taken;
}

void VirtioPci::put_back(unsigned queue, std::span<const Virtqueue::Used> used) {
    Virtqueue &ring = queues_[queue].ring;
    if (live() && !ring.push(dma_, used) && ring.fault())
        fail(ring.fault());
}

void VirtioPci::signal(unsigned queue) {
    if (!live())
        return;
    Queue &q = queues_[queue];
    if (q.ring.wants_interrupt(dma_))
        interrupt(1, q.vector);
    if (q.ring.fault())
        fail(q.ring.fault());
}

void VirtioPci::fail(const char *why) {
    if (status_ & kNeedsReset)
        return;
    fault_ = why;
    status_ |= kNeedsReset;
    if (status_ & kDriverOk)
        interrupt(2, config_vector_); // a change of configuration
}

void VirtioPci::interrupt(std::uint8_t cause, std::uint16_t vector) {
    if (msix_.enabled()) {
        if (vector != kNoVector && bus_master())
            msix_.fire(vector);
    } else {
        isr_ |= cause;
        update_intx();
    }
}

// --- configuration space ------------------------------------------------------------------------------------------

bool VirtioPci::indirect_access_overlaps(unsigned offset, unsigned size) const {
    const unsigned window = access_capability_ + 16;
    const std::uint32_t at = dword(access_capability_ + 8), length = dword(access_capability_ + 12);
    return offset < window + 4 && offset + size > window && byte(access_capability_ + 4) == kBar &&
           (length == 1 || length == 2 || length == 4) && at % length == 0 && at < kBarBytes;
}

void VirtioPci::config_reading(unsigned offset, unsigned size) {
    if (indirect_access_overlaps(offset, size))
        put32(access_capability_ + 16, static_cast<std::uint32_t>(read_bar(kNoCore, kBar, dword(access_capability_ + 8),
                                                                           dword(access_capability_ + 12))));
}

void VirtioPci::config_written(unsigned offset, unsigned size) {
    if (offset < msix_capability_ + 4 && offset + size > msix_capability_ + 2) {
        msix_.set_control(word(msix_capability_ + 2));
        update_intx();
    }
    if (indirect_access_overlaps(offset, size)) {
        const unsigned length = dword(access_capability_ + 12);
        const std::uint64_t value = dword(access_capability_ + 16) & ((1ull << (8 * length)) - 1);
        write_bar(kNoCore, kBar, dword(access_capability_ + 8), value, length);
    }
}

void VirtioPci::reset() {
    begin_reset();
    msix_.reset();
    PciFunction::reset();
}

std::vector<RingArea> VirtioPci::rings() const {
    static constexpr const char *kParts[] = {"descriptors", "available ring", "used ring"};
    std::vector<RingArea> found;
    for (unsigned n = 0; n < queues_.size(); ++n)
        for (unsigned part = 0; queues_[n].ring.enabled() && part < std::size(kParts); ++part)
            found.push_back({name(), n, kParts[part], queues_[n].ring.area(part), queues_[n].ring.area_bytes(part)});
    return found;
}

void VirtioPci::archive(Archive &a) {
    PciFunction::archive(a);
    a(msix_);
    for (Queue &q : queues_)
        a(q);
    a(driver_features_, feature_select_, driver_feature_select_, config_vector_, queue_select_, status_, isr_);
    std::uint8_t faulty = fault_ != nullptr;
    a(faulty);
    if (a.loading())
        fault_ = faulty ? "broken before the checkpoint" : nullptr;
}

} // namespace moscope::dev
