// SPDX-License-Identifier: BSD-3-Clause
// Runs an instruction on the processor that the tests themselves run on: a trampoline loads all registers, jumps
// to the bytes and stores all registers after them. Exceptions come back as signals, for which Linux reports vector,
// error code and address. Only one source of a program may include this header: it defines the trampoline.
#pragma once

#include <asm/ldt.h>
#include <asm/prctl.h>
#include <cpuid.h>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "cpu/x86/native/snapshot.hh"
#include "cpu/x86/state.hh"

extern "C" {
moscope::x86::native::Snapshot moscope_native_in, moscope_native_out;
std::uint64_t moscope_native_host_rsp, moscope_native_code;
std::uint32_t moscope_native_mxcsr = 0x1f80;
void moscope_native_enter();
void moscope_native_leave();
void moscope_native_return();
}
static_assert(offsetof(moscope::x86::native::Snapshot, flags) == 128);
static_assert(offsetof(moscope::x86::native::Snapshot, fx) == 144);

asm(R"(
    .intel_syntax noprefix
    .pushsection .text
    .globl moscope_native_enter, moscope_native_leave, moscope_native_return
moscope_native_enter:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [rip + moscope_native_host_rsp], rsp
    fxrstor64 [rip + moscope_native_in + 144]
    push qword ptr [rip + moscope_native_in + 128]
    popfq
    mov rax, [rip + moscope_native_in + 0]
    mov rcx, [rip + moscope_native_in + 8]
    mov rdx, [rip + moscope_native_in + 16]
    mov rbx, [rip + moscope_native_in + 24]
    mov rsp, [rip + moscope_native_in + 32]
    mov rbp, [rip + moscope_native_in + 40]
    mov rsi, [rip + moscope_native_in + 48]
    mov rdi, [rip + moscope_native_in + 56]
    mov r8, [rip + moscope_native_in + 64]
    mov r9, [rip + moscope_native_in + 72]
    mov r10, [rip + moscope_native_in + 80]
    mov r11, [rip + moscope_native_in + 88]
    mov r12, [rip + moscope_native_in + 96]
    mov r13, [rip + moscope_native_in + 104]
    mov r14, [rip + moscope_native_in + 112]
    mov r15, [rip + moscope_native_in + 120]
    jmp qword ptr [rip + moscope_native_code]
moscope_native_leave:
    mov [rip + moscope_native_out + 0], rax
    mov [rip + moscope_native_out + 8], rcx
    mov [rip + moscope_native_out + 16], rdx
    mov [rip + moscope_native_out + 24], rbx
    mov [rip + moscope_native_out + 32], rsp
    mov [rip + moscope_native_out + 40], rbp
    mov [rip + moscope_native_out + 48], rsi
    mov [rip + moscope_native_out + 56], rdi
    mov [rip + moscope_native_out + 64], r8
    mov [rip + moscope_native_out + 72], r9
    mov [rip + moscope_native_out + 80], r10
    mov [rip + moscope_native_out + 88], r11
    mov [rip + moscope_native_out + 96], r12
    mov [rip + moscope_native_out + 104], r13
    mov [rip + moscope_native_out + 112], r14
    mov [rip + moscope_native_out + 120], r15
    mov rsp, [rip + moscope_native_host_rsp]
    pushfq
    pop qword ptr [rip + moscope_native_out + 128]
    fxsave64 [rip + moscope_native_out + 144]
moscope_native_return:
    cld
    fninit
    ldmxcsr [rip + moscope_native_mxcsr]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
    .popsection
    .att_syntax prefix
)");

#ifdef MOSCOPE_ASAN
// Instructions with random operands reach the sanitizer's own memory (its shadow begins below 4 GiB), where the model
// has no page, and write to it.
#define MOSCOPE_NEEDS_AN_EMPTY_PROCESS() GTEST_SKIP() << "the sanitizer's memory lies where random operands reach"
#else
#define MOSCOPE_NEEDS_AN_EMPTY_PROCESS() static_cast<void>(0)
#endif

namespace moscope::x86::native {

class HostCpu {
  public:
    static HostCpu &get() {
        static HostCpu it;
        return it;
    }

