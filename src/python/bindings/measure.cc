// SPDX-License-Identifier: BSD-3-Clause
// moscope._engine.run_experiment: the experiments of experiment/experiment.hh, JSON text in and out. The interpreter's
// lock is released while the machine runs; an interruption (Ctrl-C) ends the run.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "experiment/experiment.hh"
#include "python/bindings/engine_lock.hh"

namespace nb = nanobind;

void bind_measure(nb::module_ &m) {
    m.def(
        "run_experiment",
        [](const std::string &machine, const std::string &library, const std::string &request, std::uint64_t seed,
           moscope::Tick watchdog, unsigned threads) {
            moscope::MachineOptions options;
            options.seed = seed;
            options.watchdog = watchdog;
            options.threads = threads;
            const Simulating now;
            return moscope::run_experiment(machine, library, request, options, [] {
                nb::gil_scoped_acquire held;
                if (PyErr_CheckSignals() != 0)
                    throw nb::python_error();
            });
        },
        nb::arg("machine"), nb::arg("library"), nb::arg("request"), nb::arg("seed") = 1,
        nb::arg("watchdog") = moscope::MachineOptions{}.watchdog, nb::arg("threads") = 0,
        "Runs the phases of `request` on the elaborated machine with a protocol's library; see "
        "experiment/experiment.hh.");
}
