// SPDX-License-Identifier: BSD-3-Clause
// Protocol errors with what a person needs to understand them.
#include "mem/ruby/runtime/controller.hh"

#include "mem/ruby/runtime/requests.hh"
#include "mem/ruby/runtime/sequencer.hh"

#include <cstring>
#include <sstream>

namespace moscope::ruby {

void AbstractController::tell_requestor(const Message &m) {
    Sequencer &to = *(*requestors)[m.txn_core];
    if (m.type == MemoryMsg::kType || m.carries_data) {
        if (cause_->type != MemoryMsg::kType) // what DRAM has sent is the home's, in the state in which it asked
            to.sent_line(m, *this, in_state_);
    } else {
        to.sent_probes(m, m.dest_offset ? m.destination().count() : 1);
    }
}

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
    s << "no transition: machine " << name() << ", state " << info->state[state].name << ", event "
      << info->event[event] << ", line 0x" << std::hex << line << std::dec << ", at tick " << now_;
    throw ProtocolError(s.str(), line_of(line));
}

void AbstractController::protocol_error(const std::string &what, const char *file, int line) {
    std::ostringstream s;
    s << file << ":" << line << ": " << what << " (machine " << name() << ", at tick " << now_;
    if (cause_)
        s << ", working on line 0x" << std::hex << cause_->line;
    s << ")";
    throw cause_ ? ProtocolError(s.str(), cause_->line) : ProtocolError(s.str());
}

} // namespace moscope::ruby
