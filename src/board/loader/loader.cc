// SPDX-License-Identifier: BSD-3-Clause
#include "board/loader/loader.hh"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/error.hh"

namespace moscope::loader {

LoadedKernel load_kernel(const BootRequest &request, BootMemory &memory) {
    if (is_bzimage(request.kernel))
        return load_bzimage(request, memory);
    if (is_multiboot(request.kernel))
        return load_multiboot(request, memory);
    if (is_elf(request.kernel))
        return load_pvh(request, memory);
    throw UserError(request.kernel_file + ": is " + (request.kernel.empty() ? "empty" : "not a kernel") +
                    ": expected a Linux bzImage, an ELF file with a PVH note or a Multiboot kernel");
}

std::vector<std::uint8_t> read_file(const std::string &path) {
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in.is_open() || in.bad())
        throw UserError(path + ": " + (errno ? std::strerror(errno) : "cannot be read") + ": expected a readable file");
    return bytes;
}

Addr place_initrd(const BootRequest &request, BootMemory &memory, Addr least, Addr most) {
    if (request.initrd.empty())
        return 0;
    const Addr at = memory.highest(request.initrd.size(), 4096, least, most);
    if (!at)
        throw UserError(
            "--initrd: " + std::to_string(request.initrd.size() >> 20) +
            " MiB do not fit into memory beside the kernel: expected more memory per node or a smaller file");
    memory.write(at, request.initrd, "--initrd");
    return at;
}

} // namespace moscope::loader
