# SPDX-License-Identifier: BSD-3-Clause
"""Explores all states of a small machine with a protocol: `moscope protocol verify`.

The SLICC compiler writes a model of the protocol (src/mem/slicc/emit_model): a state of a few hundred bytes and its rules. The
model and the exploration (src/verify) are compiled into one program, which is kept by content.
"""

import dataclasses
import hashlib
import itertools
import json
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope import buildproto, config, paths, toolchain
from moscope.aside import written_aside
from moscope.config import Count, Topology, replace
from moscope.errors import BuildFailed, SimulatorBug, UserError
from moscope.protocol.check import refuse_other_protocol

SCHEMA = "moscope.verify/1"
MAX_CONTROLLERS, MAX_LINES = 16, 3  # kMaxControllers and kMaxLines of src/verify
MAX_MESSAGES = 200  # the number of messages is stored in a byte
REQUESTS = {"ld": "LD", "st": "ST", "if": "IFETCH", "flush": "FLUSH", "nt": "COMMIT", "uncached": "IO"}
PAST_CACHES = ("nt", "uncached")
DEVICE = ("read", "write", "part")
MEMORY_QUEUE = 2
FLAGS = ["-std=c++20", "-pthread", "-O2", "-march=x86-64-v2", "-fno-inline-functions-called-once", "-Wall",
         "-Wextra", "-Werror", "-Wno-restrict"]

Report = Callable[[str], None]


@dataclass(frozen=True)
class Bounds:
    """The small machine: `caches` cores on `chips` chips, of which the first `homes` have memory; `lines` lines; the requests of
    cores, and those of one device."""

    caches: int = 2
    chips: int = 1
    homes: int = 1
    lines: int = 1
    requests: tuple[str, ...] = ("ld", "st")
    device: tuple[str, ...] = ()
    messages: int = 24
    pending: int = 2
    evict: bool = True
    symmetry: bool = True
    reduce: bool = True

    def check(self) -> None:
        for option, value, least, most in (("--caches", self.caches, 1, 8), ("--chips", self.chips, 1, 8),
                                           ("--pending", self.pending, 0, 8), ("--messages", self.messages, 2, MAX_MESSAGES),
                                           ("--homes", self.homes, 1, self.chips), ("--lines", self.lines, 1, MAX_LINES)):
            if not least <= value <= most:
                allowed = "1, or more with --chips" if option == "--homes" and most == 1 else f"{least} to {most}"
                raise UserError(f"{option}: {value}: expected {allowed}")
        if self.caches % self.chips:
            raise UserError(f"--caches: {self.caches} on {self.chips} chips: expected a multiple of {self.chips}")


