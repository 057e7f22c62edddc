# SPDX-License-Identifier: BSD-3-Clause
"""From a protocol's .slicc file to its shared libraries: the one recipe, for SConstruct and for users' protocols.

The SLICC compiler writes C++ and NAME.json; the C++ is compiled into NAME.so (timing: messages carry no data) and,
once something asks for it, a second time into NAME.check.so (data in messages, for the testers). Which C++ files
there are is only known afterwards, hence a recipe in Python and not a list of build nodes. Standard library only.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moscope import paths, toolchain
from moscope.aside import written_aside
from moscope.errors import BuildFailed, MoscopeError, SimulatorBug, UserError, unknown_name

Report = Callable[[str], None]
PROTOCOLS = "src/mem/ruby/protocol"
SLICC = "src/mem/slicc"
TIMING, CHECKING = ".so", ".check.so"  # what follows the protocol's name
# Beside a protocol's .slicc file: its machines' roles (src/mem/slicc/roles.py), more declarations, and C++ of its own.
PRELUDE = ".prelude.sm"
BESIDE = (".roles.toml", PRELUDE, ".hh")
INCLUDE = re.compile(r"""\binclude\s+(?:"([^"\n]+)"|'([^'\n]+)')""")
DESCRIBED = re.compile(r'^#include "schema/([^"]+)"', re.MULTILINE)
# Headers that generated code may include: a change in them rebuilds the protocols.
RUNTIME_HEADERS = ("src/base", "src/sim", "src/mem/ruby/runtime", "src/mem/prefetch")
# Stands for the protocol's folder in stored warnings: builds are stored by content, and the folder may have another place later.
HERE = "//protocol//"


@dataclass(frozen=True)
class BuiltProtocol:
    """The files of a built protocol."""

    name: str
    interface: Path  # NAME.json: machines, parameters, buffers, states, events, transitions
    make_timing: Callable[[], Path]
    checking: Callable[[], Path]  # NAME.check.so, built at the first request: most runs never need it
    warnings: str = ""  # of the SLICC compiler, as it prints them
    own: bool = True  # one of the project's, by its path

    @property
    def timing(self) -> Path:
        """NAME.so. For a user's protocol, it is built at the first request; a random test never needs it."""
        return self.make_timing()


def files_under(folder: Path, suffixes: set[str]) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            if os.path.splitext(name)[1] in suffixes:
                yield Path(base, name)


def compiler_inputs(root: Path) -> list[Path]:
    """The SLICC compiler itself: its Python, grammar and prelude."""
    return list(files_under(root / SLICC, {".py", ".lark", ".slicc", ".sm", ".hh", ".cc", ".css", ".html", ".toml"}))


def protocol_inputs(slicc: Path) -> list[Path]:
    """A protocol's own files: the .slicc file, all files that it includes, directly or not, and its roles. Includes are searched
    as in the compiler: in the folder of the including file, then in the protocol's folder. If both have such a file, both count."""
    more = slicc.with_suffix(PRELUDE)
    found = {slicc, *([more] if more.is_file() else [])}
    open_ends = list(found)
    while open_ends:
        includer = open_ends.pop()
        text = includer.read_text(encoding="utf-8", errors="replace")
        for name in (double or single for double, single in INCLUDE.findall(text)):
            for path in (includer.parent / name, slicc.parent / name):
                if path not in found and os.path.isfile(path):  # isfile is False also for text that cannot be a file name
                    found.add(path)
                    open_ends.append(path)
    beside = (slicc.with_suffix(suffix) for suffix in BESIDE)
    return sorted({*found, *(path for path in beside if path.is_file())})


def name_of(path: Path, slicc: Path) -> str:
    """What the SLICC compiler calls a file of a protocol: its path from the protocol's folder (src/mem/slicc/ast/nodes.py)."""
    inside = str(path).removeprefix(f"{slicc.parent}/")
    return path.name if inside.startswith("/") else os.path.normpath(inside)


def runtime_headers(root: Path) -> list[Path]:
    """What generated code is compiled against: the runtime, and the seam to what issues accesses (src/mem/port.hh)."""
    return sorted((root / "src/mem").glob("*.hh")) + [p for folder in RUNTIME_HEADERS
                                                       for p in files_under(root / folder, {".hh"})]


def described_headers(root: Path) -> list[str]:
    """The headers generated from src/schema that the runtime includes: names in build/VARIANT/generated/schema."""
    found = {name for path in runtime_headers(root) for name in DESCRIBED.findall(path.read_text(encoding="utf-8"))}
    return sorted(name for name in found if not (root / "src/schema" / name).exists())


def run_slicc(arguments: list[str]) -> tuple[str, str]:
    """Runs the SLICC compiler as a separate process. Returns its output and its warnings; an error of the protocol is raised as
    the user's error."""
    got = subprocess.run([sys.executable, str(paths.root() / SLICC), *arguments], capture_output=True, text=True,
                         check=False)
    if got.returncode == UserError.exit_code:
        raise UserError(got.stderr.rstrip())
    if got.returncode != 0:
        raise SimulatorBug(f"the SLICC compiler ended with {got.returncode}:\n{got.stderr.rstrip()}")
    return got.stdout, got.stderr.rstrip()


