// SPDX-License-Identifier: BSD-3-Clause
// Builds and checks routing tables.
#include "mem/ruby/network/routing.hh"

#include <algorithm>
#include <string>

#include "base/error.hh"

namespace moscope::ruby {

namespace {

[[noreturn]] void bad(const std::string &wrong, const std::string &right) {
    throw UserError("network.routes: " + wrong + ": expected " + right);
}

std::string pair_name(unsigned a, unsigned b) { return std::to_string(a) + " to " + std::to_string(b); }

} // namespace

RoutingTables::RoutingTables(const NetworkParams &p) : routers_(p.routers) {
    for (unsigned i = 0; i < p.links.size(); ++i) {
        links_.push_back({p.links[i].a, p.links[i].b, i});
        links_.push_back({p.links[i].b, p.links[i].a, i});
    }
    if (routers_ == 1 && p.routes.empty()) {
        next_.resize(1);
        hops_.assign(1, 0);
        return;
    }
    if (p.routes.size() != routers_)
        bad(std::to_string(p.routes.size()) + " rows", "one for each of " + std::to_string(routers_) + " routers");
    for (const auto &row : p.routes)
        if (row.size() != routers_)
            bad("a row of " + std::to_string(row.size()), "one next router for each destination");

    next_.resize(std::size_t{routers_} * routers_);
    for (unsigned r = 0; r < routers_; ++r)
        for (unsigned d = 0; d < routers_; ++d) {
            if (r == d)
                continue;
            const auto l = std::find_if(links_.begin(), links_.end(),
                                        [&](const DirectedLink &x) { return x.from == r && x.to == p.routes[r][d]; });
            if (l == links_.end())
                bad("from " + pair_name(r, d) + " the next router is " + std::to_string(p.routes[r][d]),
                    "a neighbour of router " + std::to_string(r));
            next_[r * routers_ + d] = static_cast<unsigned>(l - links_.begin());
        }
    follow_all(p);
    check_acyclic();
}

void RoutingTables::follow_all(const NetworkParams &p) {
    hops_.assign(std::size_t{routers_} * routers_, 0);
    for (unsigned s = 0; s < routers_; ++s)
        for (unsigned d = 0; d < routers_; ++d) {
            unsigned n = 0;
            for (unsigned r = s; r != d; r = p.routes[r][d])
                if (++n > routers_)
                    bad("the route from " + pair_name(s, d) + " goes round in a circle",
                        "routes that reach their destination");
            hops_[s * routers_ + d] = n;
        }
}

void RoutingTables::check_acyclic() const {
    // A packet in the buffer behind link x waits for link y when some destination is reached over x, then y.
    std::vector<std::vector<unsigned>> waits_for(links_.size());
    for (unsigned s = 0; s < routers_; ++s)
        for (unsigned d = 0; d < routers_; ++d)
            if (s != d && links_[towards(s, d)].to != d)
                waits_for[towards(s, d)].push_back(towards(links_[towards(s, d)].to, d));

    enum : char { unseen, open, done };
    std::vector<char> state(links_.size(), unseen);
    std::vector<unsigned> path;
    // Depth is at most the number of links, so plain recursion will do.
    auto visit = [&](auto &&self, unsigned x) -> void {
        state[x] = open;
        path.push_back(x);
        for (unsigned y : waits_for[x]) {
            if (state[y] == open) {
                std::string cycle;
                for (auto i = std::find(path.begin(), path.end(), y); i != path.end(); ++i)
                    cycle += std::to_string(links_[*i].from) + "->" + std::to_string(links_[*i].to) + " ";
                bad("links wait for each other in a cycle: " + cycle.substr(0, cycle.size() - 1),
                    "routes whose channel-dependency graph has none");
            }
            if (state[y] == unseen)
                self(self, y);
        }
        path.pop_back();
        state[x] = done;
    };
    for (unsigned x = 0; x < links_.size(); ++x)
        if (state[x] == unseen)
            visit(visit, x);
}

} // namespace moscope::ruby
