// SPDX-License-Identifier: BSD-3-Clause
#include "dev/pci/northbridge.hh"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.hh"
#include "dev/devices.hh"

namespace moscope::dev {

namespace {

constexpr unsigned kNoLink = ~0u;

/// Links of each node in the order of the list, and shortest paths over them.
class Fabric {
  public:
    explicit Fabric(const Northbridge::Machine &m)
        : neighbours_(m.nodes), hops_(m.nodes, std::vector<unsigned>(m.nodes, ~0u)) {
        for (const auto &[a, b] : m.links) {
            if (a >= m.nodes || b >= m.nodes || a == b)
                throw UserError("machine: link " + std::to_string(a) + "-" + std::to_string(b) +
                                ": expected two different nodes below " + std::to_string(m.nodes));
            neighbours_[a].push_back(b);
            neighbours_[b].push_back(a);
        }
        for (unsigned to = 0; to < m.nodes; ++to) {
            std::vector<unsigned> front{to};
            hops_[to][to] = 0;
            for (std::size_t i = 0; i < front.size(); ++i)
                for (const unsigned n : neighbours_[front[i]])
                    if (hops_[n][to] == ~0u) {
                        hops_[n][to] = hops_[front[i]][to] + 1;
                        front.push_back(n);
                    }
        }
    }
    const std::vector<unsigned> &neighbours(unsigned node) const { return neighbours_[node]; }
    /// The lowest numbered link of `from` on a shortest path to `to`.
    unsigned link(unsigned from, unsigned to) const {
        for (unsigned l = 0; l < neighbours_[from].size(); ++l)
            if (hops_[neighbours_[from][l]][to] + 1 == hops_[from][to])
                return l;
        return kNoLink;
    }

  private:
    std::vector<std::vector<unsigned>> neighbours_, hops_;
};

} // namespace

class Northbridge::Function final : public PciFunction {
  public:
    Function(unsigned node, unsigned number)
        : PciFunction("northbridge" + std::to_string(node) + "." + std::to_string(number),
                      {.vendor = 0x1022, .device = static_cast<std::uint16_t>(0x1200 + number), .class_code = 0x060000},
                      true),
          number_(number) {
        set16(pci::kCommand, 0); // hardwired
    }

    void links_and_routing(unsigned node, const Machine &m) {
        const Fabric fabric(m);
        const auto &neighbours = fabric.neighbours(node);
        const unsigned io_link = static_cast<unsigned>(neighbours.size()); // the one after the coherent ones, on node 0
        const auto bit = [](unsigned link) { return link == kNoLink ? 0u : 2u << link; };
        for (unsigned other = 0; other < m.nodes; ++other) {
            const unsigned route = other == node ? 1 : bit(fabric.link(node, other));
            unsigned broadcast = 1; // of `other`: to this node, and on to nodes that it reaches through this one
            for (unsigned l = 0; l < neighbours.size(); ++l) {
                const unsigned back = fabric.link(neighbours[l], other);
                if (other != neighbours[l] && back != kNoLink && fabric.neighbours(neighbours[l])[back] == node)
                    broadcast |= bit(l);
            }
            set32(0x40 + 4 * other, broadcast << 18 | route << 9 | route);
        }
        const unsigned cpus = m.cores - 1;
        set32(0x60, node | (m.nodes - 1) << 4 | (cpus & 31) << 16); // southbridge and lock controller: node 0
        set32(0x160, (cpus >> 5) << 16);
        set32(0x64, node == 0 ? io_link << 8 : 0);
        set32(0x68, 1u << 17 | 1u << 18); // APIC identifiers of eight bits
        set8(pci::kCapabilities, 0x80);
        set16(pci::kStatus, pci::kHasCapabilities);
        for (unsigned l = 0; l < kLinks; ++l) {
            const unsigned at = 0x80 + 0x20 * l;
            const bool coherent = l < neighbours.size(), io = node == 0 && l == io_link;
            set32(at, 0x21010008u | (l + 1 < kLinks ? (at + 0x20) << 8 : 0)); // HyperTransport host
            set32(at + 0x04, coherent || io ? 0x11110020 : 0x111100d0);       // 16 bits wide; connected or off
            set32(at + 0x08, m.link_frequency << 8 | 0x60);
            set32(at + 0x18, coherent || io ? 3u | (io ? 4u : 0u) : 0u);
        }
    }

