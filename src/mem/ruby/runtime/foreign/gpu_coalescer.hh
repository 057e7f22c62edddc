// SPDX-License-Identifier: BSD-3-Clause
// The coalescer of a GPU's compute unit, by gem5's names. moscope has no GPU: SLICC machines with a coalescer compile,
// but get no controller (docs/slicc.md), and a call is an error of the protocol.
#pragma once

#include "base/error.hh"

namespace moscope::ruby {

class GPUCoalescer {
  public:
    template <class... A> void readCallback(A &&...) { none(); }
    template <class... A> void writeCallback(A &&...) { none(); }
    template <class... A> void atomicCallback(A &&...) { none(); }
    template <class... A> void evictionCallback(A &&...) { none(); }
    template <class... A> void invTCPCallback(A &&...) { none(); }
    template <class... A> void invTCCCallback(A &&...) { none(); }
    template <class... A> void writeCompleteCallback(A &&...) { none(); }
    template <class... A> void recordCPReadCallBack(A &&...) { none(); }
    template <class... A> void recordCPWriteCallBack(A &&...) { none(); }

  private:
    [[noreturn]] static void none() {
        throw ProtocolError("a GPU's coalescer was called: expected no GPU in the machine");
    }
};
using VIPERCoalescer = GPUCoalescer;

} // namespace moscope::ruby
