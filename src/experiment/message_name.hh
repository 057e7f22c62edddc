// SPDX-License-Identifier: BSD-3-Clause
// The protocol's names of messages.
#pragma once

#include <string>

#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/message.hh"

namespace moscope::experiment {

/// The structure that the protocol declares for messages of this type number.
std::string structure_of_message(const ruby::ProtocolInfo &protocol, std::uint16_t type);
/// The value of the field `Type` in a message's description, else `otherwise`.
std::string name_in(const std::string &fields, const std::string &otherwise);
/// The value of its field `Type`, else the name of its structure.
std::string name_of_message(const ruby::ProtocolInfo &protocol, const ruby::Message &m);

} // namespace moscope::experiment
