// SPDX-License-Identifier: BSD-3-Clause
// Detailed mode has paths of its own for repeated string stores and for read-modify-writes. The same guest program leaves
// the same registers and the same memory in functional mode and in detailed mode. Each program runs on both core models,
// with all lines present, with lines that miss, and with lines that the memory system takes away in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/rng.hh"
#include "cpu/x86/timed/overlapping_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kPage = 0x1000, kEndOfData = 0x200000, kLog = 0x300000, kEndOfLog = kLog + 0x20000;

/// Where DRAM holds this byte of the data. Adjacent pages are not adjacent in DRAM, so an access that runs past the end
/// of a page without a translation of the next page reaches a wrong page.
constexpr Addr physical(Addr va) {
    constexpr Addr kPages = (kEndOfData - kData) / kPage;
    return kData + (va - kData) / kPage * 37 % kPages * kPage + va % kPage;
}

constexpr Addr kHandlerOfPageFault = SystemMachine::kHandlers + 16 * 14 + 1; ///< behind its HLT

enum class Lines { present, missing, taken_away };

/// Guest code as the test composes it. After each case the code appends the registers of interest to the log.
struct Program {
    std::vector<std::uint8_t> code;
    void put(Bytes bytes) { code.insert(code.end(), bytes.begin(), bytes.end()); }
    void set(unsigned r, std::uint64_t value) { // mov r64, imm64
        code.push_back(r < 8 ? 0x48 : 0x49);
        code.push_back(static_cast<std::uint8_t>(0xb8 | (r & 7)));
        for (unsigned i = 0; i < 8; ++i)
            code.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    }
    /// The operands of a read-modify-write at `address`.
    void operands(Addr address) {
        set(rdi, address);
        set(rax, 0xfedc'ba98'7654'3210 + address);
        set(rdx, 0x0f1e'2d3c'4b5a'6978 - address);
    }
    void log() {
        put(CODE("mov [r15], rcx; mov [r15 + 8], rdi; mov [r15 + 16], rax; mov [r15 + 24], rdx; pushfq;"
                 "pop qword ptr [r15 + 32]; lea r15, [r15 + 40]"));
    }
    void load(SystemMachine &m) const {
        ASSERT_LT(kCode + code.size(), SystemMachine::kGdt);
        m.small_pages();
        for (Addr va = kData; va < kEndOfData; va += kPage)
            m.page(va, physical(va) | 7);
        Rng rng(1);
        for (Addr a = kData; a < kEndOfData; a += 8)
            m.write<std::uint64_t>(a, rng.next());
        for (std::size_t i = 0; i < code.size(); ++i)
            m.write<std::uint8_t>(kCode + i, code[i]);
        m.core.r[r15] = kLog;
        m.core.rip = kCode;
    }
};

/// A machine with a program that has not run.
struct Loaded : SystemMachine {
    explicit Loaded(const Program &program) {
        kernel64();
        program.load(*this);
    }
};

void lose_lines(OverlappingMachine &o) {
    Rng rng(2);
    for (const auto &[begin, end] : {std::pair{kData, kEndOfData}, std::pair{kLog, kEndOfLog}})
        for (Addr line = begin; line < end; line += kLineBytes)
            if (rng.below(3) != 0)
                o.port.lose(line, static_cast<Tick>(20 + rng.below(200)) * kNs);
}

/// At random times the core loses the line that it writes, or an adjacent one.
void take_lines_away(OverlappingMachine &o, std::shared_ptr<Rng> rng) {
    o.at(o.queue.now() + static_cast<Tick>(5 + rng->below(40)) * kNs, [&o, rng] {
        if (o.m.core.halted)
            return;
        const Addr line = line_of(o.m.core.r[rdi]) + kLineBytes * rng->below(3) - kLineBytes;
        if (line >= kData && line < kEndOfData)
            o.port.lose(physical(line), static_cast<Tick>(20 + rng->below(60)) * kNs);
        take_lines_away(o, rng);
    });
}

void expect_same(const SystemMachine &detailed, const SystemMachine &functional) {
    for (unsigned r = 0; r < 16; ++r)
        EXPECT_EQ(detailed.core.r[r], functional.core.r[r]) << "register " << r;
    EXPECT_EQ(detailed.core.rip, functional.core.rip);
    EXPECT_EQ(detailed.core.flags.value(), functional.core.flags.value());
    EXPECT_EQ(detailed.core.cr2, functional.core.cr2);
    const auto [d, f] = std::mismatch(detailed.memory.begin(), detailed.memory.end(), functional.memory.begin());
    EXPECT_TRUE(d == detailed.memory.end())
        << "at 0x" << std::hex << d - detailed.memory.begin() << ": 0x" << std::to_integer<unsigned>(*d)
        << ", in functional mode 0x" << std::to_integer<unsigned>(*f);
}

using Detailed = std::tuple<const char *, Lines>; ///< the core model

/// Runs a program in both modes. `prepare` completes each machine.
struct BothModes {
    template <class Prepare>
    BothModes(const Program &program, const Detailed &how, Prepare &&prepare) : detailed(params(how)) {
        detailed.core.split_lock = &split_lock;
        functional.kernel64();
        for (SystemMachine *m : {&functional, &detailed.m}) {
            program.load(*m);
            prepare(*m);
        }
        EXPECT_EQ(functional.run(10'000'000), Exit::halt);
        const auto lines = std::get<Lines>(how);
        if (lines != Lines::present)
            lose_lines(detailed);
        if (lines == Lines::taken_away)
            take_lines_away(detailed, std::make_shared<Rng>(3));
        detailed.run();
        expect_same(detailed.m, functional);
    }
    BothModes(const Program &program, const Detailed &how) : BothModes(program, how, [](SystemMachine &) {}) {}
    static TimedParams params(const Detailed &how) {
        TimedParams p;
        p.core.model = std::get<0>(how);
        return p;
    }

    SystemMachine functional;
    SplitLock split_lock;
    OverlappingMachine detailed;
};

const auto kDetailed = testing::Combine(testing::Values("blocking", "out_of_order"),
                                        testing::Values(Lines::present, Lines::missing, Lines::taken_away));

std::string name_of(const Detailed &how) {
    constexpr const char *kLines[] = {"present", "missing", "taken_away"};
    return std::string(std::get<0>(how)) + "_" + kLines[static_cast<unsigned>(std::get<Lines>(how))];
}

Bytes rep_stos(unsigned size) {
    return size == 1   ? CODE("rep stosb")
           : size == 2 ? CODE("rep stosw")
           : size == 4 ? CODE("rep stosd")
                       : CODE("rep stosq");
}

/// Read-modify-writes of the operand at RDI.
std::vector<Bytes> forms() {
    return {
        CODE("add [rdi], al"),
        CODE("lock add [rdi], ax"),
        CODE("add [rdi], eax"),
        CODE("lock add [rdi], rax"),
        CODE("sbb qword ptr [rdi], 5"),
        CODE("inc byte ptr [rdi]"),
        CODE("lock inc word ptr [rdi]"),
        CODE("inc dword ptr [rdi]"),
        CODE("lock inc qword ptr [rdi]"),
        CODE("xchg [rdi], al"),
        CODE("xchg [rdi], ax"),
        CODE("xchg [rdi], eax"),
        CODE("xchg [rdi], rax"),
        CODE("lock cmpxchg [rdi], edx"),
        CODE("mov rax, [rdi]; lock cmpxchg [rdi], rdx"),
        CODE("mov eax, [rdi]; cmpxchg [rdi], edx"),
        CODE("lock cmpxchg8b [rdi]"),
        CODE("lock xadd [rdi], rdx"),
        CODE("shl dword ptr [rdi], 3"),
        CODE("lock bts qword ptr [rdi], 7"),
    };
}

struct RepStos : testing::TestWithParam<std::tuple<Detailed, unsigned>> {
    const Detailed &how() const { return std::get<0>(GetParam()); }
    std::uint64_t size() const { return std::get<1>(GetParam()); }
};
struct ReadModifyWrite : testing::TestWithParam<Detailed> {};

} // namespace

TEST_P(RepStos, LeavesTheSameAsInFunctionalMode) {
    const std::uint64_t n = size(), in_line = kLineBytes / n;
    Program p;
    Addr area = kData; // three pages for each case
    std::uint64_t value = 0x0123'4567'89ab'cdef;
    for (const bool down : {false, true})
        for (const Addr begin : {0u, 1u, 61u, 0xfe0u, 0xffdu})
            for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, in_line - 1,
                                              in_line, 3 * in_line + 3, kPage / n + 5}) {
                p.set(rcx, count);
                p.set(rdi, area + (down ? 2 : 0) * kPage + begin);
                p.set(rax, value += 0x1111'1111'1111'1111);
                p.put(down ? CODE("std") : CODE("cld"));
                if (count % 2) // with an empty store buffer, and with the log's stores in it
                    p.put(CODE("mfence"));
                p.put(rep_stos(static_cast<unsigned>(n)));
                p.log();
                area += 3 * kPage;
            }
    p.put(CODE("hlt"));
    ASSERT_LE(area, kEndOfData);
    const BothModes run(p, how());
}

