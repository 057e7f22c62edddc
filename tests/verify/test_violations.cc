// SPDX-License-Identifier: BSD-3-Clause
// What a model says about mistakes of a protocol, in the words of the engine.
#include <gtest/gtest.h>

#include "verify/rules.hh"
#include "verify/storage.hh"

namespace moscope::verify {
namespace {

struct Violations : ::testing::Test {
    Violations() {
        layout = {};
        add_machine(MachineType_L1Cache, 2);
        add_machine(MachineType_Directory, 1);
    }
};

template <class F> std::string violation(F &&f) {
    try {
        f();
    } catch (const Violation &v) {
        return v.what();
    }
    return "none";
}

TEST_F(Violations, a_destination_of_a_type_that_has_no_machine_is_a_violation_and_no_crash) {
    const MachineID nowhere = mapAddressToMachine(1, MachineType_L3Cache);
    EXPECT_EQ(violation([&] { NetDest{}.add(nowhere); }),
              "destination L3Cache-0: no such machine: expected a MachineType of the protocol");
}

TEST_F(Violations, a_division_that_cxx_does_not_define_is_a_violation_and_no_crash) {
    const int low = std::numeric_limits<int>::min();
    EXPECT_EQ(violation([] { divide(1, 0); }), "division by 0");
    EXPECT_EQ(violation([&] { remainder_of(low, -1); }),
              "division of -2147483648 by -1: the result is too large for its type");
    EXPECT_EQ(divide(low + 1, -1), std::numeric_limits<int>::max());
}

TEST_F(Violations, a_shift_that_cxx_does_not_define_is_a_violation_and_no_crash) {
    EXPECT_EQ(violation([] { shift_left(1, 32); }), "shift by 32 bits: expected 0 to 31");
    EXPECT_EQ(violation([] { shift_right(1, -1); }), "shift by -1 bits: expected 0 to 31");
    EXPECT_EQ(shift_left(1, 31), std::numeric_limits<int>::min());
}

TEST_F(Violations, a_destination_beyond_the_last_machine_names_the_numbers_that_exist) {
    EXPECT_EQ(violation([] {
                  NetDest{}.add({MachineType_L1Cache, 2});
              }),
              "destination L1Cache-2: no such machine: expected a number from 0 to 1");
}

TEST_F(Violations, a_machine_that_does_not_exist_is_in_no_set) {
    NetDest all;
    all.broadcast();
    EXPECT_FALSE(all.isElement({MachineType_L3Cache, 0}));
    EXPECT_TRUE(all.isElement({MachineType_Directory, 0}));
}

TEST(Tables, a_second_tbe_of_a_line_is_called_a_tbe) {
    struct Tbe {};
    TBEArray<Tbe, 1> tbes{};
    tbes.allocate(1);
    EXPECT_EQ(violation([&] { tbes.allocate(1); }), "a TBE for this line is allocated already");
    tbes.deallocate(1);
    EXPECT_EQ(violation([&] { tbes.deallocate(1); }), "a TBE is deallocated for a line that has none");
}

struct Sized {
    static constexpr std::uint8_t kKind = kFirstKind;
    NetDest Destination;
    MessageSizeType MessageSize{MessageSizeType_NUM};
    Addr line() const { return 1; }
};
struct SmallState {
    using Message = Slot<sizeof(Sized)>;
    static constexpr unsigned kSlots = 2;
    static int receiver(unsigned, MachineType) { return 0; }
    static void forget(Sized &) {}
    std::uint8_t messages = 0;
    Message slots[kSlots];
};

TEST_F(Violations, a_message_into_the_network_without_a_size_is_a_violation) {
    SmallState state;
    RulesOf<SmallState> rules(state, 0);
    const RulesOf<SmallState>::NetworkBuffer buffer{rules, 2, "requestToDir"};
    Sized message;
    message.Destination.add({MachineType_Directory, 0});
    EXPECT_EQ(violation([&] { buffer.send(message); }),
              "enqueue: the message into L1Cache-0.requestToDir has no MessageSize: expected an assignment of one");
    message.MessageSize = MessageSizeType_Control;
    EXPECT_EQ(violation([&] { buffer.send(message); }), "none");
    EXPECT_EQ(state.messages, 1);
}

TEST(Places, a_violation_names_its_machine_once) {
    Violation plain("division by 0"), named("L1Cache-0: no transition");
    plain.locate("L1Cache-0", "action x, P.sm:7");
    named.locate("L1Cache-0", "in_port y, P.sm:8");
    EXPECT_STREQ(plain.what(), "division by 0 (machine L1Cache-0, action x, P.sm:7)");
    EXPECT_STREQ(named.what(), "L1Cache-0: no transition (in_port y, P.sm:8)");
}

} // namespace
} // namespace moscope::verify
