// SPDX-License-Identifier: BSD-3-Clause
// Issue and completion of a stream's accesses.
#include "cpu/traffic/access_stream.hh"

namespace moscope {

AccessStream::AccessStream(EventQueue &queue, std::string name, Port &port, LineSequence lines, unsigned in_flight,
                           AccessKind kind)
    : Component(queue, std::move(name), wake_entry),
      port_(port),
      lines_(std::move(lines)),
      kind_(kind),
      slots_(in_flight) {
    MOSCOPE_CHECK(in_flight > 0);
    for (auto &s : slots_)
        free_.push_back(&s);
}

void AccessStream::start(Tick t, std::uint64_t accesses) {
    MOSCOPE_CHECK(idle());
    left_ = accesses;
    for (Access &a : slots_) {                                   // what all its accesses have in common
        a.size = kind_ == AccessKind::nt_store ? kLineBytes : 8; // a write-combined line, or a word
        a.kind = kind_;
        a.pc = pc_;
        a.on_done = done_entry;
        a.owner = this;
    }
    schedule(t);
}

[[gnu::always_inline]] inline void AccessStream::issue(Access &a, Tick now) {
    --left_;
    ++in_flight_;
    a.addr = PhysAddr(lines_.next());
    a.va = a.pc ? a.addr.value : 0;
    port_.issue(a, now);
}

void AccessStream::wake_entry(Component &c, Tick now) {
    auto &self = static_cast<AccessStream &>(c);
    while (self.left_ > 0 && !self.free_.empty()) {
        Access *a = self.free_.back();
        self.free_.pop_back();
        self.issue(*a, now);
    }
}

void AccessStream::done_entry(Access &a) {
    auto &self = *static_cast<AccessStream *>(a.owner);
    self.counts_.add(a);
    if (__builtin_expect(self.to_log_ > 0, 0)) {
        self.log_.push_back(a);
        --self.to_log_;
    }
    --self.in_flight_;
    if (self.left_ > 0)
        self.issue(a, a.done);
    else
        self.free_.push_back(&a);
}

} // namespace moscope
