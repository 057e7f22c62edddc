// SPDX-License-Identifier: BSD-3-Clause
// The table of cases: what a page table, a descriptor, a return frame or an instruction of the system leads to, one line each on
// the serial port. Two machines that agree print the same bytes.
typedef unsigned long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

struct frame { u64 rip, cs, rflags, rsp, ss; };
u64 seen[9], given[5];
extern u64 pml4[512], pdpt[512];
extern u8 vectors[];
void run_case(struct frame *);

enum { KCODE = 0x08, KDATA = 0x10, KCODE32 = 0x18, UDATA = 0x23, UCODE = 0x2b, UCODE32 = 0x33, TSS = 0x38, NPCODE = 0x48, NPDATA = 0x50,
       RODATA = 0x58, XOCODE = 0x60, CONFORMING = 0x68, SPARE_TSS = 0x70, LDT = 0x80, CALLGATE = 0x90, DATA1 = 0xa0, MIXED = 0xa8 };
#define PAGE __attribute__((aligned(4096)))
static PAGE u64 gdt[64], idt[512], pd[512], pt[512], pd0[512];
static PAGE u8 data[8192], code[4096], ustack[8192], kstack[8192];
static struct { u32 x; u64 rsp0, rsp1, rsp2, z, ist[7]; u32 a, b; u16 c, map; u8 bits[32]; } __attribute__((packed, aligned(16))) tss;

static void put(char c) {
    u8 ready;
    do __asm__ volatile("inb %1, %0" : "=a"(ready) : "Nd"((u16)0x3fd)); while (!(ready & 0x20));
    __asm__ volatile("outb %0, %1" : : "a"(c), "Nd"((u16)0x3f8));
}
static void text(const char *s) { while (*s) put(*s++); }
static void hex(u64 x) {
    int n = 60;
    while (n && !(x >> n)) n -= 4;
    for (; n >= 0; n -= 4) put("0123456789abcdef"[x >> n & 15]);
}
static void number(const char *name, u64 x) { put(' '); text(name); put('='); hex(x); }

static u64 descriptor(u64 base, u64 limit, u64 attr) {
    return (limit & 0xffff) | (base & 0xffffff) << 16 | attr << 40 | (limit >> 16 & 15) << 48 | (base >> 24 & 255) << 56;
}
static void gate(unsigned v, u64 dpl, u64 type) {
    u64 to = (u64)vectors + 16 * v;
    idt[2 * v] = (to & 0xffff) | (u64)KCODE << 16 | (0x80 | dpl << 5 | type) << 40 | (to >> 16 & 0xffff) << 48;
    idt[2 * v + 1] = to >> 32;
}
static u64 cr0(void) { u64 x; __asm__ volatile("mov %%cr0, %0" : "=r"(x)); return x; }
static void set_cr0(u64 x) { __asm__ volatile("mov %0, %%cr0" : : "r"(x) : "memory"); }
static void wrmsr(u32 n, u64 x) { __asm__ volatile("wrmsr" : : "c"(n), "a"((u32)x), "d"((u32)(x >> 32))); }
static void flush(void) { u64 x; __asm__ volatile("mov %%cr3, %0; mov %0, %%cr3" : "=r"(x) : : "memory"); }

/// Runs bytes (at `code`) at a level. Their end is INT 80h.
static void run(const u8 *bytes, unsigned n, unsigned level, u64 flags) {
    for (unsigned i = 0; i < n; ++i) code[i] = bytes[i];
    code[n] = 0xcd, code[n + 1] = 0x80;
    struct frame f = {(u64)code, level ? UCODE : KCODE, flags | 2, (u64)(level ? ustack : kstack) + 4096, level ? UDATA : KDATA};
    for (unsigned i = 0; i < 9; ++i) seen[i] = 0;
    u64 zero = 0;
    __asm__ volatile("mov %0, %%cr2; mov %0, %%dr6" : : "r"(zero));
    run_case(&f);
}
static void outcome(void) {
    number("v", seen[0]);
    if (seen[1] != 0x5a5a) number("e", seen[1]);
    if (seen[0] == 14) number("cr2", seen[7]);
    if (seen[0] == 1) number("dr6", seen[8] & 0xe00f);
    if (seen[0] != 0x80) number("ip", seen[2] - (u64)code);
    number("cs", seen[3]);
    put('\n');
}
static void one(const char *name, const u8 *bytes, unsigned n, unsigned level, u64 flags) {
    run(bytes, n, level, flags);
    text(name);
    number("cpl", level);
    outcome();
}
#define CASE(name, level, flags, ...) do { static const u8 b[] = {__VA_ARGS__}; one(name, b, sizeof b, level, flags); } while (0)
#define BOTH(name, ...) do { CASE(name, 0, 0, __VA_ARGS__); CASE(name, 3, 0, __VA_ARGS__); } while (0)

