// SPDX-License-Identifier: BSD-3-Clause
// moscope._engine.System: a full system (board/full_system.hh). It takes its configuration as JSON text, runs in steps
// of host time, and passes the console on as bytes. The interpreter's lock is released while the machine runs.
#include <cstdint>
#include <memory>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "board/checkpoint.hh"
#include "board/full_system.hh"
#include "board/guest_limits.hh"
#include "board/isa_report.hh"
#include "mem/ruby/runtime/prelude_enums.hh"
#include "python/bindings/engine_lock.hh"

namespace nb = nanobind;
using moscope::FullSystem;

namespace {

nb::dict step_dict(const FullSystem::Step &step) {
    nb::dict d;
    d["state"] = step.state;
    d["detail"] = step.detail;
    d["status"] = step.status;
    return d;
}

nb::bytes bytes_of(const std::string &s) { return nb::bytes(s.data(), s.size()); }

nb::dict counts(const FullSystem &s) {
    nb::dict d;
    d["instructions"] = s.instructions();
    d["pauses"] = s.pauses();
    d["spun"] = s.spun();
    d["ticks"] = s.now();
    d["operations"] = s.operations();
    return d;
}

/// What the network card counts and holds; cheaper than all statistics.
nb::dict network(const FullSystem &s) {
    const auto report = s.network();
    nb::dict d, counts, depths;
    for (const auto &[name, count] : report.counts)
        counts[name.c_str()] = count;
    nb::list queues;
    for (const auto &q : report.depths.queues)
        queues.append(nb::make_tuple(q.in_waiting, q.in_buffers, q.out_waiting));
    depths["fifo_frames"] = report.depths.fifo_frames;
    depths["fifo_bytes"] = report.depths.fifo_bytes;
    depths["out_fifo_frames"] = report.depths.out_fifo_frames;
    depths["queues"] = queues;
    d["counts"] = counts;
    d["depths"] = depths;
    return d;
}

nb::dict stats(const FullSystem &s) {
    nb::dict d;
    d["instructions"] = s.instructions();
    d["per_core"] = s.instructions_by_core();
    d["pauses"] = s.pauses();
    nb::dict unknown;
    for (const auto &[number, count] : s.unknown_msrs())
        unknown[nb::int_(number)] = count;
    d["unknown_msrs"] = unknown;
    d["ticks"] = s.now();
    d["operations"] = s.operations();
    d["touched_bytes"] = s.touched_bytes();
    if (const auto network = s.network(); !network.counts.empty()) {
        nb::dict counts, drivers;
        for (const auto &[name, count] : network.counts)
            counts[name.c_str()] = count;
        for (const auto &[name, text] : network.drivers)
            drivers[name.c_str()] = text;
        d["network"] = counts;
        d["network_drivers"] = drivers;
    }
    return d;
}

nb::list rings(const FullSystem &s) {
    nb::list found;
    for (const auto &area : s.rings())
        found.append(nb::make_tuple(area.device, area.queue, area.part, area.first, area.bytes));
    return found;
}

void bind_running(nb::class_<FullSystem> &system) {
    system
        .def(
            "step",
            [](FullSystem &s, unsigned host_ms) {
                FullSystem::Step step;
                {
                    const Simulating now;
                    step = s.step(host_ms);
                }
                return step_dict(step);
            },
            nb::arg("host_ms"), "Runs for about so many milliseconds of host time: {state, detail, status}.")
        .def(
            "step_until",
            [](FullSystem &s, moscope::Tick until, unsigned host_ms) {
                FullSystem::Step step;
                {
                    const Simulating now;
                    step = s.step_until(until, host_ms);
                }
                return step_dict(step);
            },
            nb::arg("until"), nb::arg("host_ms"), "As step, to a simulated time at most (state time).")
        .def("enter_detailed", &FullSystem::enter_detailed, nb::call_guard<Simulating>())
        .def("leave_detailed", &FullSystem::leave_detailed, nb::arg("host_ms"), nb::call_guard<Simulating>(),
             "False: not all have left after about so many milliseconds of host time; to be called again.")
        .def("save", &FullSystem::save, nb::arg("path"), nb::call_guard<Simulating>())
        .def("restore", &FullSystem::restore, nb::arg("path"), nb::call_guard<Simulating>());
}

/// A memoryview that owns the string; no copy is made, because it can have gigabytes.
nb::object view_of(std::string &&s) {
    auto kept = std::make_unique<std::string>(std::move(s));
    const auto *bytes = reinterpret_cast<const std::uint8_t *>(kept->data());
    const std::size_t size = kept->size();
    const nb::capsule owner(kept.get(), [](void *p) noexcept { delete static_cast<std::string *>(p); });
    kept.release();
    const nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>> array(bytes, {size}, owner);
    PyObject *const view = PyMemoryView_FromObject(nb::cast(array).ptr());
    if (!view)
        throw nb::python_error();
    return nb::steal(view);
}

nb::tuple packed(moscope::AttributionRows &&rows) {
    return nb::make_tuple(view_of(std::move(rows.lines)), view_of(std::move(rows.pairs)),
                          view_of(std::move(rows.transfers)));
}

void bind_results(nb::class_<FullSystem> &system) {
    system.def("reset_stats", &FullSystem::reset_stats)
        .def("watch_pages", &FullSystem::watch_pages, nb::arg("format"),
             "Takes a snapshot of the kernel's description of a line's page at each miss.")
        .def("what_if", &FullSystem::what_if, nb::arg("lines"),
             "Lines that detailed mode treats otherwise, before it begins (board/otherwise.hh).")
        .def("watch_code", &FullSystem::watch_code, nb::arg("places"),
             "Functions of programs that are counted or end a step, before restore (board/program_probes.hh).")
        .def("code_report", &FullSystem::code_report)
        .def(
            "allocations",
            [](const FullSystem &s) {
                const auto [pieces, sites] = s.allocations();
                return nb::make_tuple(bytes_of(pieces), bytes_of(sites));
            },
            "(pieces, sites) of the heaps of programs (board/allocations.hh).")
        .def("stats_json", &FullSystem::stats_json)
        .def(
            "attribution_rows", [](const FullSystem &s) { return packed(s.attribution_rows()); },
            "(lines, pairs, transfers): packed rows (attribution/attribution_rows.hh).")
        .def("keep_attribution", &FullSystem::keep_attribution,
             "Remembers this moment, of which kept_attribution_rows gives the rows.")
        .def("kept_attribution_rows", [](const FullSystem &s) { return packed(s.kept_attribution_rows()); })
        .def(
            "episodes", [](const FullSystem &s) { return bytes_of(s.episodes()); },
            "TransactionRecords of the lines with the most transactions, line by line (attribution/episodes.hh).")
        .def(
            "stacks", [](const FullSystem &s) { return bytes_of(s.stacks()); },
            "Packed samples of the stacks of waiting cores (attribution/stack_samples.hh).")
        .def("stop_stacks", &FullSystem::stop_stacks, "Takes no more of these samples, and forgets those taken.")
        .def(
            "loads", [](const FullSystem &s) { return bytes_of(s.loads()); },
            "LoadRows of cores that overlap their misses (attribution/loads_in_flight.hh).")
        .def("record_epochs", &FullSystem::record_epochs)
        .def(
            "epoch_record", [](const FullSystem &s) { return bytes_of(s.epoch_record()); },
            "Processor time of each epoch since record_epochs (sim/parallel/epoch_record.hh).")
        .def("stats", stats)
        .def("network", network)
        .def("rings", rings,
             "(device, queue, part, physical address, bytes) of the queues of devices, of those in use.")
        .def("counts", counts,
             "The part of `stats` that takes little time, for progress and for windows; `spun`: instructions in spin "
             "loops.");
}

void bind_console_and_memory(nb::class_<FullSystem> &system) {
    system.def("console_output", [](FullSystem &s) { return bytes_of(s.console_output()); })
        .def("console_input",
             [](FullSystem &s, const nb::bytes &b) {
                 s.console_input({b.c_str(), b.size()});
             })
        .def("read_physical",
             [](const FullSystem &s, moscope::Addr a, std::uint64_t n) { return bytes_of(s.read_physical(a, n)); })
        .def("read_virtual", [](const FullSystem &s, moscope::Addr cr3, moscope::Addr a,
                                std::uint64_t n) { return bytes_of(s.read_virtual(cr3, a, n)); })
        .def("physical_of", &FullSystem::physical_of)
        .def("registers_text", &FullSystem::registers_text);
}

} // namespace

