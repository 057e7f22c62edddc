// SPDX-License-Identifier: BSD-3-Clause
// The northbridge of a family 10h processor as software sees it: device 18h + node of bus 0, functions 0 to 4 (1022h,
// 1200h to 1204h; AMD 31116, BIOS and Kernel Developer's Guide, chapter 4): HyperTransport routing and links, address
// map, DRAM controller, miscellaneous control, link control. Registers hold what firmware would have programmed for
// this machine and describe it; the memory system does not read them back, so those that steer it are read-only here.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "dev/firmware/firmware.hh"
#include "dev/pci/pci_host.hh"

namespace moscope::dev {

class Northbridge {
  public:
    /// The whole machine; every node's northbridge knows all of it.
    struct Machine {
        unsigned nodes = 1;
        unsigned cores = 1;                               ///< enabled cores of all nodes
        unsigned cores_per_node = 6;                      ///< cores that a chip has, enabled or not
        std::vector<Firmware::Memory> memory;             ///< DRAM as cores address it
        Addr hole = Addr{1} << 32;                        ///< start of the hole below 4 GiB (mem/phys_map.hh)
        std::vector<std::pair<unsigned, unsigned>> links; ///< coherent links between nodes
        unsigned link_frequency = 6;                      ///< code of F0x88[11:8]: 6 is 1.0 GHz
        std::uint32_t signature = 0x00100f80;             ///< CPUID 1 EAX
    };

    /// Node 0 has the link to the I/O hub. Adds its five functions to `host`.
    Northbridge(unsigned node, const Machine &, PciHost &host);

    static constexpr unsigned kLinks = 4;

  private:
    class Function;
    friend class Function;
    std::vector<std::unique_ptr<PciFunction>> functions_;
};

} // namespace moscope::dev
