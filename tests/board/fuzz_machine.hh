// SPDX-License-Identifier: BSD-3-Clause
// A whole board under random programs: each stream puts a core into a random state (mode, privilege level, descriptor and page
// tables, some of them damaged, registers that point at memory, tables and device registers) before random code. What
// the guest does to itself does not matter here, only that it is all that happens.
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>

#include <unistd.h>

#include "base/error.hh"
#include "base/rng.hh"
#include "board/board.hh"
#include "board/registers.hh"
#include "cpu/x86/family10h_model.hh"
#include "cpu/x86/system/far.hh"

namespace moscope::test {

class FuzzMachine {
  public:
    static constexpr unsigned kCores = 2;

    explicit FuzzMachine(std::uint64_t seed) : rng_(seed) {
        config_.cores = config_.cores_per_chip = kCores;
        config_.chips = 1;
        config_.memory_per_node = 64 << 20;
        config_.hops = {{0}};
        config_.cpu = x86::test::family10h_model();
        config_.cpu.msrs[0x1d9] = {0, 0x3f};
        config_.disk = file_.path;
        memory_ = std::make_unique<GuestMemory>(config_.memory());
        board_ = std::make_unique<Board>(config_, queue_, *memory_);
        for (unsigned i = 0; i < 4096; ++i)
            write<std::uint64_t>(kJunk + 8 * i, rng_.next());
    }

    /// A random program on each core and a turn for each: mostly a short one, because what follows a program's first faults is
    /// much the same from one to the next. The bytes of an instruction that the model lacks, or nothing.
    std::string streams() {
        for (auto &c : board_->cores)
            prepare(*c);
        board_->clear_ending();
        cut_.start(board_->scheduler.now(), one_in(32) ? kNever : kNanosecond * static_cast<Tick>(5 + rng_.below(30)));
        const auto outcome = board_->scheduler.run([] { return true; });
        board_->console.clear();
        return outcome == FunctionalScheduler::Outcome::unmodelled ? describe_instruction(*board_->scheduler.culprit())
                                                                   : "";
    }

  private:
    static constexpr Tick kNanosecond = 1'000'000;

    /// Events for their time alone: a core's turn ends where one is due.
    class Cut final : public Component {
      public:
        explicit Cut(EventQueue &q)
            : Component(q, "cut", [](Component &c, Tick now) { static_cast<Cut &>(c).next(now); }) {}
        void start(Tick now, Tick every) {
            every_ = every;
            left_ = kCores;
            next(now);
        }

      private:
        void next(Tick now) { schedule(every_ == kNever || !left_-- ? kNever : now + every_); }
        Tick every_ = kNever;
        unsigned left_ = 0;
    };

    /// What the disk shows: zeros.
    struct File {
        File() : path((std::filesystem::temp_directory_path() / "moscope-fuzz-XXXXXX").string()) {
            const int fd = mkstemp(path.data());
            if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
                throw UserError(path + ": cannot be made: expected a folder for temporary files");
            close(fd);
        }
        ~File() { std::filesystem::remove(path); }
        std::string path;
    };

    // Guest memory: tables, junk, stacks and code of each core.
    static constexpr Addr kJunk = 0x100000, kGdt = 0x110000, kIdt = 0x111000, kTss = 0x113000, kTables = 0x120000,
                          kLow = 0x1000, kCode = 0x200000, kStack = 0x300000;
    enum Paging : unsigned { none, two_levels, three_levels, four_levels };

    template <class T> void write(Addr a, T x) { std::memcpy(memory_->base() + a, &x, sizeof x); }
    bool one_in(unsigned n) { return rng_.below(n) == 0; }
    template <class T> T pick(std::initializer_list<T> of) { return of.begin()[rng_.below(of.size())]; }

    static std::uint64_t descriptor(std::uint64_t base, std::uint64_t limit, std::uint64_t attr) {
        return (limit & 0xffff) | (base & 0xffffff) << 16 | attr << 40 | (limit >> 16 & 15) << 48 |
               (base >> 24 & 255) << 56;
    }

