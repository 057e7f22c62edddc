// SPDX-License-Identifier: BSD-3-Clause
// A whole machine that boots an operating system: cores, memory on all nodes, the platform's devices and firmware
// tables, a kernel loaded into memory, the serial console. It runs in functional mode (board/functional.hh) or detailed
// mode (board/detailed.hh), in steps of host time, so that its caller can serve a terminal in between.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attribution/attribution_rows.hh"
#include "board/functional.hh"
#include "board/system_config.hh"
#include "dev/pci/pci.hh"

namespace moscope {

class FullSystem {
  public:
    explicit FullSystem(const std::string &config_json);
    ~FullSystem();

    /// How a step ended.
    struct Step {
        std::string state = "running"; ///< running, time, poweroff, reset, exit, marker, triple_fault, hang, unmodelled
        std::string detail;            ///< for people; for a marker, its name
        int status = 0;                ///< exit: the value that the guest gave
    };
    /// Runs for about so many milliseconds of host time, or until something ends the run.
    Step step(unsigned host_ms);

    /// Enters detailed mode; between steps only. UserError if the configuration names no machine for it.
    void enter_detailed();
    /// False: it takes longer than about so many milliseconds of host time, and has to be called again.
    bool leave_detailed(unsigned host_ms);
    /// Starts the counts of detailed mode anew.
    void reset_stats();
    /// From now on, each miss of detailed mode takes a snapshot of what the guest's kernel says about the line's page.
    /// `format`: JSON text that says where the kernel keeps this (attribution/page_watch.hh).
    void watch_pages(const std::string &format);
    /// Before detailed mode begins: sets the lines that it treats differently (mem/what_if.hh), as JSON text
    /// (board/otherwise.hh). UserError while it is active, or if there is none.
    void what_if(const std::string &lines);
    /// Before a checkpoint is restored, or before the first step: sets the places in programs that are counted, or that
    /// end a step with a marker, as JSON text (board/program_probes.hh).
    void watch_code(const std::string &places);
    /// JSON text, one entry for each of these places: {"calls": number, "reached": whether a core came there}.
    std::string code_report() const;
    /// The heap of programs (board/allocations.hh): packed Pieces, and the sites of their allocations.
    std::pair<std::string, std::string> allocations() const;
    /// JSON text: ticks of each core by what they were spent on, and the machine's statistics (docs/statistics.md).
    std::string stats_json();
    /// All lines, pairs and transfers, up to the last stats_json().
    AttributionRows attribution_rows() const;
    /// Remembers the moment of the last stats_json(), for kept_attribution_rows().
    void keep_attribution();
    AttributionRows kept_attribution_rows() const;
    /// From now on, records the processor time of each epoch of detailed mode. UserError unless each chip is a logical process.
    void record_epochs();
    /// The rows so far (sim/parallel/epoch_record.hh).
    std::string epoch_record() const;
    /// Consecutive transactions of the lines with the most of them: packed TransactionRecords.
    std::string episodes() const;
    /// Samples of the stacks of waiting cores (attribution/stack_samples.hh); empty if they are not taken.
    std::string stacks() const;
    /// Takes no more samples, and forgets those taken.
    void stop_stacks();
    /// LoadRows (attribution/loads_in_flight.hh); empty for cores that do not overlap their misses.
    std::string loads() const;
    /// As step, but until the simulated time `until` at the latest (state "time"); functional mode stops about a
    /// microsecond beyond.
    Step step_until(Tick until, unsigned host_ms);

    /// What the guest has written to its console since the last call.
    std::string console_output();
    void console_input(std::string_view bytes);

    std::uint64_t instructions() const;
    std::vector<std::uint64_t> instructions_by_core() const;
    std::uint64_t pauses() const;
    /// Instructions that cores retired in spin loops with PAUSE (cpu/x86/exec/system/machine.cc).
    std::uint64_t spun() const;
    /// Operations of the workload: reported by m5 workend with a work item other than 0, reported by load generators,
    /// or counted at probes.
    std::uint64_t operations() const;
    /// Model-specific registers that the guest used and the model lacks (it got #GP), with the number of uses.
    const std::map<std::uint32_t, std::uint64_t> &unknown_msrs() const;
    /// What the network card and its clients counted; empty without a card.
    dev::NetworkReport network() const;
    std::vector<dev::RingArea> rings() const;
    Tick now() const;
    /// Bytes of the guest's 4-KiB pages to which the host has given memory: read, written, or loaded from a checkpoint.
    std::uint64_t touched_bytes() const;

    /// The whole machine, in functional mode. UserError: it cannot be written, or detailed mode is on.
    void save(const std::string &path) const;
    void restore(const std::string &path);

    /// Bytes of guest memory: by physical address, or by a virtual one in an address space (CR3). The result ends
    /// before the first byte that is not mapped or not DRAM.
    std::string read_physical(Addr address, std::uint64_t size) const;
    std::string read_virtual(Addr cr3, Addr address, std::uint64_t size) const;
    /// Physical address of a byte of DRAM, given by its DRAM address, as attribution has them.
    Addr physical_of(std::uint64_t dram) const;

    /// Registers of the core that ended the run (or the first), with the bytes at its instruction pointer.
    std::string registers_text() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace moscope