def generate(slicc: Path, out: Path) -> str:
    """Compiles a protocol to C++ and NAME.json in `out`, which holds nothing else afterwards; returns the warnings. For the
    project's own protocols, the warnings of --strict are errors."""
    strict = slicc.resolve() in known_protocols().values()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return run_slicc(["--protocol", str(slicc), "--out", str(out), *(["--strict"] if strict else [])])[1]


def check_strictly(slicc: Path) -> None:
    """Raises UserError for the warnings of --strict (what may be intended, or is common in widely used protocols) as well as for
    errors. Builds nothing."""
    run_slicc(["--protocol", str(slicc), "--check-only", "--strict", "--no-warnings"])


def generated_digest(generated: Path) -> str:
    """A digest of the generated C++: if it is unchanged, nothing needs to be compiled."""
    digest = hashlib.sha256()
    for path in files_under(generated, {".cc", ".hh"}):
        digest.update(f"{path.relative_to(generated)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def compile_protocol(generated: Path, library: Path, check: bool, variant: str, jobs: int, report: Report,
                     more_flags: Sequence[str] = ()) -> None:
    """The C++ in `generated` into one shared library beside the others of its build folder."""
    root = paths.root()
    objects = generated / ("check" if check else "timing")
    objects.mkdir(exist_ok=True)
    flags = [*toolchain.protocol_flags(variant), *more_flags, f"-DMOSCOPE_CHECK_DATA={int(check)}", "-Isrc",
             f"-Ibuild/{variant}/{toolchain.GENERATED}", "-I" + os.path.relpath(generated, root)]
    sources = sorted(generated.glob("*.cc"), key=lambda path: -path.stat().st_size)  # the longest first
    if not sources:
        raise SimulatorBug(f"{generated}: the SLICC compiler wrote no C++ here")

    def one(source: Path) -> str:
        target = objects / (source.stem + ".o")
        report(f"compile {library.name}: {source.name}")
        run_tool([*toolchain.compiler_command(), *flags, "-c", os.path.relpath(source, root), "-o", str(target)])
        return str(target)

    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        made = list(pool.map(one, sources))
    report(f"link    {library.name}")
    build = paths.root() / "build" / variant
    # A library in the user's cache stays in its place, but a checkout may be moved together with everything built in it.
    found = str(build) if paths.installed() else f"$ORIGIN/{os.path.relpath(build, library.parent)}"
    with written_aside(library) as unfinished:
        run_tool([toolchain.CXX, "-shared", *toolchain.link_flags(variant), *made, "-o", str(unfinished), "-L" + str(build),
                  "-lmoscope_engine", f"-Wl,-rpath,{found}", "-Wl,-z,defs"])


GXX_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
AT = re.compile(r'\bat\("(?P<file>[^"]+)", (?P<line>\d+)\);')
MOST_ERRORS = 10  # one wrong name makes many
OWN_HEADER = "_own.hh"  # what the compiler calls its copy of NAME.hh


def in_the_protocols_words(text: str, slicc: Path, root: Path) -> str:
    """Errors of g++ in the C++ of a protocol from outside, attributed to the line of the protocol's header or `.sm` file that the
    C++ comes from. The statements of generated code name that line: `at("FILE.sm", LINE)`."""
    found: dict[str, None] = {}  # in order, each once
    for error in GXX_ERROR.finditer(text):
        path, line = root / error["file"], int(error["line"])
        if path.name.endswith(OWN_HEADER):
            where = f"{slicc.with_suffix('.hh')}:{line}"
        else:
            before = path.read_text(encoding="utf-8", errors="replace").splitlines()[:line] if path.is_file() else []
            at = next((AT.search(text) for text in reversed(before) if AT.search(text)), None)
            where = f"{slicc.parent / at['file']}:{at['line']}" if at else f"{slicc}:1"
        found[f"{where}: error: in C++: {error['text']}: expected a name that neither C++ nor moscope uses, or another value"] = None
    more = [f"and {len(found) - MOST_ERRORS} more"] if len(found) > MOST_ERRORS else []
    return "\n".join([*list(found)[:MOST_ERRORS], *more])


def run_tool(command: list[str]) -> None:
    got = subprocess.run(command, cwd=paths.root(), capture_output=True, text=True, check=False)
    if -got.returncode in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # sent to all processes of the terminal
        raise KeyboardInterrupt
    if got.returncode != 0:
        raise BuildFailed(f"generated C++ ({command[-1]}):\n{got.stdout}{got.stderr}")


def known_protocols() -> dict[str, Path]:
    """The project's own protocols: name and .slicc file."""
    return {p.stem: p for p in sorted((paths.root() / PROTOCOLS).glob("*.slicc"))}


def find_protocol(name_or_file: str) -> Path:
    """The .slicc file of a protocol given by name or by path."""
    known = known_protocols()
    if name_or_file in known:
        return known[name_or_file]
    if name_or_file.endswith(".slicc") or os.sep in name_or_file:
        path = Path(name_or_file)
        if not path.is_file():
            problem = "a folder" if path.is_dir() else "no such file"
            raise UserError(f"{path}: {problem}: expected the path of a protocol's .slicc file")
        return path.resolve()
    raise unknown_name("protocol", "protocol", name_or_file, known)


