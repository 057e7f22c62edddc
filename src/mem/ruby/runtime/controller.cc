// SPDX-License-Identifier: BSD-3-Clause
// What a controller reports: to the requestor of a transaction, lines and probes that it sends for it; to a person,
// protocol errors.
#include "mem/ruby/runtime/controller.hh"

#include "base/time_text.hh"
#include "mem/ruby/runtime/requests.hh"
#include "mem/ruby/runtime/sequencer.hh"
#include "mem/ruby/runtime/slicc_util.hh"

#include <bit>
#include <cstddef>
#include <cstring>
#include <sstream>

namespace moscope::ruby {

/// The sender of m, for the record of the access that m works for; `state` is the sender's state of the line.
static Sequencer::Sender sender(const AbstractController &c, unsigned state, const Message &m) {
    using Sender = Sequencer::Sender;
    static_assert(offsetof(Sender, state) == 1 && offsetof(Sender, from_memory) == 2);
    return std::bit_cast<Sender>(c.as_sender | std::uint64_t{static_cast<std::uint8_t>(state)} << 8 |
                                 std::uint64_t{m.type == MemoryMsg::kType} << 16);
}

void AbstractController::report_to(const std::vector<Sequencer *> &of_cores) {
    requestors = &of_cores;
    as_sender = std::bit_cast<std::uint64_t>(
        Sequencer::Sender{static_cast<std::uint8_t>(machineID.type), 0, 0,
                          core != 0xffff ? core : static_cast<std::uint16_t>(version), chip});
}

void AbstractController::tell_requestor(const Message &m) {
    Sequencer &to = *(*requestors)[m.txn_core];
    if (&to.controller().queue() != &queue())
        tell_elsewhere(m, to);
    else if (m.type == MemoryMsg::kType || m.carries_data) {
        if (cause_->type != MemoryMsg::kType) // data from DRAM: reported when the home asked for it
            to.sent_line(m.line, m.txn, sender(*this, in_state_, m));
    } else {
        to.sent_probes(m.line, m.txn, m.dest_offset ? static_cast<unsigned>(m.destination().count()) : 1);
    }
}

/// The same if the requestor runs on another queue. The report reaches it before the message can complete its access.
[[gnu::noinline]] void AbstractController::tell_elsewhere(const Message &m, Sequencer &to) {
    if (m.type == MemoryMsg::kType || m.carries_data) {
        if (cause_->type == MemoryMsg::kType)
            return;
        const Sequencer::Sender by = sender(*this, in_state_, m);
        const auto open = [](const ProcessMessage &p) {
            static_cast<Sequencer *>(p.to)->sent_line(p.number[0], p.number[1],
                                                      std::bit_cast<Sequencer::Sender>(p.number[2]));
        };
        queue().post(to.controller().queue(),
                     {open, kNever, &to, nullptr, {m.line, m.txn, std::bit_cast<std::uint64_t>(by)}});
        return;
    }
    const unsigned n = m.dest_offset ? static_cast<unsigned>(m.destination().count()) : 1;
    const auto open = [](const ProcessMessage &p) {
        static_cast<Sequencer *>(p.to)->sent_probes(p.number[0], p.number[1], static_cast<unsigned>(p.number[2]));
    };
    queue().post(to.controller().queue(), {open, kNever, &to, nullptr, {m.line, m.txn, n}});
}

Tick AbstractController::traced_sending(Message &m, Tick arrival) {
    if (const Tick later = trace->sent(*this, now_, m, arrival, caused_by())) {
        arrival += later;
        m.account(Segment::queue, arrival);
    }
    return arrival;
}

MachineID AbstractController::mapAddressToDownstreamMachine(Addr a) const {
    if (!downstream.isValid())
        throw ProtocolError(name() + ": it has no downstream machine", line_of(a));
    return {downstream.type, downstream.num + static_cast<NodeID>(AddressMap::current->node_of(a))};
}

bool AbstractController::respondsTo(Addr a) const { return AddressMap::current->node_of(a) == chip; }

void AbstractController::functionalMemoryRead(Packet *pkt) {
    std::memcpy(pkt->bytes, guest_memory + line_of(pkt->addr), kLineBytes);
    pkt->found = true;
}

bool AbstractController::functionalMemoryWrite(Packet *pkt) {
    std::memcpy(guest_memory + line_of(pkt->addr), pkt->bytes, kLineBytes);
    return true;
}

void AbstractController::no_transition(unsigned state, unsigned event, Addr line) {
    std::ostringstream s;
    // A variable of the type Event begins with none of its values.
    const char *const what = event < info->events ? info->event[event] : "? (a variable that was not set)";
    s << "no transition: machine " << name() << ", state " << (state < info->states ? info->state[state].name : "?")
      << ", event " << what << ", line 0x" << std::hex << line << std::dec << ", at " << in_ns(now_);
    throw ProtocolError(s.str(), line_of(line));
}

void AbstractController::protocol_error(const std::string &what, const char *file, int line) {
    std::ostringstream s;
    s << file << ":" << line << ": " << what << " (machine " << name() << ", at " << in_ns(now_);
    const Message *const cause = caused_by();
    if (cause)
        s << ", working on line 0x" << std::hex << cause->line;
    s << ")";
    throw cause ? ProtocolError(s.str(), cause->line) : ProtocolError(s.str());
}

} // namespace moscope::ruby