// --- page tables: a window at 40000000h, which one level of four restricts

enum { P = 1, W = 2, U = 4, A = 32, D = 64, PS = 128 };
#define NX (1ul << 63)
static void page_case(unsigned leaf, unsigned level, u64 clear, u64 set, const char *how) {
    static const u8 read[] = {0x8a, 0x07}, write[] = {0x88, 0x07}, modify[] = {0xf0, 0xfe, 0x07}, jump[] = {0xff, 0xe7};
    static const struct { const u8 *bytes; unsigned n; const char *name; } access[] = {
        {read, 2, "read"}, {write, 2, "write"}, {modify, 3, "modify"}, {jump, 2, "fetch"}};
    for (unsigned x = 0; x < 4; ++x)
        for (unsigned level3 = 0; level3 < 2; ++level3)
            for (unsigned wp = 0; wp < 2; ++wp) {
                u64 *entry[4] = {pt, pd, &pdpt[1], &pml4[0]};
                const u64 to = leaf ? 0 : (u64)data;
                pt[0] = (u64)data | P | W | U;
                pd[0] = leaf == 1 ? to | PS | P | W | U : (u64)pt | P | W | U;
                pdpt[1] = leaf == 2 ? to | PS | P | W | U : (u64)pd | P | W | U;
                pml4[0] = (u64)pdpt | P | W | U;
                *entry[level] = (*entry[level] & ~clear) | set;
                if (leaf == 0) data[0] = 0xcd, data[1] = 0x80;
                if (wp) set_cr0(cr0() | 1 << 16); else set_cr0(cr0() & ~(1ul << 16));
                given[4] = 0x40000000ul + (leaf ? (u64)data : 0);
                data[0] = 0xcd, data[1] = 0x80;
                flush();
                run(access[x].bytes, access[x].n, level3, 0);
                text(how); number("leaf", leaf); number("at", level); number("wp", wp); number("cpl", 3 * level3);
                put(' '); text(access[x].name);
                if (seen[0] == 0x80)
                    for (unsigned i = leaf; i < 4; ++i) number("ad", *entry[i] >> 5 & 3 & (i == leaf ? 3 : 1));
                outcome();
            }
}
static void pages(void) {
    for (unsigned leaf = 0; leaf < 3; ++leaf) {
        page_case(leaf, leaf, 0, 0, "all");
        for (unsigned level = leaf; level < 3; ++level) {
            page_case(leaf, level, P, 0, "absent");
            page_case(leaf, level, W, 0, "read-only");
            page_case(leaf, level, U, 0, "supervisor");
            page_case(leaf, level, 0, NX, "no-execute");
            page_case(leaf, level, W | U, NX, "nothing");
            page_case(leaf, level, P, NX | 1ul << 51, "absent with junk");
        }
    }
    page_case(1, 1, 0, 1ul << 13, "reserved");
    page_case(2, 2, 0, 1ul << 13, "reserved");
    pdpt[1] = 0;
    set_cr0(cr0() | 1 << 16);
    flush();
}

// --- selectors