    /// AuthenticAMD: amd_host.hh lists where such a host differs from the model.
    static bool is_amd() {
        static const bool it = [] {
            unsigned highest = 0, b = 0, c = 0, d = 0;
            return __get_cpuid(0, &highest, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
                   d == signature_AMD_edx;
        }();
        return it;
    }

    /// Linux may be built without segments of 16 bits.
    bool has_sixteen_bit_code() const { return sixteen_bit_code_; }

    /// Runs the bytes at `at`. `stops`: they end by themselves in an INT3 somewhere, or in a fault of the fetch there
    /// (branches); otherwise what follows them leads back. `layout`: of kLayouts, for 16-bit code.
    Outcome run(Mode mode, const Bytes &code, std::uint64_t at, bool stops, const Snapshot &in, Snapshot &out,
                unsigned layout = 0) {
        put_int3(memory(kCode), at, stops);
        std::memcpy(memory(at), code.data(), mapped(code, at));
        if (!stops && at + code.size() + 14 <= kCode + kCodeBytes)
            lead_back(mode, memory(at + code.size()));
        const std::uint64_t ip = at - code_base(layout);
        if (mode == Mode::code32)
            std::memcpy(memory(kGate + 6), &ip, 4);
        if (mode == Mode::code16) {
            std::memcpy(memory(kGate16 + kPointer), &ip, 4);
            const std::uint16_t data = local_selector(layout);
            std::memcpy(memory(kGate16 + kSelector), &data, 2);
        }
        moscope_native_in = in;
        moscope_native_code = mode == Mode::code64 ? at : mode == Mode::code32 ? kGate : kGate16;
        outcome_ = Outcome{};
        moscope_native_out.rip = ip + code.size();
        running_ = true;
        moscope_native_enter();
        running_ = false;
        if (mode == Mode::code16)
            flat_segments();
        out = moscope_native_out;
        return outcome_;
    }

    /// The page belongs to the process and not to the test: its stack, its libraries. The model has nothing there.
    static bool has_other_memory(std::uint64_t a) {
        const auto within = [&](std::uint64_t at, std::uint64_t bytes) { return a - at < bytes; };
        unsigned char resident = 0;
        return !within(kCode, kCodeBytes) && !within(kData, kDataBytes + 0x1000) &&
               mincore(memory(a & ~std::uint64_t{0xfff}), 1, &resident) == 0;
    }

    static std::uint8_t *memory(std::uint64_t a) { return reinterpret_cast<std::uint8_t *>(a); }

  private:
    static constexpr std::uint64_t kGate = 0x6abc'd000; ///< code by which compatibility mode is entered and left
    static constexpr std::uint64_t kGateBack = kGate + 0x40, kGate16 = kGate + 0x80;
    static constexpr unsigned kPointer = 32,
                              kSelector = 40; ///< behind the code at kGate16: where it goes, and with which data
    static constexpr std::uint16_t kCode32 = 0x23, kCode64 = 0x33, kStack = 0x2b; // Linux's selectors

    HostCpu() {
        const auto map = [](std::uint64_t at, std::uint64_t bytes, int rights) {
            void *p = mmap(memory(at), bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE,
                           -1, 0);
            if (p != memory(at))
                throw std::runtime_error("the addresses of the test's code and data are taken");
        };
        map(kCode, kCodeBytes, PROT_READ | PROT_WRITE | PROT_EXEC);
        map(kGate, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC);
        const auto leave = reinterpret_cast<std::uint64_t>(&moscope_native_leave);
        std::memcpy(back_ + 6, &leave, 8);
        std::memcpy(memory(kGateBack), back_, sizeof back_);
        const std::uint8_t far_jump[] = {0xff, 0x2d, 0, 0, 0, 0, 0, 0, 0, 0, kCode32, 0}; // JMP FAR [RIP + 0]
        std::memcpy(memory(kGate), far_jump, sizeof far_jump);
        const auto gate_back = static_cast<std::uint32_t>(kGateBack);
        std::memcpy(back_from_32_ + 1, &gate_back, 4);
        flat_segments();
        const std::uint8_t to_16[] = {
            0x8e, 0x1d, kSelector - 6,  0, 0, 0,  // MOV DS, [RIP + ..]
            0x8e, 0x05, kSelector - 12, 0, 0, 0,  // MOV ES
            0x8e, 0x15, kSelector - 18, 0, 0, 0,  // MOV SS, so that nothing comes between it and
            0xff, 0x2d, kPointer - 24,  0, 0, 0}; // JMP FAR
        std::memcpy(memory(kGate16), to_16, sizeof to_16);
        const std::uint16_t code16 = local_selector(0);
        std::memcpy(memory(kGate16 + kPointer + 4), &code16, 2);
        std::memcpy(back_from_16_ + 2, &gate_back, 4);
        sixteen_bit_code_ = make_local_segments();
        map(kData, kDataBytes + 0x1000, PROT_READ | PROT_WRITE);
        std::memset(memory(kReadOnly), 0x5a, 0x1000);
        mprotect(memory(kReadOnly), 0x1000, PROT_READ);
        syscall(SYS_arch_prctl, ARCH_SET_GS, kGsBase);

        static std::uint8_t signal_stack[256 * 1024];
        stack_t stack{};
        stack.ss_sp = signal_stack;
        stack.ss_size = sizeof signal_stack;
        sigaltstack(&stack, nullptr);
        struct sigaction action {};
        action.sa_sigaction = [](int number, siginfo_t *, void *context) { get().on_signal(number, context); };
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        for (int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP})
            sigaction(s, &action, nullptr);
    }