    std::uint64_t address() {
        switch (rng_.below(12)) {
        case 0: return 0xfee00000 + rng_.below(0x1000);                          // local APIC
        case 1: return pick<Addr>({0xfec00000, 0xfed00000}) + rng_.below(0x400); // IO-APIC, HPET
        case 2: return 0xe0000000 + (rng_.below(32) << 15) + rng_.below(0x1000); // PCI configuration
        case 3: return rng_.next();
        case 4: return kTables + rng_.below(0x8000);
        case 5: return kGdt + rng_.below(0x4000);
        case 6: return (rng_.below(0x4000) << 12) - rng_.below(16); // ends of pages
        case 7: return 0xc0000000 + rng_.below(0x20000000);         // windows of devices
        case 8:
            return pick<Addr>({0x7fffffffffff, 0xffff800000000000, 0xffffffff, 0x100000000, 64 << 20}) - rng_.below(32);
        default: return rng_.below(64 << 20);
        }
    }

    // --- tables

    void damage(Addr from, Addr bytes) {
        if (!one_in(4))
            return;
        for (unsigned n = 1 + static_cast<unsigned>(rng_.below(4)); n--;) {
            const Addr at = from + rng_.below(bytes / 8) * 8;
            std::uint64_t x;
            std::memcpy(&x, memory_->base() + at, 8);
            write<std::uint64_t>(at, x ^ std::uint64_t{1} << rng_.below(64));
        }
    }

    void descriptor_tables(bool long_mode) {
        static constexpr std::uint64_t attrs[] = {0,      0xc09b, 0xc093, 0xa09b, 0x009b, 0x0093, 0xc0fb, 0xc0f3,
                                                  0xa0fb, 0x00fb, 0x00f3, 0xc097, 0xc09f, 0xc0ff, 0x0082, 0x0013};
        for (unsigned i = 0; i < 16; ++i)
            write<std::uint64_t>(kGdt + 8 * i, descriptor(0, i == 4 || i == 5 ? 0xffff : 0xfffff, attrs[i]));
        write<std::uint64_t>(kGdt + 0x80,
                             descriptor(kTss, 0x2fff, pick<std::uint64_t>({0x89, 0x8b, 0x81}))); // and its upper half
        write<std::uint64_t>(kGdt + 0x88, 0);
        write<std::uint64_t>(kGdt + 0x90,
                             (kCode & 0xffff) | 0x08ull << 16 | 0xeull << 44 | 0x8cull << 40 | kCode >> 16 << 48);
        write<std::uint64_t>(kGdt + 0x98, descriptor(0x0080, 0, 0x85) | 0x80ull << 16); // a task gate
        for (unsigned v = 0; v < 256; ++v) {
            const std::uint64_t to = kCode + (v % 64) * 64;
            const std::uint64_t type =
                pick<std::uint64_t>({0x8e, 0x8f, 0xee, 0xef, long_mode ? 0x8e : 0x85ull, long_mode ? 0xee : 0x86ull});
            const std::uint64_t gate = (to & 0xffff) |
                                       std::uint64_t{long_mode      ? 0x18u
                                                     : type == 0x85 ? 0x80u
                                                                    : 0x08u}
                                           << 16 |
                                       type << 40 | (to >> 16) << 48 |
                                       (long_mode && one_in(4) ? rng_.below(8) << 32 : 0);
            write<std::uint64_t>(kIdt + (long_mode ? 16 : 8) * v, gate);
            if (long_mode)
                write<std::uint64_t>(kIdt + 16 * v + 8, 0);
        }
        for (unsigned i = 0; i < 32; ++i)
            write<std::uint64_t>(kTss + 4 + 8 * i,
                                 long_mode ? kStack + 0x1000 * (1 + i % 8) : (kStack + 0x1000) | 0x10ull << 32);
        write<std::uint16_t>(kTss + 0x66, static_cast<std::uint16_t>(one_in(4) ? rng_.below(0x3000) : 0x68));
        damage(kGdt, 0x100);
        damage(kIdt, 0x1000);
        damage(kTss, 0x80);
    }

