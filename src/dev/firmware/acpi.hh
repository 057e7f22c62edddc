// SPDX-License-Identifier: BSD-3-Clause
// The ACPI tables of the platform, built from what the devices say about themselves (dev/firmware/firmware.hh): RSDP,
// XSDT, FADT with FACS and DSDT, MADT, and, if there is data for them, SRAT, SLIT, HPET and MCFG. Layouts follow the
// ACPI specification, revision 4.0 (chapter 5; HPET specification 1.0a, PCI firmware specification 3.0 for MCFG).
#pragma once

#include "dev/firmware/firmware.hh"

namespace moscope::dev {

/// The tables as one block of bytes for guest memory at `address`; the RSDP is its first byte.
struct AcpiImage {
    Addr address = 0;
    std::vector<std::uint8_t> bytes;
};

/// `address` is a multiple of 64 below 4 GiB. If it is in E0000h to FFFFFh, an operating system finds the RSDP by
/// scanning. The caller copies the bytes and reserves the range (`Firmware::reserve(..., kAcpiTables)`) in its memory
/// map. UserError: more than 255 processors, or a row of hops of the wrong length.
AcpiImage build_acpi(const Firmware &, Addr address);

/// The sum of the bytes modulo 256, which is 0 over a whole table.
std::uint8_t acpi_sum(const std::uint8_t *data, std::size_t size);

} // namespace moscope::dev
