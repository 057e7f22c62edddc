// SPDX-License-Identifier: BSD-3-Clause
// Finds every step that is possible in a state. A message under way may arrive at any time, before or after others,
// except that an ordered virtual network keeps the order of each sender. A message that its receiver stalls stays at
// the head of its buffer, and what arrives later waits behind it. A core without a request may make any; a cache may
// have to make room at any time.
#pragma once

#include "verify/canonical.hh"
#include "verify/storage.hh"

namespace moscope::verify {

/// What happened in a step from one state to the next.
struct Step {
    enum Kind : std::uint8_t { request, evict, device, message, memory } kind;
    std::uint8_t who;  ///< core; slot of the message; controller that makes room, or of a device
    std::uint8_t type; ///< RubyRequestType; DeviceRequest
    Addr line;
    bool asks() const { return kind == request || kind == evict || kind == device; }
};

template <class Machine> class Expansion {
  public:
    using State = typename Machine::State;
    using Message = typename State::Message;
    using Rules = RulesOf<State>;
    using Outcome = typename Rules::Outcome;

    /// Calls found(State &next, const Step &, bool only_blocked) for every successor, which is not yet canonical.
    /// only_blocked: the step did nothing but stall a message. A Violation is passed on; step() is then the step that
    /// caused it.
    template <class F> void successors(const State &s, F &&found) {
        for (unsigned i = 0; i < s.messages; ++i)
            if (may_arrive(s, i)) {
                if (s.slots[i].to == kMemory)
                    at_memory(s, i, found);
                else
                    deliver(s, i, found);
            }
        if (memory_is_busy(s))
            return;
        for (unsigned c = 0; c < State::kCores; ++c) {
            if (is_ahead(s, Machine::kFirstCore + c))
                continue;
            if (!s.cores[c].waits())
                for (Addr line = 1; line <= State::kLines; ++line)
                    for (const RubyRequestType type : Machine::kRequests)
                        ask(s, {Step::request, static_cast<std::uint8_t>(c), type, line}, found);
            if constexpr (Machine::kEvict)
                ask(s,
                    {Step::evict, static_cast<std::uint8_t>(Machine::kFirstCore + c), RubyRequestType_LD, kElsewhere},
                    found);
        }
        if constexpr (Machine::kDevices > 0)
            for (unsigned d = 0; d < Machine::kDevices; ++d)
                if (!s.cores[State::kCores + d].waits() && !is_ahead(s, Machine::kFirstDevice + d))
                    for (Addr line = 1; line <= State::kLines; ++line)
                        for (const DeviceRequest type : Machine::kDeviceRequests)
                            ask_device(s, d, type, line, found);
        if constexpr (Machine::kOutside > 0)
            for (unsigned c = 0; c < layout.total; ++c)
                for (unsigned n = 0; n < Machine::kOutside; ++n)
                    for (Addr line = 1; line <= State::kLines; ++line) {
                        make_room(s, c, n, line, found);
                        if (line == 1)
                            make_room(s, c, n, kElsewhere, found);
                    }
    }
    const Step &step() const { return step_; }
    /// The step took its message out; those behind it have moved up.
    bool removed() const { return removed_; }

  private:
    /// Whether DRAM's queue, which is bounded, is full. Meanwhile no core begins anything new.
    bool memory_is_busy(const State &s) const {
        unsigned n = 0;
        for (unsigned i = 0; i < s.messages; ++i)
            n += s.slots[i].to == kMemory || s.slots[i].from == kMemory;
        return n >= Machine::kMemoryQueue;
    }

    /// Whether many messages of the controller are under way. Nothing new begins there then, as it would fill the
    /// network.
    bool is_ahead(const State &s, unsigned controller) const {
        unsigned n = 0;
        for (unsigned i = 0; i < s.messages; ++i)
            n += s.slots[i].from == controller && !s.slots[i].aside && !asked(s.slots[i]);
        return n > Machine::kPending;
    }

    bool may_arrive(const State &s, unsigned i) const {
        const Message &m = s.slots[i];
        if (m.aside)
            return false;
        const bool ordered = m.to != kMemory && State::ordered(layout.id[m.to].type, m.buffer);
        for (unsigned j = 0; j < s.messages; ++j) {
            const Message &o = s.slots[j];
            if (j == i || o.to != m.to || o.buffer != m.buffer)
                continue;
            if (o.blocked)
                return false;
            if (j < i && !o.aside && o.from == m.from && (ordered || (m.to == kMemory && o.line == m.line)))
                return false;
            if (j < i && std::memcmp(&o, &m, sizeof(Message)) == 0)
                return false; // the same message has been tried
        }
        return true;
    }

    /// Runs the receiver's rule for a message, once for each sequence of choices.
    template <class F> void run(const State &s, unsigned slot, F &&done) {
        const unsigned to = s.slots[slot].to;
        world().begin();
        do {
            copy_used(next_, s);
            Outcome outcome{};
            bool dequeued = false;
            Machine::with(next_, to, [&](auto &rules) {
                rules.message_ = &next_.slots[slot];
                rules.buffer_ = next_.slots[slot].buffer;
                rules.run_located();
                outcome = rules.outcome_;
                dequeued = rules.dequeued_;
            });
            if (outcome == Outcome::taken) {
                next_.slots[slot].blocked = 0;
                if (dequeued)
                    remove_message(next_, slot);
            }
            removed_ = outcome == Outcome::taken && dequeued;
            done(outcome, dequeued);
        } while (world().advance());
    }

    template <class F> void deliver(const State &s, unsigned slot, F &&found) {
        step_ = {Step::message, static_cast<std::uint8_t>(slot), 0, s.slots[slot].line};
        run(s, slot, [&](Outcome outcome, bool) {
            if (outcome == Outcome::taken) {
                found(next_, step_, false);
            } else if (!s.slots[slot].blocked && !asked(s.slots[slot])) {
                copy_used(next_, s);
                next_.slots[slot].blocked = 1;
                found(next_, step_, true);
            }
        });
    }

    /// Whether the message is a request of a core or of a device.
    bool asked(const Message &m) const { return m.kind == RubyRequest::kKind || m.kind == SequencerMsg::kKind; }

    /// Adds an empty message. Violation if there is no free slot.
    Message &add_to(State &s) {
        if (s.messages == State::kSlots)
            throw Violation("more than " + std::to_string(State::kSlots) + " messages are under way");
        return s.slots[s.messages++] = Message{};
    }

    /// A core's request, or one for a line elsewhere, which is dropped once the cache has made room.
    template <class F> void ask(const State &s, const Step &step, F &&found) {
        step_ = step;
        copy_used(asked_, s);
        Message &m = add_to(asked_);
        const unsigned controller = step.kind == Step::evict ? step.who : Machine::kFirstCore + step.who;
        m.kind = RubyRequest::kKind;
        m.to = m.from = static_cast<std::uint8_t>(controller);
        m.buffer = Machine::kMandatory;
        m.line = step.line == kElsewhere ? 0 : step.line;
        RubyRequest request;
        request.LineAddress = request.PhysicalAddress = step.line;
        request.Type = static_cast<RubyRequestType>(step.type);
        if (request.Type == RubyRequestType_COMMIT || request.Type == RubyRequestType_IO) {
            request.WTData.age = DataBlock::kNew;
            request.writeMask.whole = request.Type == RubyRequestType_COMMIT;
        }
        std::memcpy(m.body, static_cast<const void *>(&request), sizeof request);
        if (step.kind == Step::evict)
            return dropped(found);
        asked_.cores[step.who] = {static_cast<std::uint8_t>(request.Type + 1), step.line, 0};
        run(asked_, asked_.messages - 1, [&](Outcome, bool) { found(next_, step_, false); });
    }

    template <class F> void ask_device(const State &s, unsigned device, DeviceRequest type, Addr line, F &&found) {
        const auto controller = static_cast<std::uint8_t>(Machine::kFirstDevice + device);
        step_ = {Step::device, controller, static_cast<std::uint8_t>(type), line};
        copy_used(asked_, s);
        Message &m = add_to(asked_);
        m.kind = SequencerMsg::kKind;
        m.to = m.from = controller;
        m.buffer = Machine::kDeviceMandatory;
        m.line = line;
        SequencerMsg request;
        request.LineAddress = request.PhysicalAddress = line;
        const bool reads = type == DeviceRequest::read;
        request.Type = reads ? SequencerRequestType_LD : SequencerRequestType_ST;
        if (!reads)
            request.DataBlk.age = DataBlock::kDevice;
        if (type == DeviceRequest::part)
            request.Len = kLineBytes / 2;
        std::memcpy(m.body, static_cast<const void *>(&request), sizeof request);
        const auto wants = static_cast<std::uint8_t>((reads ? RubyRequestType_LD : RubyRequestType_ST) + 1);
        asked_.cores[State::kCores + device] = {wants, line, 0};
        run(asked_, asked_.messages - 1, [&](Outcome, bool) { found(next_, step_, false); });
    }

    /// A message from outside the model: a controller makes room for another line.
    template <class F> void make_room(const State &s, unsigned controller, unsigned n, Addr line, F &&found) {
        const unsigned core = controller - Machine::kFirstCore;
        if (core < State::kCores && ((s.cores[core].waits() && s.cores[core].line == line) || is_ahead(s, controller)))
            return;
        step_ = {Step::evict, static_cast<std::uint8_t>(controller), 0, line};
        Message m{};
        if (!Machine::outside(n, layout.id[controller].type, line, m))
            return;
        copy_used(asked_, s);
        m.to = m.from = static_cast<std::uint8_t>(controller);
        add_to(asked_) = m;
        dropped(found);
    }

    /// Delivers the last message of asked_. If its receiver makes room for it, the message is then removed.
    template <class F> void dropped(F &&found) {
        const unsigned slot = asked_.messages - 1;
        run(asked_, slot, [&](Outcome outcome, bool dequeued) {
            if (outcome != Outcome::taken || dequeued)
                return;
            remove_message(next_, slot);
            removed_ = true;
            found(next_, step_, false);
        });
    }

    /// DRAM serves the oldest request of a line.
    template <class F> void at_memory(const State &s, unsigned slot, F &&found) {
        step_ = {Step::memory, static_cast<std::uint8_t>(slot), 0, s.slots[slot].line};
        copy_used(next_, s);
        Message &m = next_.slots[slot];
        serve_memory(next_, m.template as<MemoryMsg>(), layout.id[m.from]);
        State::forget(m.template as<MemoryMsg>());
        m.to = m.from;
        m.buffer = static_cast<std::uint8_t>(State::from_memory(layout.id[m.to].type));
        m.from = kMemory;
        removed_ = true;
        const Message answer = m; // behind those that were sent before
        remove_message(next_, slot);
        next_.slots[next_.messages++] = answer;
        found(next_, step_, false);
    }

    State next_, asked_;
    Step step_{};
    bool removed_ = false;
};

} // namespace moscope::verify
