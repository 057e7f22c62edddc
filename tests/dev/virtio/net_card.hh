// SPDX-License-Identifier: BSD-3-Clause
// A network card for tests, with a driver that sets up its queues and sends and receives frames.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "dev/virtio/virtio_driver.hh"
#include "dev/virtio/virtio_net.hh"

namespace moscope::dev::test {

inline constexpr std::uint64_t kPlain = VirtioPci::kVersion1;
inline constexpr std::uint64_t kUsual = kPlain | VirtioNet::kChecksum | VirtioNet::kGuestChecksum |
                                        VirtioNet::kMergeBuffers | VirtioNet::kControl | VirtioNet::kMultiQueue |
                                        VirtioNet::kRss;
inline constexpr net::Ip kGuest = 0x0a010001;
inline constexpr net::Mac kGuestMac = {2, 0, 0x0a, 1, 0, 1};
inline constexpr unsigned kHeader = 12, kPairs = 4, kSize = 16, kControl = 2 * kPairs;

inline NicSettings settings() {
    NicSettings s;
    s.queues = kPairs;
    s.steering = "fixed-port";
    s.first_port = 1000;
    s.link_latency_fs = 1000;
    s.sent_together = 1;
    return s;
}

/// Functional transfers that call `reads` before each read, if it is set.
struct WatchedDma final : Dma {
    PhysMapDma &direct;
    std::function<void(PhysAddr from)> reads;

    explicit WatchedDma(PhysMapDma &d) : direct(d) {}
    bool read(PhysAddr from, std::span<std::uint8_t> to) override {
        if (reads)
            reads(from);
        return direct.read(from, to);
    }
    bool write(PhysAddr to, std::span<const std::uint8_t> from) override { return direct.write(to, from); }
    bool peek(PhysAddr from, std::span<std::uint8_t> to) const override { return direct.peek(from, to); }
    bool reaches(PhysAddr from, std::uint64_t size) const override { return direct.reaches(from, size); }
};

/// A card with rings for all its queues.
struct Card {
    GuestBoard b;
    WatchedDma dma{b.dma};
    VirtioNet device;
    Driver d{b, device};
    std::uint16_t available[kControl + 1] = {};

    explicit Card(const NicSettings &s = settings(), std::uint64_t features = kUsual)
        : device("nic", s, 1, dma, b.messages, b.queue, b.time, [](std::uint64_t) {}) {
        start(features);
    }
    static Addr ring(unsigned queue, unsigned part) { return 0x10000 + 0x3000 * queue + 0x1000 * part; }
    static Addr buffer(unsigned queue, unsigned i) { return 0x100000 + 0x10000 * queue + 0x800 * i; }

    void start(std::uint64_t features) {
        d.negotiate(features);
        d.config(d.msix_capability + 2, 0x8000, 2);
        const Addr table = d.bar() + (d.config(d.msix_capability + 4) & ~7u);
        for (unsigned q = 0; q <= kControl; ++q) {
            available[q] = 0;
            b.put<std::uint32_t>(ring(q, 1), 0);
            b.put<std::uint32_t>(ring(q, 2), 0);
            d.common(0x16, q, 2);
            d.common(0x18, kSize, 2);
            for (unsigned part = 0; part < 3; ++part)
                d.common(0x20 + 8 * part, ring(q, part), 8);
            b.memory.write(0, table + 16 * (q + 1), 0xfee00000, 4);
            b.memory.write(0, table + 16 * (q + 1) + 8, 0x40 + q, 4);
            b.memory.write(0, table + 16 * (q + 1) + 12, 0, 4);
            d.common(0x1a, q + 1, 2);
            d.common(0x1c, 1, 2);
        }
        d.common(0x14, 15, 1);
    }
    void add(unsigned queue, const std::vector<Driver::Buffer> &buffers, unsigned first = 0) {
        d.add(buffers, first, ring(queue, 0));
        b.put<std::uint16_t>(ring(queue, 1) + 4 + 2 * (available[queue] % kSize), static_cast<std::uint16_t>(first));
        b.put<std::uint16_t>(ring(queue, 1) + 2, ++available[queue]);
        d.notify(queue);
    }
    std::uint16_t used(unsigned queue) { return b.get<std::uint16_t>(ring(queue, 2) + 2); }
    std::uint32_t used_bytes(unsigned queue, unsigned i) {
        return b.get<std::uint32_t>(ring(queue, 2) + 4 + 8 * i + 4);
    }

    void offer(unsigned pair, unsigned buffers, std::uint32_t size = 0x800) {
        for (unsigned i = 0; i < buffers; ++i)
            add(2 * pair, {{buffer(2 * pair, i), size, true}}, i);
    }
    /// `start` and `offset`: where the checksum is left to the device.
    void send(unsigned pair, const net::Frame &f, unsigned slot = 0, bool offload = false) {
        const unsigned queue = 2 * pair + 1;
        const Addr at = buffer(queue, slot);
        std::uint8_t header[kHeader] = {};
        if (offload) {
            header[0] = 1;
            header[6] = net::kIpPayload;
            header[8] = 6; // of UDP
        }
        std::memcpy(b.map.host(PhysAddr(at)), header, kHeader);
        std::memcpy(b.map.host(PhysAddr(at + kHeader)), f.data(), f.size());
        add(queue, {{at, kHeader, false}, {at + kHeader, static_cast<std::uint32_t>(f.size()), false}}, 2 * slot);
    }
    net::Frame received(unsigned queue, unsigned slot) {
        net::Frame f(used_bytes(queue, slot) - kHeader);
        for (std::size_t i = 0; i < f.size(); ++i)
            f[i] = b.get<std::uint8_t>(buffer(queue, slot) + kHeader + i);
        return f;
    }
    std::uint8_t command(std::vector<std::uint8_t> bytes) {
        const Addr at = buffer(kControl, 0), answer = buffer(kControl, 1);
        std::memcpy(b.map.host(PhysAddr(at)), bytes.data(), bytes.size());
        b.put<std::uint8_t>(answer, 0xee);
        add(kControl, {{at, static_cast<std::uint32_t>(bytes.size()), false}, {answer, 1, true}});
        return b.get<std::uint8_t>(answer);
    }
    void use_all_pairs() { EXPECT_EQ(command({4, 0, kPairs, 0}), 0); }
};

/// From a port of the guest to the echo service of a host.
inline net::Frame echo(std::uint16_t port, std::size_t bytes = 40) {
    std::vector<std::uint8_t> payload(bytes, static_cast<std::uint8_t>(port));
    net::Frame f =
        net::udp_frame(net::mac_of(net::Services::host(0)), {kGuest, port}, {net::Services::host(0), 7}, payload);
    std::copy(kGuestMac.begin(), kGuestMac.end(), f.begin() + 6);
    return f;
}

} // namespace moscope::dev::test
