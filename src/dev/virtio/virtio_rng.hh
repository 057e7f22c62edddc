// SPDX-License-Identifier: BSD-3-Clause
// A virtio entropy device (Virtual I/O Device specification 1.1, section 5.4). Its bytes come from the run's seed, so
// that a run can be repeated. It adds no latency to its transfers.
#pragma once

#include "base/rng.hh"
#include "dev/virtio/virtio_pci.hh"

namespace moscope::dev {

class VirtioRng final : public VirtioPci {
  public:
    /// Most bytes that one request gets.
    static constexpr std::uint64_t kMost = 64 * 1024;

    VirtioRng(std::string name, std::uint64_t seed, Dma &dma, MsiTarget &msi)
        : VirtioPci(std::move(name), {.id = 4, .class_code = 0xff0000}, dma, msi), seed_(seed), rng_(seed) {}

    void reset() override {
        VirtioPci::reset();
        rng_ = Rng(seed_);
    }
    void archive(Archive &a) override {
        VirtioPci::archive(a);
        a(rng_);
    }

  private:
    void notified(unsigned queue) override {
        Virtqueue::Chain chain;
        while (take(queue, chain)) {
            const std::uint64_t bytes = std::min(chain.writable_bytes(), kMost);
            std::vector<std::uint8_t> random(bytes);
            for (std::uint64_t i = 0; i < bytes; ++i)
                random[i] = static_cast<std::uint8_t>(rng_.below(256));
            SegmentCursor(this->dma(), chain.writable).write(random);
            give_back(queue, chain.head, static_cast<std::uint32_t>(bytes));
        }
    }
    void device_reset() override {}

    std::uint64_t seed_;
    Rng rng_;
};

} // namespace moscope::dev