    /// Tables that map the low 4 GiB on themselves, the first 2 MiB in small pages; the address of their top.
    Addr page_tables(Paging p) {
        constexpr Addr top = kTables, pdpt = kTables + 0x1000, pd = kTables + 0x2000, pt = kTables + 0x6000;
        const std::uint64_t rights = pick<std::uint64_t>({7, 7, 7, 3, 5});
        if (p == two_levels) {
            for (unsigned i = 0; i < 1024; ++i) {
                write<std::uint32_t>(top + 4 * i, i << 22 | 0x80 | 7);
                write<std::uint32_t>(pt + 4 * i,
                                     i << 12 | static_cast<std::uint32_t>(one_in(16) ? rng_.below(8) : rights));
            }
            write<std::uint32_t>(top, pt | 7);
            damage(top, 0x100);
            return top;
        }
        std::memset(memory_->base() + top, 0, 0x1000);
        write<std::uint64_t>(top, pdpt | 7);
        write<std::uint64_t>(top + 8 * 511, one_in(2) ? top | 7 : 0); // on itself
        for (unsigned i = 0; i < 4; ++i)
            write<std::uint64_t>(pdpt + 8 * i, (pd + 0x1000 * i) | (p == three_levels ? 1 : 7));
        for (unsigned i = 0; i < 2048; ++i)
            write<std::uint64_t>(pd + 8 * i, Addr{i} << 21 | 0x80 | 7);
        for (unsigned i = 0; i < 512; ++i)
            write<std::uint64_t>(pt + 8 * i,
                                 Addr{i} << 12 | (one_in(16) ? rng_.below(8) : rights) | (one_in(32) ? 1ull << 63 : 0));
        write<std::uint64_t>(pd, pt | 7);
        if (p == four_levels && one_in(2))
            write<std::uint64_t>(pdpt + 8 * 3, 0xc0000000 | 0x80 | 7);
        damage(top, 0x7000);
        return p == four_levels ? top : pdpt;
    }

    // --- code

    void byte(std::uint8_t b) { code_[length_ < sizeof code_ ? length_++ : 0] = b; }
    void random_bytes(unsigned n) {
        while (n--)
            byte(static_cast<std::uint8_t>(rng_.next()));
    }
    void instruction(bool code64) {
        for (unsigned n = static_cast<unsigned>(rng_.below(4)); n > 1; --n)
            byte(pick<std::uint8_t>({0x66, 0x66, 0x67, 0xf0, 0xf2, 0xf3, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65}));
        if (code64 && one_in(2))
            byte(static_cast<std::uint8_t>(0x40 | rng_.below(16)));
        switch (rng_.below(8)) {
        case 0:
        case 1: byte(static_cast<std::uint8_t>(rng_.next())); break;
        case 2:
        case 3:
            byte(0x0f);
            byte(static_cast<std::uint8_t>(rng_.next()));
            break;
        case 4: byte(static_cast<std::uint8_t>(0xd8 + rng_.below(8))); break;
        case 5: // of the system
            byte(0x0f);
            byte(pick<std::uint8_t>({0x00, 0x01, 0x02, 0x03, 0x05, 0x06, 0x07, 0x09, 0x20, 0x21, 0x22, 0x23,
                                     0x30, 0x32, 0x33, 0x34, 0x35, 0xa2, 0xae, 0xb2, 0xb4, 0xc7, 0x0d, 0x18}));
            break;
        case 6: // transfers, segments, strings, ports
            byte(pick<std::uint8_t>({0xcd, 0xcf, 0xca, 0xcb, 0x9a, 0xea, 0x9c, 0x9d, 0x6c, 0x6d, 0x6e, 0x6f,
                                     0xe4, 0xe5, 0xe6, 0xe7, 0xec, 0xed, 0xee, 0xef, 0xa4, 0xa5, 0xa6, 0xaa,
                                     0xab, 0xac, 0xae, 0x8e, 0x17, 0x07, 0xc4, 0xc5, 0xc8, 0xc9, 0x62, 0x63}));
            break;
        default:
            byte(pick<std::uint8_t>(
                {0x89, 0x8b, 0x01, 0x87, 0x80, 0x83, 0xc7, 0xff, 0xff, 0xfe, 0xf7, 0x50, 0x58, 0xe8, 0xeb, 0x74}));
        }
        // ModRM: mostly memory by a register, so that addresses are those of the pool.
        byte(static_cast<std::uint8_t>(one_in(2) ? rng_.next() : rng_.next() & 0x7f));
        random_bytes(static_cast<unsigned>(rng_.below(6)));
    }