TEST_P(RepStos, StopsAtTheElementThatFaults) {
    constexpr std::uint64_t kStored = 77, kBeyond = 10;
    const std::uint64_t n = size();
    const Addr page = kData + 0x10 * kPage;
    for (const bool down : {false, true})
        for (const Addr across : {Addr{0}, Addr{n / 2}}) { // the bytes of the faulting element that have a page
            SCOPED_TRACE((down ? "down, " : "up, ") + std::to_string(across));
            const Addr begin = down ? page + across + (kStored - 1) * n : page + kPage - across - kStored * n;
            const Addr end = down ? begin - kStored * n : begin + kStored * n;
            Program p;
            p.set(rcx, kStored + kBeyond);
            p.set(rdi, begin);
            p.set(rax, 0x5a5a'5a5a'5a5a'5a5a);
            p.put(down ? CODE("std") : CODE("cld"));
            p.put(rep_stos(static_cast<unsigned>(n)));
            p.put(CODE("hlt"));
            const BothModes run(p, how(), [&](SystemMachine &m) { m.page(down ? page - kPage : page + kPage, 0); });
            const SystemMachine &m = run.detailed.m;
            EXPECT_EQ(m.core.rip, kHandlerOfPageFault);
            EXPECT_EQ(m.core.r[rcx], kBeyond);
            EXPECT_EQ(m.core.r[rdi], end);
            EXPECT_EQ(m.core.cr2, down ? end : std::max(end, page + kPage));
            const Loaded before(p);
            const Addr first = down ? end + n : begin;
            for (Addr a = page - kPage; a < page + 2 * kPage; ++a) {
                const bool stored = a >= first && a < first + kStored * n;
                ASSERT_EQ(m.read<std::uint8_t>(physical(a)), stored ? 0x5a : before.read<std::uint8_t>(physical(a)))
                    << std::hex << a;
            }
        }
}

TEST_P(RepStos, OverCodeThatHasRunChangesThatCode) {
    constexpr Addr kRoutine = 0x9000;
    Program p;
    p.set(rsi, kRoutine);
    p.set(rdi, kRoutine + 3);
    p.set(rcx, 24 / size());
    p.set(rax, 0x9090'9090'9090'9090);
    p.put(CODE("xor ebx, ebx; call rsi; cld"));
    p.put(rep_stos(static_cast<unsigned>(size())));
    p.put(CODE("call rsi; hlt"));
    const BothModes run(p, how(), [](SystemMachine &m) {
        Addr a = kRoutine;
        for (unsigned i = 0; i < 16; ++i) // inc rbx
            for (const unsigned b : {0x48, 0xff, 0xc3})
                m.write(a++, static_cast<std::uint8_t>(b));
        m.write<std::uint8_t>(a, 0xc3);
    });
    EXPECT_EQ(run.detailed.m.core.r[rbx], 16u + 8u);
}

INSTANTIATE_TEST_SUITE_P(Modes, RepStos, testing::Combine(kDetailed, testing::Values(1u, 2u, 4u, 8u)),
                         [](const auto &info) {
                             return name_of(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
                         });

TEST_P(ReadModifyWrite, LeavesTheSameAsInFunctionalMode) {
    Program p;
    Addr area = kData;
    for (const Bytes form : forms())
        for (const bool after_a_store : {false, true}) { // to a part of the operand
            // Aligned, unaligned, over the end of a line, over that of a page.
            for (const Addr offset : {0x100u, 0x183u, 0x23du, 0x2bfu, 0xffdu, 0x1fffu}) {
                p.operands(area + offset);
                if (after_a_store)
                    p.put(CODE("mov [rdi + 1], dx"));
                p.put(form);
                p.log();
            }
            area += 3 * kPage;
        }
    p.put(CODE("hlt"));
    ASSERT_LE(area, kEndOfData);
    const BothModes run(p, GetParam());
}

TEST_P(ReadModifyWrite, WritesNothingIfItsSecondPageFaults) {
    for (const Bytes form : {CODE("add [rdi], eax"), CODE("lock add [rdi], rax"), CODE("xchg [rdi], rax"),
                             CODE("lock cmpxchg [rdi], edx")}) {
        Program p;
        p.operands(kData + kPage - 2);
        p.put(form);
        const BothModes run(p, GetParam(), [](SystemMachine &m) { m.page(kData + kPage, 0); });
        EXPECT_EQ(run.detailed.m.core.rip, kHandlerOfPageFault);
        EXPECT_EQ(run.detailed.m.core.cr2, kData + kPage);
        const Loaded before(p);
        EXPECT_EQ(run.detailed.m.read<std::uint16_t>(physical(kData + kPage - 2)),
                  before.read<std::uint16_t>(physical(kData + kPage - 2)));
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, ReadModifyWrite, kDetailed, [](const auto &info) { return name_of(info.param); });
