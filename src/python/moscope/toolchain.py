# SPDX-License-Identifier: BSD-3-Clause
"""The C++ compiler and its flags per variant, and the packages that they need.

Used by SConstruct, by the protocol builder and by the launcher, so standard library only. All the objects of a
variant are compiled with the same flags: engine, protocols and tests share inline code.
"""

import importlib.util
import os
import shutil
import subprocess
import sysconfig

CXX = os.environ.get("CXX", "g++")

# The engine is one library that generated protocols and the tests link to, so its symbols stay visible. Nothing
# replaces a function of it at run time, which lets the compiler inline across its own exported functions.
_COMMON = ["-std=c++20", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fno-semantic-interposition", "-fno-plt",
           "-march=x86-64-v2",
           "-Wno-restrict"]  # g++ 12 wrongly reports overlaps in std::string's operator+ (GCC bug 105651)
_SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]

_COMPILE = {
    # Without vectors made of neighbouring members: most members are written one by one just before the load of such a vector, and
    # the host's processor cannot forward two stores to one load.
    "opt": [*_COMMON, "-fno-tree-slp-vectorize", "-O3"],
    "debug": [*_COMMON, "-O0", "-g"],
    # Fibers switch stacks with their own code, which is similar to ucontext; MOSCOPE_ASAN enables the annotations for the sanitizer.
    "asan": [*_COMMON, "-O1", "-g", *_SANITIZE, "-DMOSCOPE_ASAN"],
}
# A controller is one class of many small functions, each called from many transitions. The compiler's usual limits on the
# growth of a source and of a function leave calls in all of them.
_INLINE = ["--param=inline-unit-growth=500", "--param=large-function-growth=800", "--param=max-inline-insns-single=300",
           "--param=max-inline-insns-auto=120",
           # Otherwise a function with a `catch` needs a register for the frame pointer, because its calls move the stack pointer.
           "-maccumulate-outgoing-args"]
_LINK = {"opt": [], "debug": [], "asan": _SANITIZE}

# Overrides the variant's flags for a library that is used once or twice; the compilation takes half as long as with -O3.
FAST_COMPILE = ["-O1"]

# For protocols from outside the project: what g++ warns of in their C++ (a comparison that is always true, for example) is valid SLICC.
WITHOUT_WARNINGS = ["-w"]

# Required headers, and the Debian package of each.
HEADERS = {
    "boost/context/fiber.hpp": "libboost-context-dev",
    "gtest/gtest.h": "libgtest-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "Zydis/Zydis.h": "libzydis-dev",
    "zstd.h": "libzstd-dev",
}
PROTOCOL_HEADERS = ("boost/context/fiber.hpp",)  # those that generated protocols include
MODEL_HEADERS = ("nlohmann/json.hpp",)
# The version with which the C++ sources are formatted: Debian 12's.
CLANG_FORMAT = 14
LIBRARIES = ["boost_context", "Zydis", "zstd"]

# The folder below build/VARIANT for headers that the build writes.
GENERATED = "generated"


def compile_flags(variant: str) -> list[str]:
    return list(_COMPILE[variant])


def protocol_flags(variant: str) -> list[str]:
    """The flags for C++ that the SLICC compiler writes."""
    return [*_COMPILE[variant], *(_INLINE if variant == "opt" else [])]


def link_flags(variant: str) -> list[str]:
    return ["-Wl,--as-needed", *_LINK[variant]]


def compiler_command() -> list[str]:
    """The compiler, behind ccache where the machine has it."""
    ccache = shutil.which("ccache")
    return [ccache, CXX] if ccache else [CXX]


def python_include() -> str:
    return str(sysconfig.get_config_var("INCLUDEPY"))


def missing_packages() -> list[str]:
    """Debian packages that this machine lacks for building, empty when it has all."""
    missing = _missing_for(HEADERS)
    if importlib.util.find_spec("ensurepip") is None:
        missing.append("python3-venv")
    if not os.path.exists(os.path.join(python_include(), "Python.h")):
        missing.append("python3-dev")
    return missing


def missing_for_protocols() -> list[str]:
    """Debian packages that this machine lacks for building protocols, with an engine that is already built."""
    return _missing_for({header: HEADERS[header] for header in PROTOCOL_HEADERS})


def missing_for_models() -> list[str]:
    """The same for the models of `protocol verify`."""
    return _missing_for({header: HEADERS[header] for header in MODEL_HEADERS})


def _missing_for(headers: dict[str, str]) -> list[str]:
    if shutil.which(CXX) is None:
        return ["g++", *headers.values()]
    probe = "".join(f"#if !__has_include(<{h}>)\nmissing {p}\n#endif\n" for h, p in headers.items())
    got = subprocess.run([CXX, "-x", "c++", "-std=c++20", "-E", "-P", "-"], input=probe, text=True,
                         capture_output=True, check=False)
    return [line.split()[1] for line in got.stdout.splitlines() if line.startswith("missing ")]


def missing_lint_packages() -> list[str]:
    """Debian packages that this machine lacks for checking the layout of C++."""
    return [] if shutil.which("clang-format") else ["clang-format"]