    // --- a core

    void prepare(x86::Core &c) {
        namespace X = x86;
        // 0 real, 1 virtual-8086, 2 16-bit, 3 32-bit, 4 compatibility, 5 to 8 64-bit
        const unsigned mode = static_cast<unsigned>(rng_.below(9));
        const bool long_mode = mode >= 4, code64 = mode >= 5, real = mode == 0;
        const unsigned cpl = real ? 0 : mode == 1 ? 3 : one_in(2) ? 3 : 0;
        const Paging paging = real ? none : long_mode ? four_levels : pick<Paging>({none, two_levels, three_levels});
        descriptor_tables(long_mode);
        c.cr3 = paging == none ? 0 : page_tables(paging);
        c.cr0 = X::cr0::et | X::cr0::ne | (real ? 0 : X::cr0::pe) | (paging == none ? 0 : X::cr0::pg) |
                (one_in(2) ? X::cr0::wp : 0) | (one_in(8) ? X::cr0::am : 0) | (one_in(16) ? X::cr0::ts : 0);
        c.cr4 = (one_in(8) ? 0 : X::cr4::osfxsr | X::cr4::osxmmexcpt) | X::cr4::pse |
                (paging >= three_levels ? X::cr4::pae : 0) | (one_in(2) ? X::cr4::pge | X::cr4::de : 0) |
                (one_in(2) ? X::cr4::vme : 0);
        c.efer = X::efer::sce | (long_mode ? X::efer::lme | X::efer::lma : 0) | (one_in(2) ? X::efer::nxe : 0);
        c.gdtr = {kGdt, static_cast<std::uint16_t>(one_in(16) ? rng_.below(256) : 0xff)};
        c.idtr = {real ? 0 : kIdt, static_cast<std::uint16_t>(one_in(16)  ? rng_.below(4096)
                                                              : long_mode ? 0xfff
                                                                          : 0x7ff)};
        c.tr = {kTss, 0x2fff, 0x80, static_cast<std::uint16_t>(0x8b)};
        c.ldtr = {};
        c.ldtr.attr = 0;
        c.cpl = cpl;
        c.flags.set_value(X::Flags::fixed | (rng_.next() & 0xcd5) | (one_in(16) ? X::Flags::tf : 0) |
                          (one_in(4) ? X::Flags::if_ : 0) | (one_in(4) ? X::Flags::iopl : 0) |
                          (one_in(16) ? X::Flags::nt : 0) | (one_in(8) ? X::Flags::ac : 0) |
                          (mode == 1 ? X::Flags::vm : 0));
        segments(c, mode, cpl);
        for (unsigned i = 0; i < 16; ++i) {
            c.r[i] = one_in(4) ? rng_.below(256) : address();
            c.xmm[i].u64[0] = rng_.next();
            c.xmm[i].u64[1] = one_in(2) ? rng_.next() : 0x3ff0000000000000;
        }
        for (auto &x : c.fpu.st)
            x = {rng_.next(), static_cast<std::uint16_t>(rng_.next())};
        c.fpu.valid = static_cast<std::uint8_t>(rng_.next());
        c.fpu.status = static_cast<std::uint16_t>(rng_.next() & 0x787f);
        c.fpu.control = static_cast<std::uint16_t>(one_in(4) ? rng_.next() & 0x1f7f : 0x037f);
        if (c.fpu.status & ~c.fpu.control & 0x3f) // ES follows from the two, however they were loaded
            c.fpu.status |= X::X87::kSummary | X::X87::kBusy;
        c.mxcsr = one_in(4) ? static_cast<std::uint32_t>(rng_.next() & 0x2ffff) : 0x1f80;
        if (!one_in(4))
            c.r[X::rsp] = (real || mode == 1 ? 0x8000 : kStack + 0x8000) - rng_.below(64);
        if (one_in(2))
            c.r[X::rcx] = rng_.below(64);
        if (one_in(4))
            c.r[X::rdx] = pick<std::uint64_t>({0x20, 0x21, 0x40, 0x43, 0x60, 0x64, 0x70, 0x71, 0x80, 0x92, 0xcf8, 0xcfc,
                                               0x3f8, 0x402, 0x604}) +
                          rng_.below(8);
        for (unsigned i = 0; i < 4; ++i)
            c.dr[i] = address();
        c.dr[7] = one_in(16) ? (rng_.next() & 0xffff00ff) | 0x400 : 0x400;
        c.star = 0x001b000800000000 | kCode;
        c.lstar = c.cstar = one_in(4) ? address() : kCode + 64;
        c.halted = c.wait_for_sipi = c.nmi_blocked = false;
        c.shadow = c.struck = 0;

        const Addr page = real || mode == 1 ? kLow : kCode;
        const Addr at = page + c.number * 0x2000 + (one_in(8) ? 0x1000 - rng_.below(16) : rng_.below(0x40) * 64);
        length_ = 0;
        for (unsigned n = 1 + static_cast<unsigned>(rng_.below(8)); n--;)
            instruction(code64);
        std::memcpy(memory_->base() + at, code_, length_);
        board_->blocks.front()->written_range(PhysAddr(at), length_);
        board_->blocks.front()->written_range(PhysAddr(kGdt), kTables + 0x8000 - kGdt);
        c.rip = at - c.seg[X::cs].base;
        c.flush_tlb(true);
        c.mode_changed();
        c.debug_changed();
    }

