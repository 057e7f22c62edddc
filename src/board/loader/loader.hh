// SPDX-License-Identifier: BSD-3-Clause
// Loads a kernel into guest memory, the way its file asks for, and says in which state the boot processor starts.
// Three kinds of file: a Linux bzImage (bzimage.cc), an ELF kernel with a PVH note such as vmlinux (pvh.cc), and
// an ELF or flat kernel with a Multiboot header (multiboot.cc).
#pragma once

#include <string>
#include <vector>

#include "board/loader/boot_memory.hh"

namespace moscope::loader {

struct BootRequest {
    std::string kernel_file; ///< for messages
    Bytes kernel;            ///< the file's bytes
    Bytes initrd;            ///< may be empty
    std::string command_line;
    Addr rsdp = 0; ///< physical address of the ACPI root pointer; 0: the kernel searches for it
};

struct LoadedKernel {
    EntryState entry;
    std::string protocol;    ///< "Linux 2.15, 64-bit", "PVH", "Multiboot"
    Addr start = 0, end = 0; ///< where the kernel lies
    Addr initrd = 0;         ///< where the initial file system lies; 0: there is none
};

/// Looks at the file's first bytes and loads it. UserError `FILE: problem: expected ...`.
LoadedKernel load_kernel(const BootRequest &request, BootMemory &memory);

/// The whole file; UserError if it cannot be read.
std::vector<std::uint8_t> read_file(const std::string &path);

// The kinds of file. `is_...` look for the mark of the kind; the others load.
bool is_bzimage(Bytes file);
bool is_multiboot(Bytes file);
bool is_elf(Bytes file);
LoadedKernel load_bzimage(const BootRequest &request, BootMemory &memory);
LoadedKernel load_multiboot(const BootRequest &request, BootMemory &memory);
LoadedKernel load_pvh(const BootRequest &request, BootMemory &memory);

/// Puts the initial file system as high as possible within [least, most]; returns its address, 0 if there is none.
/// UserError if there is no room.
Addr place_initrd(const BootRequest &request, BootMemory &memory, Addr least, Addr most);

} // namespace moscope::loader
