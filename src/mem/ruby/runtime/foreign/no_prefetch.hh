// SPDX-License-Identifier: BSD-3-Clause
// The prefetchers of gem5's classic memory system, by their names, and what lets a Ruby controller use one. Hardware
// prefetching of protocols is not modelled (docs/warts.md): nothing is observed and nothing is fetched.
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
