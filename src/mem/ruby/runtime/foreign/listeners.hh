// SPDX-License-Identifier: BSD-3-Clause
// What a controller of a protocol from outside the project asks of the network before it sends, so that an error is found in the
// action that makes it; network.cc answers.
#pragma once

#include "mem/ruby/runtime/message.hh"

namespace moscope::ruby {

/// Throws ProtocolError if `node` has no buffer from the message's virtual network.
void must_listen(const Message &m, NodeIndex node);

} // namespace moscope::ruby
