// SPDX-License-Identifier: BSD-3-Clause
// A writer of AML, the byte code of ACPI's definition blocks (ACPI 4.0, chapter 19). It covers what tables that only
// state facts need: names, devices, methods that return a constant, packages, buffers and resource templates
// (section 6.4). Every function returns bytes; a term list is a vector of them. Example:
//
//   aml::device("COM1", {aml::name("_HID", aml::eisa_id("PNP0501")),
//                        aml::name("_CRS", aml::Resources().io(0x3f8, 8).irq(4).bytes())})
//
// Names are paths as ASL writes them ("\\_SB", "_CRS", "^PCI0", "A.B"); segments are padded to four characters.
// Offsets, lengths and addresses are bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/types.hh"

namespace moscope::dev::aml {

using Bytes = std::vector<std::uint8_t>;
using Terms = std::vector<Bytes>;

/// Encodes a path; UserError if `name` is not a valid one.
Bytes path(std::string_view name);
Bytes integer(std::uint64_t value);
Bytes string(std::string_view text);
/// "PNP0501" as the compressed integer of section 19.5.34.
Bytes eisa_id(std::string_view id);
Bytes buffer(const Bytes &content);
/// At most 255 elements.
Bytes package(const Terms &elements);
Bytes name(std::string_view path, const Bytes &value);
Bytes scope(std::string_view path, const Terms &terms);
Bytes device(std::string_view name, const Terms &terms);
Bytes method(std::string_view name, unsigned arguments, const Terms &terms);
Bytes return_value(const Bytes &value);

/// A resource template, built up descriptor by descriptor; `bytes()` ends it and makes it a buffer.
class Resources {
  public:
    /// Fixed ports [base, base + size), decoded on 16 bits.
    Resources &io(std::uint16_t base, std::uint8_t size);
    /// ISA interrupt, edge triggered and active high unless said otherwise.
    Resources &irq(unsigned line, bool level = false, bool active_low = false);
    /// Fixed registers below 4 GiB.
    Resources &memory32(std::uint32_t base, std::uint32_t size);
    /// What a bridge passes on: bus numbers, ports, memory (address space descriptors, producer).
    Resources &bus_numbers(unsigned first, unsigned last);
    Resources &port_window(std::uint16_t first, std::uint16_t last);
    Resources &memory_window(Addr base, std::uint64_t size, bool cacheable = false);
    Bytes bytes() const;

  private:
    Bytes bytes_;
};

} // namespace moscope::dev::aml
