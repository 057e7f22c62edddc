// SPDX-License-Identifier: BSD-3-Clause
#include "mem/ruby/runtime/prefetch/l1_prefetcher.hh"

#include <algorithm>

#include "mem/ruby/runtime/sequencer.hh"

namespace moscope::ruby {

L1Prefetcher::L1Prefetcher(Sequencer &sequencer, const Params &params)
    : sequencer_(sequencer),
      params_(params),
      request_(params.level == PrefetchLevel::l1i ? RubyRequestType_IFETCH : RubyRequestType_LD),
      policy_(prefetch_policy(params.level, params.policy)),
      streams_(params.streams, static_cast<unsigned>(kPrefetchPage / kLineBytes) - 1),
      flights_(params.buffers),
      brought_(kBrought) {
    for (Flight &f : flights_) {
        f.access.owner = this;
        f.access.size = 1;
        f.access.kind = params.level == PrefetchLevel::l1i ? AccessKind::fetch : AccessKind::load;
        f.access.on_done = [](Access &a) {
            static_cast<L1Prefetcher *>(a.owner)->arrived(reinterpret_cast<Flight &>(a));
        };
    }
}

void L1Prefetcher::demanded(const Access &a, const Access *before) {
    if (a.kind != AccessKind::load && a.kind != AccessKind::store && a.kind != AccessKind::fetch)
        return;
    const Addr line = line_of(a.addr.value);
    if (before) {
        if (!owns(*before))
            return;
        auto &f = reinterpret_cast<Flight &>(const_cast<Access &>(*before));
        if (!f.late) {
            f.late = true;
            ++stats.late;
            go_on(f.stream, f.stride, line, a.issued);
        }
        return;
    }
    if (Brought &b = brought_[index(line)]; b.line == line) {
        if (in_l1(line, request_)) { // a store that needs write permission only
            used(b, a.issued);
            return;
        }
        ++stats.useless; // the line was lost before its use
        b.line = kNoLine;
    }
    if (a.kind != AccessKind::fetch && a.pc != 0 && a.va == 0)
        return; // a page walk
    if (const unsigned stream = policy_.learn(streams_, a.pc, line); stream != PrefetchStreams::kNone)
        fetch(stream, streams_.all[stream].stride, line, a.issued);
}

bool L1Prefetcher::in_l1(Addr line, RubyRequestType by) const {
    HitInfo hit;
    return sequencer_.controller().probe_hit(line, by, RubyRequestType_NULL, hit);
}

void L1Prefetcher::used(Brought &b, Tick when) {
    ++stats.useful;
    const Brought was = b;
    b.line = kNoLine;
    if (policy_.goes_on)
        go_on(was.stream, was.stride, was.line, when);
}

/// A demand access has reached `line` of a stream: the stream continues from there.
void L1Prefetcher::go_on(unsigned stream, std::int32_t stride, Addr line, Tick when) {
    if (PrefetchStream &s = streams_.all[stream]; s.stride == stride)
        s.line = line;
    fetch(stream, stride, line, when);
}

void L1Prefetcher::fetch(unsigned stream, std::int32_t stride, Addr line, Tick when) {
    each_ahead(line, stride, params_.ahead, [&](Addr target) {
        if (brought_[index(target)].line == target || sequencer_.busy(target) || sequencer_.goes_other_ways(target))
            return true;
        if (in_l1(target, RubyRequestType_LD) || in_l1(target, RubyRequestType_IFETCH))
            return true; // a prefetch would take it from the other L1
        if (sequencer_.lines_in_flight() >= params_.buffers)
            return false;
        const auto f = std::find_if(flights_.begin(), flights_.end(), [](const Flight &x) { return x.free; });
        if (f == flights_.end())
            return false;
        f->free = f->late = false;
        f->stride = stride;
        f->stream = stream;
        f->access.addr = PhysAddr(target);
        f->access.issued = when;
        f->access.done = kNever;
        ++stats.fetched;
        ++sequencer_.prefetches;
        sequencer_.prefetch(f->access);
        return true;
    });
}

void L1Prefetcher::arrived(Flight &f) {
    f.free = true;
    --sequencer_.prefetches;
    const Addr line = line_of(f.access.addr.value);
    sequencer_.port().prefetched(line);
    if (f.late)
        return;
    Brought &b = brought_[index(line)];
    stats.useless += b.line != kNoLine;
    b = {line, f.stride, f.stream};
}

} // namespace moscope::ruby