static void selectors(void) {
    static const u16 list[] = {0, 3, KCODE, KDATA, KDATA | 1, KDATA | 3, UDATA, UDATA & ~3, UCODE, UCODE32,
                               TSS, NPCODE, NPDATA, NPDATA | 3, RODATA, RODATA | 3, XOCODE, XOCODE | 3,
                               CONFORMING, CONFORMING | 3, SPARE_TSS, LDT, CALLGATE, CALLGATE | 3, DATA1, DATA1 | 1,
                               MIXED, 0x1f8, 0x200, 0x204, 0xfff8};
    for (unsigned i = 0; i < sizeof list / sizeof *list; ++i)
        for (unsigned level = 0; level < 4; level += 3) {
            given[0] = list[i];
#define LOAD(name, ...) do { text(name); number("sel", list[i]); CASE("", level, 0, __VA_ARGS__); } while (0)
            LOAD("ds", 0x8e, 0xd8);
            LOAD("fs", 0x8e, 0xe0);
            LOAD("ss", 0x8e, 0xd0);
            LOAD("lldt", 0x0f, 0x00, 0xd0);
            if (list[i] != TSS) { // which is busy
                LOAD("ltr", 0x0f, 0x00, 0xd8);
                __asm__ volatile("" : : : "memory");
                gdt[TSS / 8] &= ~(2ul << 40);
                u16 s = TSS;
                __asm__ volatile("ltr %0" : : "r"(s));
                gdt[SPARE_TSS / 8] &= ~(2ul << 40);
            }
            LOAD("verr", 0x0f, 0x00, 0xe0, 0x9c, 0x58, 0xa8, 0x40, 0x75, 0x02, 0x0f, 0x0b); // pushfq; pop rax; test al, 40h; jnz; ud2
            LOAD("verw", 0x0f, 0x00, 0xe8, 0x9c, 0x58, 0xa8, 0x40, 0x75, 0x02, 0x0f, 0x0b);
            LOAD("lar", 0x0f, 0x02, 0xc8, 0x74, 0x02, 0x0f, 0x0b);
            LOAD("lsl", 0x0f, 0x03, 0xc8, 0x74, 0x02, 0x0f, 0x0b);
            // push rax; lea rcx, [rip + 4]; push rcx; lretq
            LOAD("lret", 0x50, 0x48, 0x8d, 0x0d, 0x03, 0, 0, 0, 0x51, 0x48, 0xcb);
            // mov ecx, esp; push UDATA or KDATA; push rcx; pushfq; push rax; lea rcx, [rip + 3]; push rcx; iretq
            if (level)
                LOAD("iret cs", 0x48, 0x89, 0xe1, 0x6a, UDATA, 0x51, 0x9c, 0x50, 0x48, 0x8d, 0x0d, 0x03, 0, 0, 0, 0x51, 0x48, 0xcf);
            else
                LOAD("iret cs", 0x48, 0x89, 0xe1, 0x6a, KDATA, 0x51, 0x9c, 0x50, 0x48, 0x8d, 0x0d, 0x03, 0, 0, 0, 0x51, 0x48, 0xcf);
            if (level)
                LOAD("iret ss", 0x48, 0x89, 0xe1, 0x50, 0x51, 0x9c, 0x6a, UCODE, 0x48, 0x8d, 0x0d, 0x03, 0, 0, 0, 0x51, 0x48, 0xcf);
            else
                LOAD("iret ss", 0x48, 0x89, 0xe1, 0x50, 0x51, 0x9c, 0x6a, KCODE, 0x48, 0x8d, 0x0d, 0x03, 0, 0, 0, 0x51, 0x48, 0xcf);
            if (!level)
                LOAD("iret ss out", 0x48, 0x89, 0xe1, 0x50, 0x51, 0x9c, 0x6a, UCODE, 0x48, 0x8d, 0x0d, 0x03, 0, 0, 0, 0x51, 0x48, 0xcf);
        }
}

