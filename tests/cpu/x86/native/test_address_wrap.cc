// SPDX-License-Identifier: BSD-3-Clause
// Operands with 16-bit addresses that reach over 64 KiB, or with 32-bit ones over 4 GiB. What the processor moves in
// parts (saved state, 80-bit values, far pointers, bounds) continues with the next part at offset 0. A part that itself
// crosses the end continues beyond it, except in compatibility mode, where linear addresses end at 4 GiB.
// AMD's manual says only that an address is truncated to its size (24592, 2.2.3). The tables state what the host does,
// and the host is tested too if it lets a test map page 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "cpu/x86/native/host_cpu.hh"
#include "cpu/x86/native/model_cpu.hh"

namespace moscope::x86::native {
namespace {

constexpr std::uint64_t kEnd16 = 0x10000, kEnd32 = 0x1'0000'0000;

enum Needs { low, beyond, both }; ///< the page at 0, the one at the end of addresses

struct Row {
    const char *name;
    Bytes code;
    unsigned at; ///< offset of the operand
    Needs needs;
    std::uint64_t address; ///< where it faults without a page that it needs; if it needs both, without the one at 0
    bool stores = false;
    int done = -1; ///< how it ends with the page that it needs
    bool over_4_gib =
        false; ///< one access, in 32-bit code: #GP on AMD's processors, whatever pages there are (amd_host.hh)
};

const Row kRows16[] = {
    {"fxsave", {0x67, 0x0f, 0xae, 0x07}, 0xff00, low, 0xff, true},
    {"fxrstor", {0x67, 0x0f, 0xae, 0x0f}, 0xff00, low, 0xff},
    {"fnsave, 32 bits", {0x67, 0xdd, 0x37}, 0xffd0, low, 0x3b, true},
    {"fnsave, 16 bits, after the significand of a register", {0x66, 0x67, 0xdd, 0x37}, 0xffea, low, 0x47, true},
    {"fnsave, 32 bits, within a field", {0x67, 0xdd, 0x37}, 0xfffa, both, 0x65},
    {"frstor, 32 bits", {0x67, 0xdd, 0x27}, 0xffd0, low, 0x3b},
    {"fnstenv", {0x67, 0xd9, 0x37}, 0xfff0, low, 0xb, true},
    {"fldenv", {0x67, 0xd9, 0x27}, 0xfff0, low, 0xb},
    {"fldenv, within a field", {0x67, 0xd9, 0x27}, 0xfff6, both, 0x11},
    {"fstp m80", {0x67, 0xdb, 0x3f}, 0xfff8, low, 0, true},
    {"fstp m80, within the significand", {0x67, 0xdb, 0x3f}, 0xfffa, both, 2},
    {"fld m80", {0x67, 0xdb, 0x2f}, 0xfff8, low, 0},
    {"fbstp m80", {0x67, 0xdf, 0x37}, 0xfff8, low, 0},
    {"fbld m80", {0x67, 0xdf, 0x27}, 0xfff8, low, 0},
    {"les m16:32", {0x67, 0xc4, 0x07}, 0xfffc, low, 0},
    {"les m16:32, within the offset", {0x67, 0xc4, 0x07}, 0xfffe, both, 2},
    {"les m16:16", {0x66, 0x67, 0xc4, 0x07}, 0xfffe, low, 0},
    {"jmp far m16:32", {0x67, 0xff, 0x2f}, 0xfffc, low, 0, false, exc_gp},
    {"bound m32&32", {0x67, 0x62, 0x07}, 0xfffc, low, 0},
    {"bound m32&32, within a bound", {0x67, 0x62, 0x07}, 0xfffa, beyond, 0x10000},
    {"bound m16&16", {0x66, 0x67, 0x62, 0x07}, 0xfffe, low, 0},
    {"mov m32", {0x67, 0x89, 0x07}, 0xfffe, beyond, 0x10000, true},
    {"movq m64", {0x67, 0x0f, 0x7f, 0x07}, 0xfffc, beyond, 0x10000, true},
    {"movdqu m128", {0xf3, 0x67, 0x0f, 0x7f, 0x07}, 0xfff8, beyond, 0x10000, true},
    {"cmpxchg8b m64", {0x67, 0x0f, 0xc7, 0x0f}, 0xfffc, beyond, 0x10000},
};

const Row kRows32In64[] = {
    {"fxsave", {0x67, 0x0f, 0xae, 0x07}, 0xffffff00, low, 0xff, true},
    {"fnsave", {0x67, 0xdd, 0x37}, 0xffffffd0, low, 0x3b, true},
    {"fstp m80", {0x67, 0xdb, 0x3f}, 0xfffffff8, low, 0, true},
    {"fstp m80, within the significand", {0x67, 0xdb, 0x3f}, 0xfffffffc, both, 4},
    {"movdqu m128", {0x67, 0xf3, 0x0f, 0x7f, 0x07}, 0xfffffff8, beyond, kEnd32, true},
    {"mov m32", {0x67, 0x89, 0x07}, 0xfffffffe, beyond, kEnd32, true},
};

const Row kRows32[] = {
    {"fxsave", {0x0f, 0xae, 0x07}, 0xffffff00, low, 0xff, true},
    {"fnsave", {0xdd, 0x37}, 0xffffffd0, low, 0x3b, true},
    {"fstp m80", {0xdb, 0x3f}, 0xfffffff8, low, 0, true},
    {"fstp m80, within the significand", {0xdb, 0x3f}, 0xfffffffc, low, 0, true, -1, true},
    {"movdqu m128", {0xf3, 0x0f, 0x7f, 0x07}, 0xfffffff8, low, 0, true, -1, true},
    {"mov m32", {0x89, 0x07}, 0xfffffffe, low, 0, true, -1, true},
};

struct Table {
    std::span<const Row> rows;
    std::uint64_t end;
    Mode mode;
    std::uint64_t above; ///< in the address register, and not of the address
};
const Table kTables[] = {{kRows16, kEnd16, Mode::code32, 0xbeef0000},
                         {kRows32In64, kEnd32, Mode::code64, 0x77'0000'0000},
                         {kRows32, kEnd32, Mode::code32, 0}};

Snapshot state(const Row &row, std::uint64_t above) {
    Snapshot s{};
    s.flags = 0x202;
    s.fx.control = 0x37f;
    s.fx.mxcsr = 0x1f80;
    s.fx.valid = 0xff;
    for (auto &r : s.fx.st)
        r = {0xc123456789abcdef, 0x4001, {}};
    for (auto &x : s.fx.xmm)
        x[0] = x[1] = 0x123456789abcdef;
    s.r[rsp] = kMiddle;
    s.r[rbx] = s.r[rdi] = above | row.at;
    s.r[rax] = row.stores ? 0x11223344 : 0; // of BOUND and CMPXCHG8B: equal to what is there
    return s;
}

// The pages that the test maps and unmaps: the first one, and those around both ends.
constexpr std::uint64_t kPages[] = {0, kEnd16 - 0x1000, kEnd16, kEnd32 - 0x1000, kEnd32};

template <class Cpu> void follow(Cpu &cpu, const Table &table, const Row &row, bool first_page) {
    SCOPED_TRACE(std::string(row.name) + (first_page ? ", no page at the end" : ", no page at 0"));
    cpu.clear();
    cpu.show(0, first_page);
    cpu.show(table.end, !first_page);
    Snapshot out;
    const Outcome o = cpu.run(row, table.mode, state(row, table.above), out);
    if (row.over_4_gib && cpu.is_amd()) {
        EXPECT_EQ(o.vector, exc_gp);
        EXPECT_EQ(o.error, 0u);
        return;
    }
    if (row.needs == both || first_page == (row.needs == beyond)) {
        EXPECT_EQ(o.vector, exc_pf);
        EXPECT_EQ(o.address, row.needs == both && first_page ? table.end : row.address);
        return;
    }
    EXPECT_EQ(o.vector, row.done);
    if (row.stores) {
        EXPECT_TRUE(cpu.written(first_page ? 0 : table.end));
        EXPECT_TRUE(cpu.written(table.end - 0x1000));
    }
}

template <class Cpu> void follow(Cpu &cpu) {
    for (const Table &table : kTables)
        for (const Row &row : table.rows)
            for (const bool first_page : {true, false})
                follow(cpu, table, row, first_page);
}

class LowModel {
  public:
    LowModel() {
        constexpr std::uint64_t pointers = ModelCpu::kTables + 0x1000, directory = ModelCpu::kTables + 0x2000;
        entry(directory, 0, kLow | kUser);
        entry(pointers, 3, kFourth | kUser);
        entry(kFourth, 511, kTop | kUser);
        entry(pointers, 4, kFifth | kUser);
        entry(kFifth, 0, kAbove | kUser);
    }
    void clear() {
        for (const std::uint64_t page : kPages) {
            std::memset(model_.memory(phys(page)), 0, 0x1000);
            show(page, true);
        }
    }
    void show(std::uint64_t page, bool there) {
        entry(page < kEnd32 - 0x1000 ? kLow
              : page < kEnd32        ? kTop
                                     : kAbove,
              page >> 12 & 511, there ? phys(page) | kUser : 0);
        model_.core().flush_tlb(true);
    }
    static bool is_amd() { return false; } // the model's rings are Intel's
    Outcome run(const Row &row, Mode mode, const Snapshot &in, Snapshot &out) {
        return model_.run(row.code, kCode + 0x800, in, out, mode);
    }
    bool written(std::uint64_t page) {
        const std::uint8_t *p = model_.memory(phys(page));
        return std::any_of(p, p + 0x1000, [](std::uint8_t x) { return x; });
    }

