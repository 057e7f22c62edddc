// SPDX-License-Identifier: BSD-3-Clause
// The Python module moscope._engine: translates the engine's errors into Python's, and binds each part's functions.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "base/error.hh"
#include "dev/nic/steering.hh"
#include "mem/dram/params.hh"
#include "mem/prefetch/prefetch_policy.hh"
#include "mem/ruby/runtime/net_dest.hh"
#include "mem/ruby/runtime/replacement/replacement_policy.hh"

namespace nb = nanobind;

void bind_measure(nb::module_ &m);
void bind_testing(nb::module_ &m);
void bind_system(nb::module_ &m);

namespace {

void raise_as(const char *name, const char *what) {
    nb::object type = nb::module_::import_("moscope.errors").attr(name);
    PyErr_SetString(type.ptr(), what);
}

} // namespace

NB_MODULE(_engine, m) {
    m.doc() = "moscope's engine";
    nb::register_exception_translator([](const std::exception_ptr &p, void *) {
        try {
            std::rethrow_exception(p);
        } catch (const moscope::UserError &e) {
            raise_as("UserError", e.what());
        } catch (const moscope::ProtocolError &e) {
            raise_as("ProtocolError", e.what());
        } catch (const moscope::SimulatorBug &e) {
            raise_as("SimulatorBug", e.what());
        }
    });
    m.def(
        "check_dram", [](std::string_view text) { (void)moscope::dram::DramParams::from_json_text(text); },
        nb::arg("text"), "Raises UserError `dram.KEY: problem: expected ...` (docs/dram.md).");
    m.def("replacement_policies", &moscope::ruby::replacement_policies,
          "Names of the cache replacement policies, sorted.");
    m.def(
        "why_refused",
        [](const std::string &policy, unsigned sets, unsigned ways) {
            const auto &chosen = moscope::ruby::replacement_policy(policy, "replacement");
            return chosen.refuse ? chosen.refuse(sets, ways) : std::string();
        },
        nb::arg("replacement"), nb::arg("sets"), nb::arg("ways"),
        "What is wrong with an array of this shape, as `problem: expected ...`; empty if the policy takes it.");
    m.def("prefetch_policies", &moscope::prefetch_policies, nb::arg("level"),
          "Names of the prefetch policies of a level (l1d, dram), sorted.");
    m.attr("MOST_CONTROLLERS") = moscope::ruby::kMaxNodes;
    m.def("steering_policies", &moscope::dev::steering_policies,
          "Names of the network card's steering policies, sorted.");
    bind_testing(m);
    bind_measure(m);
    bind_system(m);
}