    void segments(x86::Core &c, unsigned mode, unsigned cpl) {
        namespace X = x86;
        for (unsigned s = 0; s < X::kSegs; ++s) {
            X::Segment &x = c.seg[s];
            if (mode <= 1) {
                const auto selector = static_cast<std::uint16_t>(one_in(4) ? rng_.below(0x1000) : 0);
                x = {Addr{s == X::cs ? 0u : selector} << 4, 0xffff, s == X::cs ? std::uint16_t{0} : selector,
                     static_cast<std::uint16_t>(mode == 1 ? 0xf3 : 0x93)};
                continue;
            }
            const unsigned user = cpl ? 0x60 : 0, code = mode >= 5 ? 0xa09b : mode == 2 ? 0x009b : 0xc09b;
            const auto selector = static_cast<std::uint16_t>(s == X::cs ? (cpl         ? (mode >= 5 ? 0x43 : 0x33)
                                                                           : mode >= 5 ? 0x18
                                                                                       : 0x08)
                                                             : cpl      ? 0x3b
                                                                        : 0x10);
            x = {0, 0xffffffff, selector,
                 static_cast<std::uint16_t>((s == X::cs  ? code
                                             : mode == 2 ? 0x0093u
                                                         : 0xc093u) |
                                            user)};
            if (mode < 5 && s != X::cs && one_in(8)) {
                x.limit = static_cast<std::uint32_t>(rng_.below(0x400000));
                x.attr = static_cast<std::uint16_t>(x.attr ^ pick<unsigned>({0, 2, 4, 8, 0x80, 0x4000}));
            }
            if ((s == X::fs || s == X::gs) && one_in(2))
                x.base = address() & (mode >= 4 ? ~Addr{0} : 0xffffffff);
        }
    }

    Rng rng_;
    File file_;
    SystemConfig config_;
    EventQueue queue_;
    Cut cut_{queue_};
    std::unique_ptr<GuestMemory> memory_;
    std::unique_ptr<Board> board_;
    std::uint8_t code_[256] = {};
    unsigned length_ = 0;
};

} // namespace moscope::test
