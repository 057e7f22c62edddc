// SPDX-License-Identifier: BSD-3-Clause
// Which allocator a piece of memory is named after.
#include <gtest/gtest.h>

#include <cstring>

#include "board/allocations.hh"
#include "cpu/x86/decode/probes.hh"
#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;

namespace {

constexpr Addr kCaller = 0x1000, kArrays = 0x1100, kSingle = 0x1200, kPiece = 0x40000;
enum : unsigned { arrays, single };

/// MOV EDI, 48; CALL arrays; HLT. `arrays`: JMP single, as operator new[] of libstdc++ does. `single`: MOV EAX, piece; RET.
struct TailJump : test::SystemMachine {
    TailJump() {
        kernel64();
        code(kArrays, {0xe9, 0xfb, 0, 0, 0});
        code(kSingle, {0xb8, 0, 0, 4, 0, 0xc3});
        code(kCaller, {0xbf, 48, 0, 0, 0, 0xe8, 0xf6, 0, 0, 0, 0xf4});
        for (const Addr at : {kArrays, kSingle}) {
            const Addr page = at & ~Addr{4095};
            const auto bytes =
                std::make_shared<std::vector<std::byte>>(memory.begin() + page, memory.begin() + page + 4096);
            probes->add({bytes, static_cast<unsigned>(at & 4095)});
        }
        blocks.probe(probes);
    }
    void probed(Core &c, unsigned probe, const Probed &before) override {
        allocations.entered(c, Allocations::Role::size_first, probe, before);
    }
    void returned(Core &c, Addr at) override { allocations.returned(c, at); }

    std::shared_ptr<Probes> probes = std::make_shared<Probes>(phys);
    Allocations allocations;
};

TEST(Allocations, AreNamedAfterTheAllocatorThatTheProgramCalledWhereItJumpsToAnother) {
    TailJump m;
    m.run();
    Allocations::Piece piece{};
    StackSample site{};
    const std::string pieces = m.allocations.pieces(), sites = m.allocations.sites();
    ASSERT_EQ(pieces.size(), sizeof piece);
    ASSERT_GE(sites.size(), sizeof site);
    std::memcpy(&piece, pieces.data(), sizeof piece);
    std::memcpy(&site, sites.data(), sizeof site);
    EXPECT_EQ(piece.start, kPiece);
    EXPECT_EQ(piece.size, 48u);
    EXPECT_EQ(site.line, arrays);
    EXPECT_EQ(site.pc, kCaller + 9);
}

} // namespace