void bind_system(nb::module_ &m) {
    nb::class_<FullSystem> system(m, "System", "A full system; see board/full_system.hh and board/system_config.hh.");
    system.def(
        "__init__",
        [](FullSystem *place, const std::string &config) {
            const Simulating now;
            new (place) FullSystem(config);
        },
        nb::arg("config"));
    bind_running(system);
    bind_results(system);
    bind_console_and_memory(system);
    nb::list types;
    for (unsigned t = 0; t < moscope::ruby::MachineType_NUM; ++t)
        types.append(t == moscope::ruby::MachineType_NULL ? std::string("own")
                                                          : std::string(moscope::ruby::MachineType_to_string(
                                                                static_cast<moscope::ruby::MachineType>(t))));
    m.attr("MACHINE_TYPES") = types; // by the number in the records of transactions
    m.attr("CHECKPOINT_VERSION") = moscope::kCheckpointVersion;
    using Limits = moscope::GuestLimits;
    nb::dict limits;
    limits["chips"] = Limits::chips;
    limits["cores_per_chip"] = Limits::cores_per_chip;
    limits["memory_per_node"] = Limits::memory_per_node;
    limits["memory_step"] = Limits::memory_step;
    m.attr("GUEST_LIMITS") = limits; // of the machines that run guests; sizes in bytes
    m.def("isa_table", &moscope::isa_report, nb::arg("cpu"),
          "Every instruction that the decoder knows: which CPUID feature announces it, which group implements it "
          "(board/isa_report.hh).");
    m.def(
        "checkpoint_config", &moscope::read_checkpoint_description, nb::arg("path"),
        "The configuration that a checkpoint was taken with, as JSON text; UserError if the file is damaged or newer.");
}
