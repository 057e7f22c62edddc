// SPDX-License-Identifier: BSD-3-Clause
// Routing tables: for each router and destination router the directed link to take. Built from the next-router
// tables of the machine description, which are checked once more here: every destination is reached, next
// routers are neighbours, and the channel-dependency graph (Dally and Seitz, "Deadlock-free message routing in
// multiprocessor interconnection networks", 1987) has no cycle, so that finite buffers cannot deadlock.
#pragma once

#include <vector>

#include "mem/ruby/network/params.hh"

namespace moscope::ruby {

/// One direction of a link.
struct DirectedLink {
    unsigned from, to;
    unsigned params; ///< index into NetworkParams::links
};

class RoutingTables {
  public:
    /// Throws UserError on tables that are incomplete, inconsistent or cyclic (naming the cycle).
    explicit RoutingTables(const NetworkParams &p);

    /// Both directions of every link: 2i is a to b of link i, 2i + 1 is b to a.
    const std::vector<DirectedLink> &links() const { return links_; }
    /// The link from `router` towards router `to`; the two differ.
    unsigned towards(unsigned router, unsigned to) const { return next_[router * routers_ + to]; }
    /// Links crossed from one router to another.
    unsigned hops(unsigned from, unsigned to) const { return hops_[from * routers_ + to]; }
    unsigned routers() const { return routers_; }

  private:
    void follow_all(const NetworkParams &p);
    void check_acyclic() const;

    unsigned routers_;
    std::vector<DirectedLink> links_;
    std::vector<unsigned> next_;
    std::vector<unsigned> hops_;
};

} // namespace moscope::ruby
