// SPDX-License-Identifier: BSD-3-Clause
// What a full system is built from: JSON text "moscope.system/1", made by the front end from the machine description
// and the options of `boot`. Files are read by the engine; the front end has checked that they exist.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/types.hh"
#include "cpu/x86/system/cpuid.hh"
#include "dev/nic/nic_settings.hh"
#include "sim/clock.hh"

namespace moscope {

struct SystemConfig {
    unsigned cores = 1; ///< in use, chip by chip
    unsigned chips = 8; ///< nodes, each with memory
    unsigned cores_per_chip = 6;
    Clock core_clock;
    std::uint64_t memory_per_node = 0;
    std::vector<std::vector<unsigned>> hops; ///< from node (row) to node (column)
    x86::CpuModel cpu;
    std::string kernel, initrd, append, disk; ///< files (empty: none) and the kernel's command line
    bool disk_read_only = false;
    std::optional<dev::NicSettings> nic; ///< none: no network card
    std::uint64_t seed = 1;
    std::vector<std::string> markers;              ///< texts on the console at which a step ends
    bool restore = false;                          ///< a checkpoint will be loaded, so there is no kernel to start
    std::shared_ptr<const nlohmann::json> machine; ///< detailed mode: elaborated description; null: functional only
    std::string library;                           ///< detailed mode: path of the protocol's shared library
    bool attribution = true;                       ///< detailed mode: waiting is attributed to lines
    bool stacks = false;                           ///< detailed mode: samples of the stacks of waiting cores
    std::string transactions;                      ///< detailed mode: file for every transaction (empty: none)
    std::optional<Tick> watchdog; ///< detailed mode: a request older than this is lost; none: the usual limit
    unsigned threads = 0; ///< detailed mode: host threads that run chips side by side; 0: one queue for all chips
    bool threads_if_possible = false; ///< one queue, and no UserError, if the chips cannot be separated
    bool zero_lookahead = false;      ///< detailed mode: cores never run ahead (for comparison)
    std::string description;          ///< kept in checkpoints: all but files, command line, markers and `detailed`

    /// APIC identifier of a core: eight per chip, as the family lays them out.
    unsigned apic_id(unsigned core) const { return core / cores_per_chip * 8 + core % cores_per_chip; }
    unsigned node_of(unsigned core) const { return core / cores_per_chip; }
    std::uint64_t memory() const { return memory_per_node * chips; }
};

/// UserError naming the key if the text is not a configuration.
SystemConfig parse_system_config(const std::string &json_text);

/// Whether a checkpoint of this description fits the machine: all but `info`, which only tells people where it comes from.
bool same_machine(const std::string &description, const std::string &other);

} // namespace moscope
