// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/segment.hh"

#include <algorithm>

#include "cpu/x86/exec/integer/stack.hh"
#include "cpu/x86/mmu/memory.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope::x86 {

Segment unpack(std::uint16_t selector, std::uint64_t d) {
    Segment s;
    s.selector = selector;
    s.base = (d >> 16 & 0xffffff) | (d >> 56 & 0xff) << 24;
    s.attr = static_cast<std::uint16_t>(d >> 40 & 0xf0ff);
    s.limit = static_cast<std::uint32_t>((d & 0xffff) | (d >> 32 & 0xf0000));
    if (s.attr & Segment::kGranular)
        s.limit = s.limit << 12 | 0xfff;
    return s;
}

namespace {

enum class Found : std::uint8_t { yes, no, faulted };

Addr descriptor_address(const Core &c, std::uint16_t selector) {
    return ((selector & 4) ? c.ldtr.base : c.gdtr.base) + (selector & 0xfff8);
}

/// Reads 8 bytes of a descriptor table, from `skip` bytes into the selector's descriptor on.
Found find_descriptor(Core &c, std::uint16_t selector, unsigned skip, std::uint64_t &d) {
    const bool local = selector & 4;
    if (local && !c.ldtr.present())
        return Found::no;
    const std::uint64_t limit = local ? c.ldtr.limit : c.gdtr.limit;
    if ((selector & 0xfff8u) + skip + 7 > limit)
        return Found::no;
    return load_system(c, descriptor_address(c, selector) + skip, d) ? Found::yes : Found::faulted;
}

} // namespace

bool read_descriptor(Core &c, std::uint16_t selector, std::uint64_t &d, unsigned vector) {
    const Found f = find_descriptor(c, selector, 0, d);
    return f == Found::yes || (f == Found::no && c.raise(vector, selector_error(selector)));
}

bool read_descriptor_high(Core &c, std::uint16_t selector, std::uint64_t &d, unsigned vector) {
    const Found f = find_descriptor(c, selector, 8, d);
    return f == Found::yes || (f == Found::no && c.raise(vector, selector_error(selector)));
}

bool peek_descriptor(Core &c, std::uint16_t selector, std::uint64_t &d, bool &faulted) {
    const Found f = null_selector(selector) ? Found::no : find_descriptor(c, selector, 0, d);
    faulted = f == Found::faulted;
    return f == Found::yes;
}

bool change_descriptor_type(Core &c, std::uint16_t selector, std::uint64_t d, unsigned type) {
    const auto byte = static_cast<std::uint8_t>((d >> 40 & 0xf0) | type);
    return store_system(c, descriptor_address(c, selector) + 5, byte);
}

bool mark_accessed(Core &c, std::uint16_t selector, std::uint64_t d, Segment &s) {
    if (s.attr & 1)
        return true;
    s.attr |= 1;
    return change_descriptor_type(c, selector, d, s.type());
}

void load_real_segment(Core &c, Seg which, std::uint16_t selector) {
    Segment &s = c.seg[which];
    s.selector = selector;
    s.base = Addr{selector} << 4;
    if (c.virtual_8086()) {
        s.limit = 0xffff;
        s.attr = 0xf3;
    } else // limit and size stay, which is how "unreal" mode comes about
        s.attr = static_cast<std::uint16_t>((s.attr & (Segment::kBig | Segment::kGranular)) | 0x93);
    if (which == cs)
        c.mode_changed();
}

void set_code_segment(Core &c, Segment s, unsigned cpl) {
    s.selector = static_cast<std::uint16_t>((s.selector & ~3u) | cpl);
    c.seg[cs] = s;
    c.cpl = cpl;
    c.mode_changed();
}

void set_null_segment(Core &c, Seg which, std::uint16_t selector) {
    // The family keeps base and limit of a segment register that is loaded with a null selector.
    c.seg[which].selector = selector;
    c.seg[which].attr = 0;
}

namespace {

bool load_stack_segment(Core &c, std::uint16_t selector) {
    if (null_selector(selector)) {
        if (!c.code64() || c.cpl == 3 || rpl(selector) != c.cpl)
            return c.raise(exc_gp, 0);
        set_null_segment(c, ss, selector);
        return true;
    }
    Segment s;
    if (!check_stack_segment(c, selector, c.cpl, exc_gp, s))
        return false;
    c.seg[ss] = s;
    return true;
}

} // namespace

bool check_stack_segment(Core &c, std::uint16_t selector, unsigned cpl, unsigned vector, Segment &out) {
    std::uint64_t d;
    if (null_selector(selector))
        return c.raise(vector, selector_error(selector));
    if (!read_descriptor(c, selector, d, vector))
        return false;
    out = unpack(selector, d);
    const bool writable_data = (out.attr & 0x1a) == 0x12;
    if (rpl(selector) != cpl || out.dpl() != cpl || !writable_data)
        return c.raise(vector, selector_error(selector));
    if (!out.present())
        return c.raise(exc_ss, selector_error(selector));
    return mark_accessed(c, selector, d, out);
}