    /// Of the table's entry: 0 is 16-bit code, others are kLayouts' data.
    static constexpr std::uint16_t local_selector(unsigned entry) { return static_cast<std::uint16_t>(entry << 3 | 7); }

    static bool make_local_segments() {
        constexpr unsigned data = 0, data_down = 1, code = 2; // modify_ldt(2): contents
        const auto make = [](unsigned entry, std::uint64_t base, std::uint32_t limit, unsigned contents, bool big) {
            user_desc d{};
            d.entry_number = entry;
            d.base_addr = static_cast<unsigned>(base);
            d.limit_in_pages = limit > 0xfffff;
            d.limit = d.limit_in_pages ? limit >> 12 : limit;
            d.contents = contents & 3;
            d.seg_32bit = big;
            return syscall(SYS_modify_ldt, 0x11, &d, sizeof d) == 0;
        };
        bool made = make(0, kCode, 0xffff, code, false);
        for (unsigned i = 1; i < std::size(kLayouts); ++i)
            made = made && make(i, kLayouts[i].base, kLayouts[i].limit, kLayouts[i].expand_down ? data_down : data,
                                kLayouts[i].big);
        return made;
    }

    static void flat_segments() {
        asm volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%ss" : : "r"(static_cast<std::uint32_t>(kStack)));
    }

    void lead_back(Mode mode, std::uint8_t *at) {
        if (mode == Mode::code64)
            std::memcpy(at, back_, sizeof back_);
        else if (mode == Mode::code32)
            std::memcpy(at, back_from_32_, sizeof back_from_32_);
        else
            std::memcpy(at, back_from_16_, sizeof back_from_16_);
    }

    void on_signal(int number, void *context) {
        auto *u = static_cast<ucontext_t *>(context);
        greg_t *g = u->uc_mcontext.gregs;
        if (!running_) {
            signal(number, SIG_DFL); // a fault of the test itself
            return;
        }
        running_ = false;
        static constexpr int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                          REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
        for (unsigned i = 0; i < 16; ++i)
            moscope_native_out.r[i] = static_cast<std::uint64_t>(g[order[i]]);
        moscope_native_out.flags = static_cast<std::uint64_t>(g[REG_EFL]);
        moscope_native_out.rip = static_cast<std::uint64_t>(g[REG_RIP]);
        std::memcpy(&moscope_native_out.fx, u->uc_mcontext.fpregs, sizeof(Fx));
        outcome_.vector = static_cast<int>(g[REG_TRAPNO]);
        if (outcome_.vector == 3) { // arrived at an INT3
            outcome_.vector = -1;
            --moscope_native_out.rip;
        }
        if (has_error(outcome_.vector))
            outcome_.error = static_cast<std::uint32_t>(g[REG_ERR]);
        if (outcome_.vector == 14)
            outcome_.address = static_cast<std::uint64_t>(g[REG_CR2]);
        g[REG_RSP] = static_cast<greg_t>(moscope_native_host_rsp);
        g[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uint64_t>(&moscope_native_return));
        g[REG_EFL] = 0x202;
        g[REG_CSGSFS] = (g[REG_CSGSFS] & 0x0000ffffffff0000ll) | kCode64 | std::int64_t{kStack} << 48;
    }

    std::uint8_t back_[14] = {0xff, 0x25};                          // JMP [RIP + 0], then the address
    std::uint8_t back_from_32_[7] = {0xea, 0, 0, 0, 0, kCode64, 0}; // JMP FAR
    std::uint8_t back_from_16_[8] = {0x66, 0xea, 0, 0, 0, 0, kCode64, 0};
    bool sixteen_bit_code_ = false;
    Outcome outcome_;
    volatile bool running_ = false;
};

} // namespace moscope::x86::native