    void address_map(const Machine &m, const PciHost::Parameters &host) {
        const unsigned io_link = static_cast<unsigned>(Fabric(m).neighbours(0).size());
        for (unsigned n = 0; n < m.nodes; ++n) {
            const auto [base, end] = range_of(n, m);
            if (end == 0)
                continue;
            set32(0x40 + 8 * n, static_cast<std::uint32_t>(base >> 24) << 16 | 3); // read and write
            set32(0x44 + 8 * n, static_cast<std::uint32_t>((end - 1) >> 24) << 16 | n);
            set32(0x140 + 8 * n, static_cast<std::uint32_t>(base >> 40));
            set32(0x144 + 8 * n, static_cast<std::uint32_t>((end - 1) >> 40));
        }
        unsigned window = 0;
        const auto mmio = [&](Addr base, std::uint64_t size) {
            if (size == 0 || (base + size - 1) >> 40)
                return;
            set32(0x80 + 8 * window, static_cast<std::uint32_t>(base >> 16) << 8 | 3);
            set32(0x84 + 8 * window, static_cast<std::uint32_t>((base + size - 1) >> 16) << 8 | io_link << 4);
            ++window;
        };
        mmio(host.window, host.window_size);
        mmio(host.high_window, host.high_window_size);
        set32(0xc0, 3);
        set32(0xc4, 0xf000 | io_link << 4); // all ports
        set32(0xe0, 3 | io_link << 8 | static_cast<std::uint32_t>(host.last_bus) << 24);
    }

    void own_dram(unsigned node, const Machine &m) {
        const auto [base, end] = range_of(node, m);
        if (end == 0)
            return;
        set32(0x120, static_cast<std::uint32_t>(base >> 27));
        set32(0x124, static_cast<std::uint32_t>((end - 1) >> 27));
        constexpr Addr k4G = Addr{1} << 32;
        if (base < m.hole && end > k4G) // hoisted: DRAM that the hole hides appears above 4 GiB
            set32(0xf0, static_cast<std::uint32_t>(m.hole >> 24 << 24 | (k4G - m.hole) >> 23 << 7 | 3));
    }

    void miscellaneous(const Machine &m) {
        set32(0x88, 0, ~0u); // NB_CFG, also MSR C001001Fh: bit 46 extends the register number at CF8h
        set32(0x8c, 0, ~0u);
        for (const unsigned gart : {0x90u, 0x94u, 0x98u, 0x9cu}) // aperture off: stored, translates nothing
            set32(gart, 0, ~0u);
        const unsigned more = m.cores_per_node - 1; // CmpCap
        set32(0xe8, 1u << 0 | 1u << 1 | 1u << 3 | 1u << 4 | 1u << 8 | (more & 3) << 12 | (more >> 2 & 1) << 15);
        set32(0xfc, m.signature);
        for (const unsigned index : {0x1bcu, 0x1c0u}) // L3 cache index disable
            set32(index, 0, 0xc0000fff);
    }

  private:
    static std::pair<Addr, Addr> range_of(unsigned node, const Machine &m) {
        Addr base = ~Addr{0}, end = 0;
        for (const auto &r : m.memory)
            if (r.node == node && r.size != 0) {
                base = std::min(base, r.base);
                end = std::max(end, r.base + r.size);
            }
        return {base, end};
    }

    void config_written(unsigned offset, unsigned size) override {
        if (number_ == 3 && offset < 0xa0 && offset + size > 0x9c)
            put8(0x9c, byte(0x9c) & 0xfe); // an invalidation of the GART cache ends at once
    }

    unsigned number_;
};

Northbridge::Northbridge(unsigned node, const Machine &m, PciHost &host) {
    if (m.nodes > 8 || node >= m.nodes)
        throw UserError("machine: " + std::to_string(m.nodes) +
                        " nodes: expected at most 8, as northbridges of the family can "
                        "number");
    std::array<Function *, 5> f{};
    for (unsigned i = 0; i < f.size(); ++i) {
        auto made = std::make_unique<Function>(node, i);
        f[i] = made.get();
        functions_.push_back(std::move(made));
    }
    f[0]->links_and_routing(node, m);
    f[1]->address_map(m, host.parameters());
    f[1]->own_dram(node, m);
    f[3]->miscellaneous(m);
    for (unsigned i = 0; i < f.size(); ++i)
        host.add(0x18 + node, i, *f[i]);
}

namespace {

const RegisteredDevice registered(130, "northbridge", [](Devices &d) {
    Northbridge::Machine m;
    m.nodes = d.machine.chips;
    m.cores = static_cast<unsigned>(d.machine.cores.size());
    m.cores_per_node = d.machine.cores_per_chip;
    m.memory = d.machine.memory;
    m.hole = d.machine.hole;
    for (unsigned a = 0; a < m.nodes; ++a)
        for (unsigned b = a + 1; b < m.nodes; ++b)
            if (d.machine.hops[a][b] == 1)
                m.links.emplace_back(a, b);
    for (unsigned node = 0; node < m.nodes; ++node)
        d.own<Northbridge>(node, m, d.pci());
});

} // namespace

} // namespace moscope::dev
