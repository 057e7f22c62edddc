// SPDX-License-Identifier: BSD-3-Clause
// What a device asks of the machine's power supply.
#pragma once

#include <functional>

namespace moscope::dev {

enum class PowerEvent { off, reset };
using OnPower = std::function<void(PowerEvent)>;

} // namespace moscope::dev
