# SPDX-License-Identifier: BSD-3-Clause
"""Who may use whom (the design's layering), read from #include lines and Python imports."""

import ast
import re
from pathlib import Path

import pytest

from moscope import paths

ROOT = paths.root()

# Layer -> the layers whose headers it may include besides its own. A file belongs to the longest name that its
# path under src/ starts with.
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "schema": {"base"},  # also what the build makes from the descriptions
    "sim": {"base"},
    "mem": {"base", "sim"},  # port.hh, physical memory
    "mem/dram": {"base", "sim", "mem"},
    "mem/ruby/runtime": {"base", "sim", "mem"},
    "mem/ruby/network": {"base", "sim", "mem", "mem/ruby/runtime"},
    "cpu": {"base", "sim", "mem", "dev/irq.hh"},
    "net": {"base", "sim"},
    "dev": {"base", "sim", "mem", "net"},
    "machine": {"base", "sim", "mem", "mem/dram", "mem/ruby/runtime", "mem/ruby/network", "cpu", "dev"},
    "attribution": {"base", "sim", "mem", "mem/ruby/runtime", "cpu"},
    "board": {"base", "sim", "mem", "cpu", "dev", "net", "machine", "attribution"},
    "experiment": {"base", "sim", "mem", "mem/ruby/runtime", "cpu", "machine"},
    "python": {"base", "sim", "mem", "mem/dram", "mem/ruby/runtime", "cpu", "machine", "attribution", "board", "experiment",
               "dev/nic/steering.hh"},  # the names of policies
    "mem/slicc": set(),
    # Models of protocols: of the runtime, only the prelude's enumerations.
    "verify": {"base/arithmetic.hh", "mem/ruby/runtime/prelude_enums.hh"},
}
LIBRARY_HEADERS = {
    "boost/context/": {"sim"},
    "Zydis/": {"cpu"},
    "nlohmann/": {"schema", "machine", "attribution", "board", "experiment", "mem/dram", "mem/ruby/network", "python", "verify"},
    "nanobind/": {"python"},
    "Python.h": {"python"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def layer_of(path: str) -> str | None:
    fits = [layer for layer in MAY_INCLUDE if path.startswith(layer + "/")]
    return max(fits, key=len, default=None)


def forbidden_includes(path: str, text: str) -> list[str]:
    """What the file at src/`path` includes against the rules."""
    own = layer_of(path)
    assert own is not None, f"src/{path} lies in no layer of the design"
    faults = []
    for quote, name in INCLUDE.findall(text):
        if quote == '"':
            layer = layer_of(name)
            if layer is None or not (layer in (own, "schema") or layer in MAY_INCLUDE[own] or name in MAY_INCLUDE[own]):
                faults.append(f'src/{path} includes "{name}"')
        else:
            faults += [f"src/{path} includes <{name}>" for prefix, users in LIBRARY_HEADERS.items()
                       if name.startswith(prefix) and own not in users]
    return faults


def cxx_files() -> list[Path]:
    """The engine's: what lies beside the protocols is compiled by gem5 alone, against its headers."""
    return sorted(p for s in ("*.cc", "*.hh") for p in (ROOT / "src").rglob(s) if "src/mem/ruby/protocol/gem5/" not in str(p))


def test_cxx_files_include_only_what_their_layer_may_use() -> None:
    faults = [f for p in cxx_files()
              for f in forbidden_includes(str(p.relative_to(ROOT / "src")), p.read_text(encoding="utf-8"))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("path, include", [
    ("base/types.hh", '"sim/clock.hh"'),
    ("cpu/x86/mmu.cc", '"mem/ruby/runtime/sequencer.hh"'),
    ("dev/timers/hpet.cc", '"cpu/x86/state.hh"'),
    ("mem/dram/bank.cc", '"mem/ruby/runtime/message.hh"'),
    ("mem/ruby/runtime/message.hh", "<nlohmann/json.hpp>"),
    ("sim/clock.hh", '"clock.hh"'),
])
def test_the_layer_check_finds_a_forbidden_include(path: str, include: str) -> None:
    assert forbidden_includes(path, f"#include {include}\n")


def imports_of(path: Path) -> set[str]:
    """Names of the modules that a Python file imports, relative ones with their leading dots."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def test_slicc_is_text_in_text_out() -> None:
    for path in (ROOT / "src/mem/slicc").rglob("*.py"):
        assert not {n for n in imports_of(path) if n.split(".")[0] in ("moscope", "nanobind")}, path


def test_nothing_imports_tests() -> None:
    for folder in ("src", "configs", "analysis"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not {n for n in imports_of(path) if n.split(".")[0] == "tests"}, path
    for path in cxx_files():
        assert "tests/" not in {n.split("/")[0] + "/" for _, n in INCLUDE.findall(path.read_text(encoding="utf-8"))}, path


def test_analysis_does_not_touch_the_engine() -> None:
    for path in (ROOT / "analysis").rglob("*.py"):
        assert not {n for n in imports_of(path) if n.startswith("moscope._engine")}, path


def loads_analysis(path: Path) -> bool:
    """Whether a module imports analysis when it is loaded, not within a function and not for types alone."""
    found = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {name for node in found for name in ([a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""])}
    return any(name.split(".")[0] == "analysis" for name in names)


def test_commands_import_analysis_only_where_its_path_is_known(tmp_path: Path) -> None:
    """Tests find the package in the checkout, but a command only after `paths.import_analysis()`."""
    assert not [path for path in (ROOT / "src/python").rglob("*.py") if loads_analysis(path)]
    (tmp_path / "planted.py").write_text("from analysis import paper\n", encoding="utf-8")
    assert loads_analysis(tmp_path / "planted.py")


def test_what_runs_before_the_set_up_needs_the_standard_library_only() -> None:
    import sys

    for name in ("__init__", "_version", "bootstrap", "paths", "errors", "toolchain", "buildproto"):
        path = ROOT / "src/python/moscope" / f"{name}.py"
        foreign = {n for n in imports_of(path) if n.split(".")[0] not in {*sys.stdlib_module_names, "moscope"}}
        assert not foreign, f"{path}: {foreign}"