def content_key(slicc: Path, variant: str) -> str:
    """Changes with anything that the libraries are made from."""
    root = paths.root()
    key = hashlib.sha256(f"{variant} {toolchain.CXX} {toolchain.protocol_flags(variant)} {toolchain.FAST_COMPILE}".encode())
    described = [root / "build" / variant / toolchain.GENERATED / "schema" / name for name in described_headers(root)]
    for path in [*protocol_inputs(slicc), *compiler_inputs(root), *runtime_headers(root),
                 *(header for header in described if header.exists()),  # all, once the variant is built
                 Path(__file__)]:
        data = path.read_bytes()
        key.update(f"{path.name} {len(data)}\n".encode() + data)
    return key.hexdigest()[:16]


def ensure_protocol(name_or_file: str, report: Report = lambda text: None, strict: bool = False) -> BuiltProtocol:
    """The libraries of a protocol: for a project protocol those of the build; for a user's own protocol, libraries that are built
    here and kept. Its warnings are reported each time, errors if `strict`; `report` also gets the messages of a build of the
    checking library."""
    slicc = find_protocol(name_or_file)
    if strict:
        check_strictly(slicc)
    name = slicc.stem
    if known_protocols().get(name) == slicc:
        inside = paths.protocol_dir()
        return BuiltProtocol(name, inside / f"{name}.json", lambda: inside / f"{name}{TIMING}", partial(check_inside, name, report))
    folder = paths.user_protocol_dir() / f"{name}-{content_key(slicc, paths.variant())}"
    if not folder.exists():
        generate_outside(slicc, folder, report)
    warnings = (folder / f"{name}.warnings").read_text(encoding="utf-8").replace(HERE, f"{slicc.parent}/")
    if warnings:
        report(warnings)
    return BuiltProtocol(name, folder / f"{name}.json", partial(compile_outside, slicc, folder, False, report),
                         partial(compile_outside, slicc, folder, True, report), warnings, own=False)


def generate_outside(slicc: Path, folder: Path, report: Report) -> None:
    """Generates interface and C++ in another folder and renames it, so that simultaneous starts and interruptions leave only
    complete folders."""
    name = slicc.stem
    unfinished = folder.with_name(f"{folder.name}.{threading.get_native_id()}")
    generated = unfinished / name
    try:
        report(f"generate {name}")
        warnings = generate(slicc, generated).replace(f"{slicc.parent}/", HERE)
        (unfinished / f"{name}.warnings").write_text(warnings, encoding="utf-8")
        # NAME.json has the compiler's name for the protocol, in which a dash is replaced by "_" as in C++.
        (interface,) = generated.glob("*.json")
        shutil.copyfile(interface, unfinished / f"{name}.json")
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.exists():  # otherwise another start was first, with the same content
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def ensure_compiler(report: Report, lacking: Callable[[], list[str]] = toolchain.missing_for_protocols) -> None:
    """Installs the C++ compiler if it is missing. A checkout has built the engine with it, but an installation may need it here
    for the first time."""
    from moscope import bootstrap

    if paths.installed():
        bootstrap.install_packages(bootstrap.Relay(report), lacking)


def check_inside(name: str, report: Report) -> Path:
    """The checking library of one of the project's protocols; SCons knows what it depends on."""
    from moscope import bootstrap

    library = paths.protocol_dir() / f"{name}{CHECKING}"
    if paths.installed():
        return library
    bootstrap.ensure_checks([library], bootstrap.Relay(report))
    return library


def compile_outside(slicc: Path, folder: Path, check: bool, report: Report) -> Path:
    """One of the libraries of a user's own protocol; the folder's key covers both. The checking library serves short tests, so
    its compilation is fast rather than optimised."""
    from moscope import bootstrap

    name = slicc.stem
    library = folder / f"{name}{CHECKING if check else TIMING}"
    if not library.exists():
        # Two starts would write their objects to the same place.
        with bootstrap.locked(folder / f"{name}.lock", bootstrap.Relay(report), f"building {library.name}"):
            if not library.exists():
                ensure_compiler(report)
                report(f"building {library.name} (once)")
                try:
                    compile_protocol(folder / name, library, check, paths.variant(), all_cores(), report,
                                     [*toolchain.WITHOUT_WARNINGS, *(toolchain.FAST_COMPILE if check else [])])
                except BuildFailed as error:
                    if located := in_the_protocols_words(str(error), slicc, paths.root()):
                        raise UserError(located) from error
                    raise
    return library


def all_cores() -> int:
    return len(os.sched_getaffinity(0))


def scons_action(work: Callable[[], None]) -> int | str:
    """Runs a step for SCons, which wants a message in place of an exception."""
    try:
        work()
    except MoscopeError as error:
        print(f"error: {error}", flush=True)
        return 1
    except KeyboardInterrupt:  # a tool was interrupted; with this exception, SCons would wait for its thread without end
        return 1
    return 0
