// SPDX-License-Identifier: BSD-3-Clause
// The prefetchers of gem5's classic memory system, by their names, and the proxy by which a Ruby controller uses one.
// Prefetchers of protocols are not modelled (docs/warts.md): these observe nothing and fetch nothing.
#pragma once

namespace moscope::ruby {

namespace prefetch {
struct Base {};
} // namespace prefetch

struct RubyPrefetcherProxy {
    template <class... A> void notifyPfHit(A &&...) {}
    template <class... A> void notifyPfMiss(A &&...) {}
    template <class... A> void notifyPfFill(A &&...) {}
    template <class... A> void notifyPfEvict(A &&...) {}
    template <class... A> void completePrefetch(A &&...) {}
    void regProbePoints() {}
};

} // namespace moscope::ruby
