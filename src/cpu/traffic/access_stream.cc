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
    schedule(t);
}

[[gnu::always_inline]] inline void AccessStream::issue(Access &a, Tick now) {
    --left_;
    ++in_flight_;
    a.addr = PhysAddr(lines_.next());
    a.size = kind_ == AccessKind::nt_store ? kLineBytes : 8; // a write-combined line, or a word
    a.kind = kind_;
    a.data = nullptr;
    a.pc = pc_;
    a.va = pc_ ? a.addr.value : 0;
    a.on_done = done_entry;
    a.owner = this;
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
    if (self.log_.size() < self.log_.capacity())
        self.log_.push_back(a);
    --self.in_flight_;
    if (self.left_ > 0)
        self.issue(a, a.done);
    else
        self.free_.push_back(&a);
}

} // namespace moscope
