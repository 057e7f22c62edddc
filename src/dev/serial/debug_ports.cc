// SPDX-License-Identifier: BSD-3-Clause
#include "dev/serial/debug_ports.hh"

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

const RegisteredDevice exit_port(100, "exit", [](Devices &d) {
    d.ports.map(ExitPort::kPort, ExitPort::kSize, d.add<ExitPort>(d.on_exit), 0);
});

const RegisteredDevice debug_console(110, "debug-console", [](Devices &d) {
    d.ports.map(DebugConsole::kPort, DebugConsole::kSize, d.add<DebugConsole>(d.console_output), 0);
});

} // namespace

} // namespace moscope::dev