static void instructions(void) {
    given[4] = 0x800000000000ul;
    BOTH("load not canonical", 0x8a, 0x07);
    BOTH("push not canonical", 0x48, 0x89, 0xfc, 0x50);
    BOTH("jump not canonical", 0xff, 0xe7);
    BOTH("ret not canonical", 0x57, 0xc3);
    given[4] = (u64)data + 1;
    BOTH("movaps misaligned", 0x0f, 0x28, 0x07);
    CASE("hlt", 3, 0, 0xf4);
    CASE("cli", 3, 0, 0xfa);
    CASE("sti", 3, 0, 0xfb);
    CASE("cli iopl", 3, 0x3000, 0xfa);
    CASE("in", 3, 0, 0xe4, 0x61);
    CASE("in iopl", 3, 0x3000, 0xe4, 0x61);
    CASE("in permitted", 3, 0, 0xe4, 0x10);
    CASE("in past the map", 3, 0, 0xe5, 0xff);
    CASE("out", 3, 0, 0xe6, 0x80);
    CASE("mov cr0", 3, 0, 0x0f, 0x20, 0xc0);
    BOTH("mov cr1", 0x0f, 0x20, 0xc8);
    CASE("mov cr2", 3, 0, 0x0f, 0x22, 0xd0);
    CASE("mov dr0", 3, 0, 0x0f, 0x21, 0xc0);
    CASE("invlpg", 3, 0, 0x0f, 0x01, 0x3f);
    CASE("lgdt", 3, 0, 0x0f, 0x01, 0x17);
    CASE("lmsw", 3, 0, 0x0f, 0x01, 0xf0);
    BOTH("smsw", 0x0f, 0x01, 0xe0);
    CASE("clts", 3, 0, 0x0f, 0x06);
    CASE("wbinvd", 3, 0, 0x0f, 0x09);
    CASE("swapgs", 3, 0, 0x0f, 0x01, 0xf8);
    BOTH("rdtsc", 0x0f, 0x31);
    CASE("rdmsr", 3, 0, 0x0f, 0x32);
    given[1] = 0x12345;
    CASE("rdmsr unknown", 0, 0, 0x0f, 0x32);
    given[1] = 0xc0000082, given[0] = 0, given[2] = 0x8000;
    CASE("lstar not canonical", 0, 0, 0x0f, 0x30);
    given[0] = 16;
    CASE("cr8", 0, 0, 0x44, 0x0f, 0x22, 0xc0);
    given[0] = 0x100000000;
    CASE("dr7 upper half", 0, 0, 0x0f, 0x23, 0xf8);
    given[0] = 0, given[1] = 0, given[2] = 0;
    BOTH("div", 0xf7, 0xf1);
    BOTH("ud2", 0x0f, 0x0b);
    BOTH("int3", 0xcc);
    BOTH("int 3", 0xcd, 0x03);
    BOTH("int 21h", 0xcd, 0x21);
    BOTH("int beyond the table", 0xcd, 0xff);
    BOTH("int absent", 0xcd, 0x22);
    BOTH("into", 0xce);
    BOTH("push es", 0x06);
    BOTH("far call with a pointer", 0x9a, 0, 0, 0, 0, 0, 0);
    BOTH("lock nop", 0xf0, 0x90);
    BOTH("lock mov", 0xf0, 0x89, 0x07);
    CASE("sysret", 3, 0, 0x48, 0x0f, 0x07);
    BOTH("single step", 0x9c, 0x80, 0x4c, 0x24, 0x01, 0x01, 0x9d, 0x90, 0x90);
    CASE("iret with NT", 0, 0x4000, 0x48, 0xcf);
    CASE("popf IOPL", 3, 0, 0x68, 0x02, 0x32, 0, 0, 0x9d, 0x9c, 0x58, 0xf6, 0xc4, 0x32, 0x74, 0x02, 0x0f, 0x0b);
    set_cr0(cr0() | 8);
    BOTH("fninit with TS", 0xdb, 0xe3);
    BOTH("addps with TS", 0x0f, 0x58, 0xc0);
    BOTH("fwait with TS", 0x9b);
    set_cr0((cr0() & ~8ul) | 4);
    BOTH("fninit with EM", 0xdb, 0xe3);
    BOTH("addps with EM", 0x0f, 0x58, 0xc0);
    set_cr0(cr0() & ~4ul);
    set_cr0(cr0() | 1 << 18);
    given[4] = (u64)data + 1;
    CASE("misaligned with AC", 3, 1 << 18, 0x8b, 0x07);
    CASE("misaligned with AC", 0, 1 << 18, 0x8b, 0x07);
    wrmsr(0xc0000081, 0x001b000800000000), wrmsr(0xc0000082, (u64)vectors + 16 * 0x90), wrmsr(0xc0000084, 0x40700);
    wrmsr(0xc0000080, 0xd00);
    BOTH("syscall without SCE", 0x0f, 0x05);
    wrmsr(0xc0000080, 0xd01);
    CASE("syscall that masks TF", 3, 0x100, 0x0f, 0x05);
    wrmsr(0xc0000084, 0x40600);
    CASE("syscall that keeps TF", 3, 0x100, 0x0f, 0x05);
    wrmsr(0xc0000084, 0x40700);
    given[1] = (u64)code + 9;
    CASE("sysret to TF", 0, 0, 0x41, 0xbb, 0x02, 0x01, 0, 0, 0x48, 0x0f, 0x07, 0x90, 0x90); // mov r11d, 102h; sysretq; nop; nop
    CASE("sysret from TF", 0, 0x100, 0x48, 0x0f, 0x07);
    given[1] = 0;
}