bool load_segment(Core &c, Seg which, std::uint16_t selector) {
    if (c.real_mode()) {
        load_real_segment(c, which, selector);
        return true;
    }
    if (which == ss)
        return load_stack_segment(c, selector);
    if (null_selector(selector)) {
        set_null_segment(c, which, selector);
        return true;
    }
    std::uint64_t d;
    if (!read_descriptor(c, selector, d, exc_gp))
        return false;
    Segment s = unpack(selector, d);
    const bool readable = (s.attr & 0x10) && (!s.code() || (s.attr & 2));
    const bool conforming = s.code() && (s.attr & 4);
    if (!readable || (!conforming && s.dpl() < std::max(c.cpl, rpl(selector))))
        return c.raise(exc_gp, selector_error(selector));
    if (!s.present())
        return c.raise(exc_np, selector_error(selector));
    if (!mark_accessed(c, selector, d, s))
        return false;
    c.seg[which] = s;
    return true;
}

bool within_limit(const Segment &s, std::uint64_t offset, unsigned size) {
    const std::uint64_t last = offset + size - 1;
    if (!s.expand_down()) // over 4 GiB is undefined: hosts wrap around in flat segments only
        return last <= s.limit || (s.limit == 0xffffffff && s.base == 0);
    return offset > s.limit && last <= (s.big() ? 0xffffffffu : 0xffffu);
}

bool segment_address(Core &c, Seg which, std::uint64_t offset, unsigned size, bool write, Addr &out) {
    const Segment &s = c.seg[which];
    if (c.code64()) {
        out = offset + (which == fs || which == gs ? s.base : 0);
        return canonical(out) || c.raise(which == ss ? exc_ss : exc_gp, 0);
    }
    bool fine = which == seg_none || within_limit(s, offset, size);
    if (fine && which != seg_none && !c.real_mode()) {
        const bool readable = !s.code() || (s.attr & 2);
        const bool writable = !s.code() && (s.attr & 2);
        fine = s.present() && (write ? writable : readable);
    }
    if (!fine)
        return c.raise(which == ss ? exc_ss : exc_gp, 0);
    out = (s.base + offset) & 0xffffffff;
    return true;
}

bool legacy_address(Core &c, const Op *op, unsigned size, bool write, Addr &out, unsigned skip) {
    const std::uint64_t offset = wrap_offset(op, effective_offset(c, op) + skip);
    return segment_address(c, static_cast<Seg>(op->seg), offset, size, write, out);
}

Addressed legacy_address(Core &c, const Op *op, unsigned size, bool write, unsigned skip) {
    Addr at = 0;
    const bool ok = legacy_address(c, op, size, write, at, skip);
    return {ok, at};
}

bool stack_address(Core &c, std::uint64_t sp, unsigned size, bool write, Addr &out) {
    return segment_address(c, ss, sp, size, write, out);
}

bool tss_stack(Core &c, unsigned cpl, std::uint16_t &stack, std::uint64_t &sp) {
    const bool wide = c.tr.type() & 8;
    const unsigned at = wide ? 4 + 8 * cpl : 2 + 4 * cpl;
    if (at + (wide ? 5 : 3) > c.tr.limit)
        return c.raise(exc_ts, selector_error(c.tr.selector));
    if (!wide) {
        std::uint16_t sp16;
        if (!load_system(c, c.tr.base + at, sp16) || !load_system(c, c.tr.base + at + 2, stack))
            return false;
        sp = sp16;
        return true;
    }
    std::uint32_t sp32;
    if (!load_system(c, c.tr.base + at, sp32) || !load_system(c, c.tr.base + at + 4, stack))
        return false;
    sp = sp32;
    return true;
}

bool tss_stack64(Core &c, unsigned slot, std::uint64_t &sp) {
    const unsigned at = 4 + 8 * slot; // RSP0 at 4, a reserved quadword at 28, IST1 at 36
    if (at + 7 > c.tr.limit)
        return c.raise(exc_ts, selector_error(c.tr.selector));
    if (!load_system(c, c.tr.base + at, sp))
        return false;
    return canonical(sp) || c.raise(exc_ss, 0);
}

FarStack FarStack::current(Core &c) { return {c, c.seg[moscope::x86::ss], c.r[rsp], c.stack_bytes(), c.cpl == 3}; }

bool FarStack::place(std::uint64_t at, unsigned bytes, Addr &out) const {
    if (width == 8) {
        out = at;
        return canonical(at) || c.raise(exc_ss, error);
    }
    if (!within_limit(ss, at, bytes))
        return c.raise(exc_ss, error);
    out = (ss.base + at) & 0xffffffff;
    return true;
}

bool FarStack::push(std::uint64_t value, unsigned bytes) {
    const std::uint64_t at = (sp - bytes) & mask();
    Addr a;
    if (!place(at, bytes, a) || !store_slow(c, a, &value, bytes, user ? As::current : As::system))
        return false;
    sp = width == 2 ? (sp & ~mask()) | at : at;
    return true;
}

bool FarStack::pop(std::uint64_t &value, unsigned bytes) {
    const std::uint64_t at = sp & mask();
    Addr a;
    value = 0;
    if (!place(at, bytes, a) || !load_slow(c, a, &value, bytes, user ? As::current : As::system))
        return false;
    const std::uint64_t next = (sp + bytes) & mask();
    sp = width == 2 ? (sp & ~mask()) | next : next;
    return true;
}

void FarStack::commit_pointer() const { c.r[rsp] = width == 2 ? (c.r[rsp] & ~mask()) | (sp & mask()) : sp & mask(); }

} // namespace moscope::x86
