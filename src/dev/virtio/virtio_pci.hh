// SPDX-License-Identifier: BSD-3-Clause
// A virtio device on PCI (Virtual I/O Device specification 1.1, section 4.1, without the legacy interface): common,
// notification, interrupt status and device configuration in one 64-bit base address range, MSI-X with INTx to fall
// back on, feature negotiation and device status (chapter 3). A device type derives from it and serves its queues.
//
// If a driver breaks the rules of a queue, the device sets DEVICE_NEEDS_RESET in the device status and does nothing
// else. A reset while the device moves bytes takes effect at the end of that piece of work; no byte moves after it.
// Until then the status reads as before, and drivers have to wait for it to change (section 3.1.1).
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "dev/dma.hh"
#include "dev/interrupts/msix.hh"
#include "dev/pci/pci.hh"
#include "dev/virtio/virtqueue.hh"

namespace moscope::dev {

class VirtioPci : public PciFunction {
  public:
    struct Type {
        std::uint16_t id = 0; ///< section 5: 1 network, 2 block, 4 entropy
        std::uint32_t class_code = 0;
        std::uint64_t features = 0; ///< of the type; those of queues and version 1 are added
        unsigned queues = 1;
        std::uint16_t queue_size = 256;
    };
    enum Status : std::uint8_t {
        kAcknowledge = 1,
        kDriver = 2,
        kDriverOk = 4,
        kFeaturesOk = 8,
        kNeedsReset = 64,
        kFailed = 128
    };
    static constexpr std::uint64_t kIndirect = 1ull << 28, kEventIndex = 1ull << 29, kVersion1 = 1ull << 32;

    std::uint64_t read_bar(Requester, unsigned bar, Addr offset, unsigned size) override;
    void write_bar(Requester, unsigned bar, Addr offset, std::uint64_t value, unsigned size) override;

    std::uint8_t status() const { return status_; }
    /// Why the device needs a reset; null: it does not.
    const char *fault() const { return fault_; }

    void reset() override;
    void archive(Archive &) override;
    std::vector<RingArea> rings() const override;

  protected:
    VirtioPci(std::string name, const Type &, Dma &, MsiTarget &);

    /// The driver may have made chains available in `queue`; called only while the device is live, as a piece of work.
    virtual void notified(unsigned queue) = 0;
    /// The driver reset the device: chains in flight are dropped.
    virtual void device_reset() = 0;

    /// Runs `piece`, which uses the queues, when its turn in the lane comes (Dma::perform).
    void work(unsigned lane, std::function<void()> piece);
    /// The lane in which the work of a queue runs: pieces of one lane run one after another.
    virtual unsigned lane_of(unsigned) const { return 0; }
    /// Whether the driver waits for a reset; the device then serves no queue.
    bool resetting() const { return resetting_; }
    /// Whether the driver lets the device read and write its queues.
    bool live() const { return (status_ & kDriverOk) && !(status_ & kNeedsReset) && bus_master() && !resetting_; }
    bool driver_has(std::uint64_t feature) const { return driver_features_ & feature; }
    /// Takes the next chain. False: there is none, the device is not live, or the queue is broken, which calls fail().
    bool take(unsigned queue, Virtqueue::Chain &);
    /// Takes up to `most` chains at once; returns the number taken.
    unsigned take(unsigned queue, std::deque<Virtqueue::Chain> &, unsigned most);
    /// Returns a chain to the driver, with an interrupt if the driver wants one.
    void give_back(unsigned queue, std::uint16_t head, std::uint32_t bytes) {
        put_back(queue, head, bytes);
        signal(queue);
    }
    /// The same in two steps: one interrupt, if the driver wants one, for all chains that were put back.
    void put_back(unsigned queue, std::uint16_t head, std::uint32_t bytes) {
        const Virtqueue::Used used{head, bytes};
        put_back(queue, {&used, 1});
    }
    void put_back(unsigned queue, std::span<const Virtqueue::Used>);
    void signal(unsigned queue);
    /// Number of chains that the driver has made available and the device has not taken.
    unsigned waiting(unsigned queue) const { return queues_[queue].ring.waiting(dma_); }
    /// The driver broke a rule: the device needs a reset. `why` is a literal.
    void fail(const char *why);
    void set_device_config(std::vector<std::uint8_t> bytes) { device_config_ = std::move(bytes); }
    Dma &dma() { return dma_; }

  private:
    struct Queue {
        Virtqueue ring;
        std::uint16_t vector = kNoVector;
        void archive(Archive &a) { a(ring, vector); }
    };
    static constexpr std::uint16_t kNoVector = 0xffff;

    void begin_reset();
    void virtio_reset();
    void write_common(Addr offset, std::uint32_t value, unsigned size);
    void write_status(std::uint8_t);
    void notify(unsigned queue);
    void interrupt(std::uint8_t cause, std::uint16_t vector);
    void update_intx() { set_intx(isr_ != 0 && !msix_.enabled()); }
    void config_reading(unsigned offset, unsigned size) override;
    void config_written(unsigned offset, unsigned size) override;
    bool indirect_access_overlaps(unsigned offset, unsigned size) const;

    Type type_;
    Dma &dma_;
    Msix msix_;
    unsigned msix_capability_ = 0, access_capability_ = 0;
    std::vector<Queue> queues_;
    std::vector<std::uint8_t> device_config_;
    std::uint64_t features_ = 0, driver_features_ = 0;
    std::uint32_t feature_select_ = 0, driver_feature_select_ = 0;
    std::uint16_t config_vector_ = kNoVector, queue_select_ = 0;
    std::uint8_t status_ = 0, isr_ = 0;
    const char *fault_ = nullptr;
    unsigned working_ = 0;   ///< pieces of work under way
    bool resetting_ = false; ///< the driver asked for a reset while work was under way
};

} // namespace moscope::dev
