// SPDX-License-Identifier: BSD-3-Clause
// Token coherence's table of persistent requests (M. M. K. Martin, M. D. Hill and D. A. Wood, "Token Coherence:
// Decoupling Performance and Correctness", ISCA 2003): which controllers starve for a line, which of them want to write,
// and which were there when a controller's own request ended and therefore go first (marked).
#pragma once

#include <string>
#include <unordered_map>

#include "base/error.hh"
#include "mem/ruby/runtime/net_dest.hh"

namespace moscope::ruby {

class PersistentTable {
  public:
    void persistentRequestLock(Addr line, MachineID who, AccessType type) {
        Requests &r = requests_[line];
        if (r.starving.isElement(who))
            fail("a second persistent request of one controller", line);
        r.starving.add(who);
        if (type == AccessType_Write)
            r.writers.add(who);
    }
    void persistentRequestUnlock(Addr line, MachineID who) {
        const auto found = requests_.find(line);
        if (found == requests_.end() || !found->second.starving.isElement(who))
            fail("the end of a persistent request that has not begun", line);
        Requests &r = found->second;
        r.starving.remove(who);
        r.marked.remove(who);
        r.writers.remove(who);
        if (r.starving.isEmpty())
            requests_.erase(found);
    }
    /// Whether a controller may begin a persistent request: it has none, and no marked one waits.
    bool okToIssueStarving(Addr line, MachineID who) const {
        const Requests *r = find(line);
        return !r || (!r->starving.isElement(who) && r->marked.isEmpty());
    }
    /// The controller that is served first.
    MachineID findSmallest(Addr line) const { return present(line).starving.smallestElement(); }
    AccessType typeOfSmallest(Addr line) const {
        const Requests &r = present(line);
        return r.writers.isElement(r.starving.smallestElement()) ? AccessType_Write : AccessType_Read;
    }
    void markEntries(Addr line) {
        const auto found = requests_.find(line);
        if (found == requests_.end())
            return;
        if (!found->second.marked.isEmpty())
            fail("persistent requests are marked a second time", line);
        found->second.marked = found->second.starving;
    }
    bool isLocked(Addr line) const { return find(line) != nullptr; }
    int countStarvingForAddress(Addr line) const {
        const Requests *r = find(line);
        return r ? r->starving.count() : 0;
    }
    int countReadStarvingForAddress(Addr line) const {
        const Requests *r = find(line);
        return r ? r->starving.count() - r->writers.count() : 0;
    }

  private:
    struct Requests {
        NetDest starving, marked, writers;
    };
    const Requests *find(Addr line) const {
        const auto found = requests_.find(line);
        return found == requests_.end() ? nullptr : &found->second;
    }
    const Requests &present(Addr line) const {
        const Requests *r = find(line);
        if (!r)
            fail("no persistent request for the line", line);
        return *r;
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void fail(const char *what, Addr line) {
        throw ProtocolError(std::string("PersistentTable: ") + what, line);
    }

    std::unordered_map<Addr, Requests> requests_;
};

} // namespace moscope::ruby
