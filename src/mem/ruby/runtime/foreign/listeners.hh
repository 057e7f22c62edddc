// SPDX-License-Identifier: BSD-3-Clause
// A check that controllers of protocols from outside the project make before they send, so that an error is reported in
// the action that makes it. It is implemented in network.cc.
#pragma once

#include "mem/ruby/runtime/message.hh"

namespace moscope::ruby {

/// Throws ProtocolError if `node` has no buffer from the message's virtual network.
void must_listen(const Message &m, NodeIndex node);

} // namespace moscope::ruby
