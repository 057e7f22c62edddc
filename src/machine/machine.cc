// SPDX-License-Identifier: BSD-3-Clause
// Running a machine, and its error reports.
#include "machine/machine.hh"

#include <algorithm>
#include <cstring>
#include <map>
#include <sstream>

#include "base/time_text.hh"
#include "machine/machine_impl.hh"
#include "schema/config_reader.hh"

namespace moscope {

using namespace ruby;

Machine::Machine(const std::string &description, const std::string &library, MachineOptions options)
    : Machine(ConfigReader::parse(description, "machine", "an elaborated machine"), library, options) {}

Machine::Machine(const nlohmann::json &description, const std::string &library, MachineOptions options)
    : impl_(std::make_unique<Impl>()) {
    impl_->options = options;
    try {
        impl_->build(*this, description, library);
    } catch (const nlohmann::json::exception &e) {
        throw UserError(std::string("machine description: ") + e.what());
    }
}

Machine::~Machine() = default;

LogicalProcesses &Machine::processes() { return impl_->processes; }
const LogicalProcesses &Machine::processes() const { return impl_->processes; }
EventQueue &Machine::queue() { return impl_->processes.queue(0); }
EventQueue &Machine::queue_of_core(unsigned core) { return impl_->processes.queue(impl_->chip_of_core.at(core)); }
Tick Machine::next() const { return impl_->processes.next(); }
Tick Machine::now() const { return impl_->processes.now(); }
std::uint64_t Machine::events() const { return impl_->processes.events(); }
std::int64_t Machine::messages() const {
    std::int64_t n = the_message_pool.live();
    for (const auto &p : impl_->pools)
        n += p->live();
    return n;
}
const x86::TimedParams &Machine::pipeline() const { return impl_->pipeline; }
unsigned Machine::cores() const { return static_cast<unsigned>(impl_->sequencers.size()); }
unsigned Machine::nodes() const { return static_cast<unsigned>(impl_->addresses.ranges.size()); }
unsigned Machine::chip_of_core(unsigned core) const { return impl_->chip_of_core.at(core); }
Tick Machine::command_latency(unsigned from_chip, unsigned to_chip) const {
    return impl_->network_params.command_latency(from_chip, to_chip, "posted");
}
Port &Machine::port(unsigned core) { return impl_->sequencers.at(core)->port(); }
unsigned Machine::dma_ports() const { return static_cast<unsigned>(impl_->dma.size()); }
Port &Machine::dma_port(unsigned i) { return impl_->dma.at(i)->port(); }
void Machine::allow_device_accesses(unsigned in_flight) {
    for (auto &sequencer : impl_->dma)
        sequencer->allow(in_flight);
}
ruby::DMASequencer &Machine::dma(unsigned i) const { return *impl_->dma.at(i); }
std::byte *Machine::memory() { return impl_->memory->base(); }
GuestMemory &Machine::guest_memory() { return *impl_->memory; }
std::uint64_t Machine::memory_bytes() const { return impl_->memory->bytes(); }
Addr Machine::node_base(unsigned node) const { return impl_->addresses.ranges.at(node).base; }
std::uint64_t Machine::node_bytes(unsigned node) const { return impl_->addresses.ranges.at(node).bytes; }

void Machine::treat_otherwise(WhatIf lines) {
    MOSCOPE_CHECK(!checks_data() && !in_flight());
    if (lines.any_free() && processes().size() > 1)
        throw UserError("what-if: lines that bypass the protocol need a single logical process: expected no "
                        "--threads");
    impl_->what_if = std::move(lines);
    for (const auto &s : impl_->sequencers)
        s->treat_otherwise(&impl_->what_if);
}

bool Machine::checks_data() const { return impl_->protocol->checks_data; }
const ProtocolInfo &Machine::protocol() const { return *impl_->protocol; }
const std::vector<AbstractController *> &Machine::controllers() const { return impl_->controllers; }

AbstractController *Machine::controller(MachineType type, unsigned version) const {
    if (version >= impl_->nodes.count[type])
        return nullptr;
    return impl_->controllers[impl_->nodes.base[type] + version];
}

void Machine::run(Tick until) {
    impl_->make_current();
    try {
        impl_->run(until);
    } catch (const ProtocolError &e) {
        throw ProtocolError(std::string(e.what()) + impl_->context(e.line) + impl_->stuck(), e.line);
    }
}

/// With one process the watchdog wakes as a component does. With several it looks between two runs, because it reads
/// the state of all chips.
void Machine::Impl::run(Tick until) {
    if (processes.size() == 1) {
        watchdog->arm();
        processes.run(until);
        return;
    }
    const Tick limit = watchdog->limit();
    while (true) {
        const Tick next = processes.next();
        const Tick to = limit && next < until && until - next > limit ? next + limit : until;
        processes.run(to);
        if (processes.stopped())
            return;
        const Tick reached = to == kNever ? processes.now() + limit + 1 : to; // kNever: nothing is pending any more
        if (limit && reached >= look_for_old_at) {
            look_for_old_at = reached + limit / 4;
            watchdog->look_for_old(reached);
        }
        if (to == until)
            return;
    }
}

void Machine::set_trace(TraceHook *hook) {
    if (hook && impl_->processes.size() > 1)
        throw UserError("trace: the chips of this machine are logical processes: expected a machine without threads");
    impl_->trace = hook;
    for (auto *c : impl_->controllers)
        c->trace = hook;
    impl_->network->set_trace(hook);
}

void Machine::set_delays(ruby::DelaySource *source) { impl_->network->set_delays(source); }

void Machine::come_to_rest() { impl_->watchdog->schedule(kNever); }

unsigned Machine::in_flight() const {
    unsigned n = 0;
    for (const auto &s : impl_->sequencers)
        n += s->outstanding();
    for (const auto &d : impl_->dma)
        n += d->outstanding();
    return n;
}

namespace {

bool readable(AccessPermission p) { return p == AccessPermission_Read_Only || p == AccessPermission_Read_Write; }

/// Whether a controller's copies count. Those of a home do not: a home holds memory's copy, in some protocols in its
/// own array.
bool is_cache(const AbstractController &c) { return c.role == Role::cache; }

} // namespace

bool Machine::functional_read(Addr line, std::byte *bytes) {
    impl_->make_current();
    line = line_of(line);
    Packet pkt{line, bytes, false};
    // A cached copy, writable or readable, is current. Without one, the home's own array is, or else memory.
    for (const bool cache : {true, false})
        for (const auto wanted : {AccessPermission_Read_Write, AccessPermission_Read_Only})
            for (auto *c : impl_->controllers)
                if (is_cache(*c) == cache && c->permission(line) == wanted) {
                    c->functional_read(line, pkt);
                    if (pkt.found)
                        return true;
                }
    if (line + kLineBytes > impl_->memory->bytes())
        return false;
    std::memcpy(bytes, impl_->memory->base() + line, kLineBytes);
    return true;
}

std::string Machine::check_single_writer() {
    impl_->make_current();
    std::vector<Addr> lines;
    for (auto *c : impl_->controllers)
        if (is_cache(*c))
            c->for_each_entry(&lines, [](void *v, const AbstractCacheEntry &e) {
                static_cast<std::vector<Addr> *>(v)->push_back(e.m_Address);
            });
    std::sort(lines.begin(), lines.end());
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
    for (const Addr line : lines) {
        std::string writers, readers;
        unsigned w = 0, r = 0;
        std::uint16_t core = 0xffff; // of the writer: in a hierarchy of private caches an outer one may keep a copy
        for (auto *c : impl_->controllers) {
            if (!is_cache(*c))
                continue;
            const AccessPermission p = c->permission(line);
            if (p == AccessPermission_Read_Write) {
                ++w;
                core = c->core;
                writers += " " + c->name();
            } else if (readable(p)) {
                ++r;
                readers += " " + c->name();
            }
        }
        if (w == 1 && r == 1 && core != 0xffff)
            for (auto *c : impl_->controllers)
                if (is_cache(*c) && c->core == core && c->permission(line) == AccessPermission_Read_Only)
                    r = 0;
        if (w > 1 || (w == 1 && r > 0)) {
            std::ostringstream s;
            s << "line 0x" << std::hex << line << ": writable in" << writers << (r ? ", readable in" : "") << readers;
            return s.str();
        }
    }
    return {};
}

namespace {

/// Transitions of a line, a line of text each. A stall that repeats while nothing changes is one line with a count.
std::string history_text(const std::vector<AbstractController *> &controllers, const ProtocolInfo &protocol, Addr line,
                         const std::vector<TransitionRecord> &of_line) {
    constexpr std::size_t kShown = 24;
    struct Shown {
        TransitionRecord first;
        Tick last;
        unsigned count;
    };
    std::vector<Shown> shown;
    std::size_t changed = 0; // entries from here on are since the last change of state
    for (const auto &r : of_line) {
        const auto same = [&r](const Shown &s) {
            return s.first.node == r.node && s.first.state == r.state && s.first.event == r.event &&
                   s.first.next == r.next && s.first.source == r.source;
        };
        const auto from = shown.begin() + static_cast<std::ptrdiff_t>(changed);
        if (const auto earlier = std::find_if(from, shown.end(), same); r.state == r.next && earlier != shown.end()) {
            earlier->last = r.tick;
            ++earlier->count;
            continue;
        }
        shown.push_back({r, r.tick, 1});
        if (r.state != r.next)
            changed = shown.size();
    }
    std::ostringstream s;
    s << "\nlast transitions of line 0x" << std::hex << line << std::dec << ":";
    if (shown.empty())
        s << " none";
    for (std::size_t i = shown.size() > kShown ? shown.size() - kShown : 0; i < shown.size(); ++i) {
        const auto &[r, until, count] = shown[i];
        const AbstractController &c = *controllers[r.node];
        s << "\n  " << in_ns(r.tick) << "  " << c.name() << "  " << c.info->state[r.state].name << " --"
          << c.info->event[r.event] << "--> " << c.info->state[r.next].name;
        if (r.source < controllers.size())
            s << "  (" << (r.message_type < protocol.message_types ? protocol.message_type[r.message_type] : "request")
              << " from " << controllers[r.source]->name() << ")";
        if (count > 1)
            s << ", " << count << " times until " << in_ns(until);
    }
    return s.str();
}

} // namespace

std::string Machine::Impl::context(Addr line) const {
    std::vector<TransitionRecord> last;
    for (const History &h : history)
        h.for_each([&](const TransitionRecord &r) { last.push_back(r); });
    std::stable_sort(last.begin(), last.end(), [](const auto &a, const auto &b) { return a.tick < b.tick; });
    if (line == ProtocolError::kNoLine) {
        if (last.empty())
            return {};
        line = last.back().line; // the best guess
    }
    std::vector<TransitionRecord> of_line;
    std::copy_if(last.begin(), last.end(), std::back_inserter(of_line),
                 [line](const auto &r) { return r.line == line; });
    return history_text(controllers, *protocol, line, of_line);
}

std::string Machine::line_history(Addr line) const {
    impl_->make_current();
    return impl_->context(line_of(line));
}

std::string Machine::Impl::stuck() const {
    std::ostringstream s;
    unsigned shown = 0;
    constexpr unsigned kMost = 40;
    s << "\nrequests and messages in flight:";
    for (auto *c : controllers)
        for (auto &b : c->buffers())
            b.buffer->for_each([&](const Message &m, Tick t, bool stalled) {
                if (shown++ < kMost)
                    s << "\n  " << b.buffer->name << ": line 0x" << std::hex << m.line << std::dec << " "
                      << protocol->describe(m) << (stalled ? " (stalled)" : "") << ", since " << in_ns(t);
            });
    for (const auto &line : network->stuck_report(processes.now()))
        if (shown++ < kMost)
            s << "\n  " << line;
    const auto access = [&](const std::string &requester, const Access &a) {
        if (shown++ < kMost)
            s << "\n  " << requester << ": access to 0x" << std::hex << a.addr.value << std::dec << " issued at "
              << in_ns(a.issued);
    };
    for (const auto &q : sequencers)
        q->for_each([&](const Access &a) { access(q->controller().name(), a); });
    for (const auto &d : dma)
        d->for_each([&](const Access &a) { access("DMA", a); });
    if (shown > kMost)
        s << "\n  and " << shown - kMost << " more";
    return s.str();
}

std::vector<std::uint64_t> Watchdog::counts() const {
    std::vector<std::uint64_t> all;
    for (const auto *c : machine_.controllers())
        all.insert(all.end(), c->transition_counts(), c->transition_counts() + c->info->transitions);
    return all;
}

/// If one transition makes up at least half of those since the last look, and was taken kMany times: text that names it
/// and the controller that took it most. Otherwise empty.
std::string Watchdog::polling() const {
    const std::vector<std::uint64_t> now = counts();
    struct Taken {
        std::uint64_t all = 0, most = 0;
        unsigned controllers = 0;
        const ruby::AbstractController *first = nullptr;
    };
    std::map<std::pair<ruby::MachineType, unsigned>, Taken> taken; // by transition of a type of machine
    std::uint64_t sum = 0;
    std::size_t i = 0;
    for (const auto *c : machine_.controllers())
        for (unsigned t = 0; t < c->info->transitions; ++t, ++i) {
            const std::uint64_t n = now[i] - (before_.empty() ? 0 : before_[i]);
            if (n == 0)
                continue;
            Taken &of = taken[{c->info->type, t}];
            sum += n;
            of.all += n;
            ++of.controllers;
            if (n > of.most)
                of.most = n, of.first = c;
        }
    constexpr std::uint64_t kMany = 1000;
    for (const auto &[what, of] : taken) {
        if (of.all < kMany || of.all * 2 < sum)
            continue;
        const ruby::MachineInfo &machine = *of.first->info;
        const auto &t = machine.transition[what.second];
        const std::string others = of.controllers > 1 ? " and " + std::to_string(of.controllers - 1) + " more" : "";
        return "; the protocol polls: meanwhile " + of.first->name() + others + " took " + std::to_string(of.all) +
               " times " + machine.state[t.state].name + " --" + machine.event[t.event] + "-->";
    }
    return "";
}

void Watchdog::look(Tick now) {
    look_for_old(now);
    before_ = counts();
    // Go on only while others are active, so that an idle machine ends its run.
    if (queue().next() != kNever || machine_.in_flight())
        schedule(now + limit_);
}

void Watchdog::look_for_old(Tick now) const {
    const Access *oldest = nullptr;
    std::string requester;
    const auto consider = [&](const std::string &name, const Access &a) {
        if (!oldest || a.issued < oldest->issued) {
            oldest = &a;
            requester = name;
        }
    };
    for (ruby::Sequencer *s : sequencers_) {
        if (now - s->oldest() > limit_)
            s->for_each([&](const Access &a) { consider(s->controller().name(), a); });
    }
    for (unsigned i = 0; i < machine_.dma_ports(); ++i)
        machine_.dma(i).for_each([&](const Access &a) {
            if (now - a.issued > limit_)
                consider("DMA-" + std::to_string(i), a);
        });
    if (oldest) {
        const Addr line = line_of(oldest->addr.value);
        std::ostringstream s;
        s << "no progress: a request of " << requester << " for line 0x" << std::hex << line << std::dec
          << " is older than " << limit_ / kTicksPerNs << " ns at " << in_ns(now) << polling();
        throw ProtocolError(s.str(), line);
    }
}

} // namespace moscope
