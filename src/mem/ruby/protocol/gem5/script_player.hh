// SPDX-License-Identifier: BSD-3-Clause
// Plays a script of accesses on gem5's Ruby, as experiment/experiment.cc does on moscope's engine. The accesses of a
// step are issued at the same edge of the clock. The next step follows when all are done and what they left under way
// has had time to settle. Compiled by gem5 (docs/gem5.md), not by moscope.
//
// Script, one access a line: STEP CORE OP ADDRESS; steps ascend, OP is ld, st, if, rmw or flush. Stores and
// read-modify-writes write their own number, counted from 1. Answers, one line each in the same order:
// NUMBER ISSUED DONE VALUE, in ticks; VALUE is what was read (0 for st and flush). A flush has no DONE of its own.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "mem/packet.hh"
#include "mem/port.hh"
#include "params/ScriptPlayer.hh"
#include "sim/clocked_object.hh"
#include "sim/eventq.hh"

namespace gem5 {

class ScriptPlayer : public ClockedObject {
  public:
    PARAMS(ScriptPlayer);
    ScriptPlayer(const Params &p);

    Port &getPort(const std::string &name, PortID idx = InvalidPortID) override;
    void startup() override;

  private:
    struct CorePort : public RequestPort {
        CorePort(const std::string &name, ScriptPlayer &player, PortID id) : RequestPort(name, id), player(player) {}
        bool recvTimingResp(PacketPtr pkt) override { return player.done(pkt); }
        void recvReqRetry() override { player.retry(*this); }

        ScriptPlayer &player;
        std::vector<PacketPtr> refused;
    };

    enum class Op : uint8_t { load, store, fetch, rmw, flush };

    struct Access {
        uint32_t step;
        uint16_t core;
        Op op;
        Addr address;
        Tick issued = 0;
        Tick done = 0;
        uint64_t value = 0;
    };

    struct Number : public Packet::SenderState {
        explicit Number(size_t n) : number(n) {}
        const size_t number;
    };

    void read_script(const std::string &file);
    void play();
    void issue(size_t number);
    PacketPtr packet(size_t number);
    bool done(PacketPtr pkt);
    void retry(CorePort &port);
    void one_less();
    void write_answers();

    std::vector<CorePort> ports_;
    std::vector<Access> accesses_;
    const std::string answers_;
    const Tick settle_;
    const RequestorID requestor_;
    size_t next_ = 0;
    size_t open_ = 0;
    EventFunctionWrapper play_;
};

} // namespace gem5
