// SPDX-License-Identifier: BSD-3-Clause
// moscope._engine.run_random_test and its siblings: the tests of experiment/testing.hh, JSON text in and out. The
// interpreter's lock is released while a machine runs; an interruption (Ctrl-C) ends the run. `progress` is called
// from time to time with the number of accesses done so far. If it returns False, a random test ends and answers with
// the results so far.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "cpu/testers/random_tester.hh"
#include "experiment/testing.hh"
#include "python/bindings/engine_lock.hh"

namespace nb = nanobind;

namespace {

using Test = std::string (*)(const std::string &, const std::string &, const std::string &, moscope::MachineOptions,
                             const moscope::TestPoll &);

void bind(nb::module_ &m, const char *name, Test test, const char *doc) {
    m.def(
        name,
        [test](const std::string &machine, const std::string &library, const std::string &request, std::uint64_t seed,
               bool zero_lookahead, moscope::Tick watchdog, unsigned threads, nb::object progress) {
            moscope::MachineOptions options;
            options.seed = seed;
            options.zero_lookahead = zero_lookahead;
            options.watchdog = watchdog;
            if (threads && test != moscope::run_mix)
                throw moscope::UserError(
                    "threads: the cores of this test share the values that they compare: expected no threads");
            options.threads = threads;
            const Simulating now;
            return test(machine, library, request, options, [&progress](std::uint64_t done) {
                nb::gil_scoped_acquire held;
                if (PyErr_CheckSignals() != 0)
                    throw nb::python_error();
                if (!progress.is_none() && progress(done).is(nb::handle(Py_False)))
                    throw moscope::TestStopped{};
            });
        },
        nb::arg("machine"), nb::arg("library"), nb::arg("request"), nb::arg("seed") = 1,
        nb::arg("zero_lookahead") = false, nb::arg("watchdog") = moscope::MachineOptions{}.watchdog,
        nb::arg("threads") = 0, nb::arg("progress") = nb::none(), doc);
}

} // namespace

void bind_testing(nb::module_ &m) {
    m.attr("MOST_IN_FLIGHT") = moscope::testers::kMostInFlight; // accesses of one core in run_random_test
    bind(m, "run_random_test", moscope::run_random_test,
         "Random accesses, every value checked; see experiment/testing.hh.");
    bind(m, "run_litmus", moscope::run_litmus, "A litmus test's outcomes; see experiment/testing.hh.");
    bind(m, "run_contention", moscope::run_contention, "All cores write to one line; see experiment/testing.hh.");
    bind(m, "run_mix", moscope::run_mix, "Fiber cores mixing hits and misses; see experiment/testing.hh.");
}