def controllers(interface: dict[str, Any], machine: str, sets: Sequence[str], bounds: Bounds) -> list[dict[str, Any]]:
    """The elaborated controllers of the small machine, with one device at most."""
    described = config.load_machine(machine, list(sets))
    if config.cores_together(interface) > 1:
        raise UserError("protocol verify: two cores share a controller in this protocol: expected a protocol with one controller per core")
    try:
        small = replace(described, chips=Count(bounds.chips, "--chips"), cores_per_chip=Count(bounds.caches // bounds.chips, "--caches"),
                        topology=Topology("fully_connected", None, "--chips"), routing=config.Routing())
        found = config.elaborate(small, interface, caches="tiny", network="ideal", homes=bounds.homes)
    except config.ConfigError as error:
        raise config.blamed(error, machine, list(sets)) from None
    _check_requests([c["sequencer"] for c in found["controllers"] if "sequencer" in c], bounds.requests)
    kept = [c for c in found["controllers"] if c["role"] != "dma" or (bounds.device and c["version"] == 0)]
    if bounds.device and not any(c["role"] == "dma" for c in kept):
        raise UserError("--device: the protocol has no machine for devices: expected one with a DMASequencer")
    if len(kept) > MAX_CONTROLLERS:
        raise UserError(f"--caches: {len(kept)} controllers in all: expected at most {MAX_CONTROLLERS}")
    return kept


def _check_requests(sequencers: list[dict[str, Any]], requests: Sequence[str]) -> None:
    """Refuses requests that no sequencer of the protocol makes. Without a type for stores past the caches, these would be plain
    stores."""
    flush = any(s["flushes"] for s in sequencers)
    past_caches = any(s["nt_store_type"] != "ST" for s in sequencers)
    lacking = [r for r in requests if r == "flush" and not flush or r in PAST_CACHES and not past_caches]
    if lacking:
        known = [r for r in REQUESTS if (flush or r != "flush") and (past_caches or r not in PAST_CACHES)]
        raise UserError(f"--requests: {', '.join(lacking)}: the protocol has none: expected some of {', '.join(known)}")


def renamings(found: Sequence[dict[str, Any]], bounds: Bounds) -> Iterator[list[int]]:
    """The renamings of controllers that leave the machine as it is. They permute chips, without their homes, and the cores of each
    chip; or all cores, if there are only cores and homes. The first one changes nothing. The exploration tests them before it
    relies on them (src/verify/symmetry.hh)."""
    per = bounds.caches // bounds.chips
    free = not any("core" not in c and c["role"] == "cache" for c in found)
    if free:
        cores: Iterator[list[int]] = (list(p) for p in itertools.permutations(range(bounds.caches)))
        maps = ((list(range(bounds.chips)), p) for p in cores)
    else:
        maps = ((chips, [chips[chip] * per + inside[chip][i] for chip in range(bounds.chips) for i in range(per)])
                for chips in (list(p) for p in itertools.permutations(range(bounds.chips)))
                for inside in itertools.product(*[list(itertools.permutations(range(per)))] * bounds.chips))
    place = {(c["machine"], c["version"]): i for i, c in enumerate(found)}
    for chips, core in maps:
        fixed = ("home", "dma")
        yield [place[c["machine"], core[c["version"]] if "core" in c else c["version"] if c["role"] in fixed else chips[c["version"]]]
               for c in found]
        if not bounds.symmetry:
            return


def line_renamings(bounds: Bounds) -> Iterator[list[int]]:
    """The renamings of lines that keep each at its home."""
    for p in itertools.permutations(range(bounds.lines)):
        if all(a % bounds.homes == b % bounds.homes for a, b in enumerate(p)):
            yield [line + 1 for line in p]
        if not bounds.symmetry:
            return


def specification(found: Sequence[dict[str, Any]], bounds: Bounds) -> dict[str, Any]:
    """The model as src/mem/slicc/emit_model reads it."""
    places: dict[str, dict[str, Any]] = {}
    for c in found:
        place = places.setdefault(c["machine"], {"count": 0, "values": {k: v for k, v in c["params"].items() if not isinstance(v, dict)}})
        place["count"] += 1
    return {"places": places, "lines": bounds.lines, "messages": bounds.messages, "memory_queue": MEMORY_QUEUE, "evict": bounds.evict,
            "reduce": bounds.reduce, "pending": bounds.pending,
            "requests": [REQUESTS[r] for r in bounds.requests], "device": list(bounds.device), "renamings": list(renamings(found, bounds)),
            "line_renamings": list(line_renamings(bounds))}


def build(protocol: str, machine: str, sets: Sequence[str], bounds: Bounds, report: Report) -> Path:
    """The program that explores the model; kept by content."""
    slicc = buildproto.find_protocol(protocol)
    root = paths.root()
    with tempfile.TemporaryDirectory(prefix="moscope-verify-") as name:
        folder = Path(name)
        own = slicc in buildproto.known_protocols().values()
        warnings = buildproto.run_slicc(["--protocol", str(slicc), "--interface-only", "--out", name])[1]
        if warnings and not own:
            report(warnings)
        (written,) = folder.glob("*.json")  # file names have "_" for a dash in the protocol's name
        interface = json.loads(written.read_text(encoding="utf-8"))
        (folder / "model.json").write_text(json.dumps(specification(controllers(interface, machine, sets, bounds), bounds)),
                                           encoding="utf-8")
        buildproto.run_slicc(["--protocol", str(slicc), "--model", str(folder / "model.json"), "--no-warnings", "--out", name])
        (source,) = folder.glob("*.model.cc")
        headers = [*sorted((root / "src/verify").glob("*.hh")), root / "src/base/arithmetic.hh"]
        flags = FLAGS + ([] if own else toolchain.WITHOUT_WARNINGS)
        key = hashlib.sha256(b"".join(p.read_bytes() for p in [source, *headers]) + " ".join(flags).encode()).hexdigest()[:16]
        program = paths.user_protocol_dir() / f"{slicc.stem}.verify-{key}"
        if not program.exists():
            buildproto.ensure_compiler(report, toolchain.missing_for_models)
            report(f"compile the model of {slicc.stem} with these bounds (once)")
            unfinished = folder / "program"
            try:
                buildproto.run_tool([*toolchain.compiler_command(), *flags, "-Isrc", f"-Ibuild/{paths.variant()}/{toolchain.GENERATED}",
                                     str(source), "-o", str(unfinished)])
            except BuildFailed as error:
                if names := lacking(str(error)):
                    raise UserError(f"{slicc}: models do not support {names}: expected only the SLICC features that docs/verifying.md "
                                    "lists") from error
                if located := buildproto.in_the_protocols_words(str(error), slicc, root):
                    raise UserError(located) from error
                raise
            program.parent.mkdir(parents=True, exist_ok=True)
            with written_aside(program) as aside:  # so that other starts never run an incomplete program
                shutil.copy(unfinished, aside)
    return program


def shape(bounds: Bounds) -> list[str]:
    """The shape of the small machine as settings of a machine description, for the engine."""
    return [f"chips={bounds.chips}", f"cores_per_chip={bounds.caches // bounds.chips}", "topology=fully_connected", "routing=auto"]


def walk(program: Path, seed: int, steps: int) -> list[dict[str, Any]]:
    """A random path through the states, which a machine can also take (src/verify/walk.hh); for a program without symmetry."""
    got = subprocess.run([str(program), "walk", str(seed), str(steps)], stdout=subprocess.PIPE, text=True, check=True)
    way: list[dict[str, Any]] = json.loads(got.stdout)["steps"]
    return way


def lacking(errors: str) -> str:
    """The names that a compiler did not know."""
    unknown = re.findall(r"error: .*?(?:[‘']([\w:]+)[’'] (?:does not name|was not declared)|has no member named [‘']([\w:]+)[’'])", errors)
    return ", ".join(dict.fromkeys(a or b for a, b in unknown))


def explore(program: Path, memory: int, seconds: float, threads: int, quiet: bool) -> dict[str, Any]:
    """Runs the exploration and returns its answer. Progress goes to stderr."""
    try:
        got = subprocess.run([str(program), str(memory), str(seconds), str(threads)], stdout=subprocess.PIPE, text=True, check=False,
                             stderr=subprocess.DEVNULL if quiet else None)
    except OSError as error:
        raise SimulatorBug(f"{program}: {error.strerror}") from error
    if got.returncode == -signal.SIGKILL:
        raise UserError(f"--memory: {memory >> 20} MiB: the host killed the exploration: expected less than the host's free memory")
    if got.returncode != 0:
        raise SimulatorBug(f"the exploration ended with {got.returncode}")
    answer: dict[str, Any] = json.loads(got.stdout)
    if "too_large" in answer:
        raise UserError(answer["too_large"])
    return answer


def verified(protocol: str, machine: str, sets: Sequence[str], bounds: Bounds, memory: int, seconds: float, threads: int,
             report: Report, quiet: bool) -> dict[str, Any]:
    """Builds and explores the model; if the renamings turn out not to be symmetries, it does so again without them."""
    refuse_other_protocol(protocol, sets)
    answer = explore(build(protocol, machine, sets, bounds, report), memory, seconds, threads, quiet)
    if "asymmetric" in answer:
        report(f"{answer['asymmetric']}: the protocol does not treat them as equivalent: exploring without symmetry")
        bounds = dataclasses.replace(bounds, symmetry=False)
        answer = explore(build(protocol, machine, sets, bounds, report), memory, seconds, threads, quiet)
    return answer


def document(protocol: str, bounds: Bounds, answer: dict[str, Any], counterexample: str | None,
             script_names: Sequence[str] = ()) -> dict[str, Any]:
    """The answer as moscope.verify/1."""
    names = [(f"{machine} {state} x {event}", seen) for machine, state, event, seen in answer["reached"]]
    return {
        "schema": SCHEMA,
        "ok": "violation" not in answer,
        "complete": answer["complete"],
        "limit": answer.get("limit"),
        "liveness": answer["liveness"],
        "strict": answer["strict"],
        "protocol": protocol,
        "caches": bounds.caches, "chips": bounds.chips, "homes": bounds.homes, "lines": bounds.lines,
        "requests": list(bounds.requests),
        "device": list(bounds.device),
        **{key: answer[key] for key in ("states", "depth", "seconds", "steps_taken", "memory", "renamings")},
        "declared": len(names),
        "unreachable": [name for name, seen in names if not seen],
        "violation": answer.get("violation"),
        "steps": answer.get("steps", []),
        "end": answer.get("end"),
        "counterexample": counterexample,
        "script_names": list(script_names),
    }
