// SPDX-License-Identifier: BSD-3-Clause
#include "gem5/script_player.hh"

#include <algorithm>
#include <sstream>

#include "base/logging.hh"
#include "base/output.hh"
#include "sim/sim_exit.hh"
#include "sim/system.hh"

namespace gem5 {

namespace {

constexpr Addr kLine = 64;
constexpr Addr kValueBytes = 8;

} // namespace

ScriptPlayer::ScriptPlayer(const Params &p)
    : ClockedObject(p),
      answers_(p.answers),
      settle_(p.settle),
      requestor_(p.system->getRequestorId(this)),
      play_([this] { play(); }, name() + ".play") {
    ports_.reserve(p.port_ports_connection_count);
    for (int i = 0; i < p.port_ports_connection_count; ++i)
        ports_.emplace_back(csprintf("%s.ports%d", name(), i), *this, i);
    read_script(p.script);
}

Port &ScriptPlayer::getPort(const std::string &name, PortID idx) {
    if (name == "ports" && idx >= 0 && idx < static_cast<PortID>(ports_.size()))
        return ports_[idx];
    return ClockedObject::getPort(name, idx);
}

void ScriptPlayer::read_script(const std::string &file) {
    std::ifstream in(file);
    fatal_if(!in, "%s: cannot be read", file);
    const std::vector<std::string> names = {"ld", "st", "if", "rmw", "flush"};
    std::string line;
    while (std::getline(in, line)) {
        std::istringstream words(line);
        uint64_t step = 0, core = 0;
        std::string op, address;
        words >> step >> core >> op >> address;
        const auto known = std::find(names.begin(), names.end(), op);
        fatal_if(!words || known == names.end() || core >= ports_.size(),
                 "%s: line %d is not an access of this machine: STEP CORE OP ADDRESS", file, accesses_.size() + 1);
        fatal_if(!accesses_.empty() && step < accesses_.back().step, "%s: line %d: steps ascend", file,
                 accesses_.size() + 1);
        accesses_.push_back({static_cast<uint32_t>(step), static_cast<uint16_t>(core),
                             static_cast<Op>(known - names.begin()), std::stoull(address, nullptr, 0)});
    }
}

void ScriptPlayer::startup() { schedule(play_, clockEdge(Cycles(1))); }

void ScriptPlayer::play() {
    if (next_ == accesses_.size()) {
        write_answers();
        exitSimLoop("the script is at its end");
        return;
    }
    const uint32_t step = accesses_[next_].step;
    const size_t from = next_;
    while (next_ < accesses_.size() && accesses_[next_].step == step)
        ++next_;
    open_ = next_ - from;
    for (size_t i = from; i < next_; ++i)
        issue(i);
}

PacketPtr ScriptPlayer::packet(size_t number) {
    const Access &a = accesses_[number];
    const unsigned size = std::min(kValueBytes, kLine - a.address % kLine);
    const bool whole_line = a.op == Op::flush;
    Request::Flags flags;
    if (a.op == Op::fetch)
        flags.set(Request::INST_FETCH);
    if (a.op == Op::rmw)
        flags.set(Request::MEM_SWAP);
    const Addr at = whole_line ? a.address - a.address % kLine : a.address;
    auto request = std::make_shared<Request>(at, whole_line ? kLine : size, flags, requestor_);
    request->setContext(a.core);
    const MemCmd command = a.op == Op::flush   ? MemCmd::FlushReq
                           : a.op == Op::store ? MemCmd::WriteReq
                           : a.op == Op::rmw   ? MemCmd::SwapReq
                                               : MemCmd::ReadReq;
    auto *pkt = new Packet(request, command);
    const uint64_t value = number + 1;
    if (whole_line) {
        pkt->allocate();
    } else {
        auto *bytes = new uint8_t[kValueBytes];
        std::copy_n(reinterpret_cast<const uint8_t *>(&value), kValueBytes, bytes);
        pkt->dataDynamic(bytes);
    }
    if (!whole_line) // a flush is not answered
        pkt->pushSenderState(new Number(number));
    return pkt;
}

void ScriptPlayer::issue(size_t number) {
    Access &a = accesses_[number];
    a.issued = curTick();
    CorePort &port = ports_[a.core];
    auto *pkt = packet(number);
    if (!port.refused.empty() || !port.sendTimingReq(pkt))
        port.refused.push_back(pkt);
    // gem5's sequencers do not answer flushes, so the time to settle has to be enough for them.
    if (a.op == Op::flush) {
        a.done = curTick();
        one_less();
    }
}

void ScriptPlayer::retry(CorePort &port) {
    while (!port.refused.empty() && port.sendTimingReq(port.refused.front()))
        port.refused.erase(port.refused.begin());
}

bool ScriptPlayer::done(PacketPtr pkt) {
    auto *state = safe_cast<Number *>(pkt->popSenderState());
    Access &a = accesses_[state->number];
    delete state;
    a.done = curTick();
    if (a.op == Op::load || a.op == Op::fetch || a.op == Op::rmw)
        std::copy_n(pkt->getConstPtr<uint8_t>(), pkt->getSize(), reinterpret_cast<uint8_t *>(&a.value));
    delete pkt;
    one_less();
    return true;
}

void ScriptPlayer::one_less() {
    if (--open_ == 0)
        schedule(play_, clockEdge(ticksToCycles(settle_) + Cycles(1)));
}

void ScriptPlayer::write_answers() {
    auto *file = simout.create(answers_, false, true);
    for (size_t i = 0; i < accesses_.size(); ++i)
        ccprintf(*file->stream(), "%d %d %d %d\n", i, accesses_[i].issued, accesses_[i].done, accesses_[i].value);
    simout.close(file);
}

} // namespace gem5
