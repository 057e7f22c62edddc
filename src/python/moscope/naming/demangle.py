# SPDX-License-Identifier: BSD-3-Clause
"""Names of C++, Rust and Fortran as their programmers wrote them: `_ZN4Pool4pushEi` is `Pool::push`, `__gm_MOD_poke` `gm::poke`."""

import re
from functools import cache

import pycxxfilt

MANGLED = re.compile(r"_[RZ]")
OF_MODULE = re.compile(r"__([a-z][a-z0-9_.]*)_MOD_(?=\w)")  # of gfortran, whose own names have no capital letters
# What compilers append to the copies of a function. In names of Go and Rust, a word may begin with `.part`: sort.partition.
CLONE = re.compile(r"\.(isra|constprop|part|llvm)\.\d+(?=[.@]|\Z)|\.cold(\.\d+)?(?=@|\Z)")
VERSION = re.compile(r"@@?[\w.]+$")  # of a library's symbol: pthread_mutex_lock@@GLIBC_2.2.5
RUST_HASH = re.compile(r"17h[0-9a-f]{16}E$")  # of Rust's older scheme, which uses the scheme of C++ and escapes other characters
RUST_ESCAPE = re.compile(r"\$(\w+)\$|\.\.|(?:^|(?<=::))_(?=\$)")
RUST_ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
OPEN, CLOSE = "(<[{", ")>]}"


@cache
def function(symbol: str) -> str:
    """The name of a function without parameters and result, so that overloads and specialised copies have the same name."""
    symbol = VERSION.sub("", CLONE.sub("", symbol))
    name = variable(symbol)
    return _bare(name) if name != symbol and symbol.startswith("_Z") and not RUST_HASH.search(symbol) else name


@cache
def variable(symbol: str) -> str:
    """The full demangled name of any symbol; the symbol itself if it is not mangled."""
    if found := OF_MODULE.match(symbol):
        return f"{found[1]}::{symbol[found.end():]}"
    if not MANGLED.match(symbol):
        return symbol
    try:
        plain = pycxxfilt.demangle(symbol)
    except ValueError:
        return symbol
    if plain and RUST_HASH.search(symbol):
        return RUST_ESCAPE.sub(_unescaped, plain.rpartition("::")[0])
    return plain or symbol


def _unescaped(escape: re.Match[str]) -> str:
    word = escape[1]
    if word is None:
        return "::" if escape[0] == ".." else ""
    try:
        return RUST_ESCAPES.get(word) or chr(int(word.removeprefix("u"), 16))
    except ValueError:
        return escape[0]


def _bare(name: str) -> str:
    """A demangled function without its list of parameters and what follows it, and without the result of a template."""
    end, depth = name.rfind(")"), 0
    if end < 0 or name.endswith("(anonymous namespace)", 0, end + 1):
        return name
    for at in range(end, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if not depth:
            break
    kept = name[:at]
    return kept if "operator" in kept else kept[_last_space(kept) + 1:]


def _last_space(name: str) -> int:
    """The last space outside all brackets; -1 where there is none."""
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] in CLOSE) - (name[at] in OPEN)
        if name[at] == " " and not depth:
            return at
    return -1