  private:
    static constexpr std::uint64_t kUser = 0x67, kLow = 0x30000, kFourth = 0x31000, kTop = 0x32000, kFifth = 0x33000,
                                   kAbove = 0x34000;
    static std::uint64_t phys(std::uint64_t page) {
        return 0x40000 +
               0x1000 * static_cast<std::uint64_t>(std::find(std::begin(kPages), std::end(kPages), page) - kPages);
    }
    void entry(std::uint64_t table, std::uint64_t index, std::uint64_t value) {
        std::memcpy(model_.memory(table + index * 8), &value, 8);
    }
    ModelCpu model_;
};

/// The host, if it gives away its lowest page.
class LowHost {
  public:
    bool map() {
        return std::all_of(std::begin(kPages), std::end(kPages), [](std::uint64_t page) {
            return mmap(at(page), 0x1000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
                        0) == at(page);
        });
    }
    ~LowHost() {
        for (const std::uint64_t page : kPages)
            munmap(at(page), 0x1000);
    }
    void clear() {
        for (const std::uint64_t page : kPages) {
            show(page, true);
            for (std::size_t i = 0; i < 0x1000; ++i)
                at(page)[i] = 0;
        }
    }
    void show(std::uint64_t page, bool there) {
        mprotect(at(page), 0x1000, there ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
    static bool is_amd() { return HostCpu::is_amd(); }
    Outcome run(const Row &row, Mode mode, const Snapshot &in, Snapshot &out) {
        return HostCpu::get().run(mode, row.code, kCode + 0x800, false, in, out);
    }
    bool written(std::uint64_t page) {
        bool any = false;
        for (std::size_t i = 0; i < 0x1000; ++i)
            any |= at(page)[i] != 0;
        return any;
    }

  private:
    static std::uint8_t *at(std::uint64_t a) {
        static volatile std::uint64_t base = 0; // hides from the compiler that this is a null pointer
        return reinterpret_cast<std::uint8_t *>(base + a);
    }
};

TEST(AddressWrap, EachPartOfAnOperandWrapsByItself) {
    LowModel model;
    follow(model);
}

TEST(AddressWrap, TheHostWrapsTheSameWay) {
    LowHost host;
    if (!host.map())
        GTEST_SKIP() << "the host keeps its lowest page (vm.mmap_min_addr)";
    follow(host);
}

} // namespace
} // namespace moscope::x86::native