static void breakpoints(void) {
    u64 d7 = 2 | 0xdul << 16; // four bytes, writes
    __asm__ volatile("mov %0, %%dr0; mov %1, %%dr7" : : "r"((u64)data), "r"(d7));
    given[4] = (u64)data + 2;
    BOTH("watched write", 0x88, 0x07, 0x90);
    BOTH("watched read", 0x8a, 0x07, 0x90);
    BOTH("watched push", 0x48, 0x8d, 0x67, 0x06, 0x50, 0x90);
    given[4] = (u64)data + 4;
    BOTH("write beside", 0x88, 0x07, 0x90);
    d7 = 2 | 0xful << 16;
    __asm__ volatile("mov %0, %%dr7" : : "r"(d7));
    given[4] = (u64)data - 1;
    BOTH("watched read of four", 0x8b, 0x07, 0x90);
    d7 = 8;
    __asm__ volatile("mov %0, %%dr1; mov %1, %%dr7" : : "r"((u64)code + 1), "r"(d7));
    BOTH("fetch", 0x90, 0x90, 0x90);
    __asm__ volatile("mov %0, %%dr1" : : "r"((u64)code));
    CASE("fetch with RF", 3, 1 << 16, 0x90, 0x90, 0x90);
    d7 = 0;
    __asm__ volatile("mov %0, %%dr7" : : "r"(d7));
}

void main(void) {
    // Everything for everybody in the first 2 MiB; the rest of the first GiB for the kernel alone.
    for (u64 i = 0; i < 512; ++i) pd0[i] = i << 21 | PS | P | W | U;
    pdpt[0] = (u64)pd0 | P | W | U;
    pml4[0] |= U;
    flush();
    static const u16 attr[] = {0, 0xa09b, 0xc093, 0xc09b, 0xc0f3, 0xa0fb, 0xc0fb};
    for (unsigned i = 0; i < 7; ++i) gdt[i] = descriptor(0, 0xfffff, attr[i]);
    tss.rsp0 = (u64)kstack + sizeof kstack;
    tss.map = 104;
    for (unsigned i = 0; i < 31; ++i) tss.bits[i] = 0xff;
    tss.bits[2] = 0;
    gdt[TSS / 8] = descriptor((u64)&tss, 104 + 31, 0x89);
    gdt[NPCODE / 8] = descriptor(0, 0xfffff, 0xa01b), gdt[NPDATA / 8] = descriptor(0, 0xfffff, 0xc013);
    gdt[RODATA / 8] = descriptor(0, 0xfffff, 0xc0f1), gdt[XOCODE / 8] = descriptor(0, 0xfffff, 0xa0f9);
    gdt[CONFORMING / 8] = descriptor(0, 0xfffff, 0xa09f), gdt[SPARE_TSS / 8] = descriptor((u64)&tss, 103, 0x89);
    gdt[LDT / 8] = descriptor((u64)data, 7, 0x82), gdt[DATA1 / 8] = descriptor(0, 0xfffff, 0xc0b3);
    gdt[CALLGATE / 8] = ((u64)code & 0xffff) | (u64)KCODE << 16 | 0x8cul << 40 | (u64)code >> 16 << 48;
    gdt[MIXED / 8] = descriptor(0, 0xfffff, 0xe09b);
    for (unsigned v = 0; v < 255; ++v) gate(v, v == 3 || v == 0x80 ? 3 : 0, 14);
    tss.ist[0] = (u64)ustack + sizeof ustack; // a stack of their own for what a bad stack leads to
    idt[2 * 8] |= 1ul << 32, idt[2 * 12] |= 1ul << 32;
    idt[2 * 0x22] &= ~(0x80ul << 40);
    struct { u16 limit; u64 base; } __attribute__((packed)) g = {511, (u64)gdt}, i = {255 * 16 - 1, (u64)idt};
    u16 s = TSS;
    __asm__ volatile("lgdt %0; lidt %1; ltr %2" : : "m"(g), "m"(i), "r"(s));
    pages();
    selectors();
    instructions();
    breakpoints();
    text("end\n");
}
