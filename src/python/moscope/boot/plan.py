# SPDX-License-Identifier: BSD-3-Clause
"""From the options of `moscope boot` to the configuration of `_engine.System`.

All errors in options are found here, before the first tick. A checkpoint contains the configuration of its machine, so
`--from` needs no option that describes one.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moscope import jsonio, paths, readable
from moscope.cli import Shared
from moscope.config import Machine, blamed, load_machine
from moscope.config.cpu import cpu_json
from moscope.config.machine import replace
from moscope.errors import UserError
from moscope.failures import expected
from moscope.guest import debian, initramfs, kernel, packages
from moscope.schema.errors import ConfigError
from moscope.schema.parameters import engine_json
from moscope.schema.units import Size

DEFAULT_OUT = Path("moscope-out/boot")
COMMAND_LINE = "console=ttyS0"
# The last line that Linux prints when it has given up.
PANIC = "---[ end Kernel panic"
# The shell's prompt for the rest of a command, such as a loop or a here-document.
CONTINUATION = "\n> "


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command's own options; None or empty if the user did not give one."""

    kernel: str | None = None
    initrd: Path | None = None
    append: str | None = None
    disk: Path | None = None
    cores: int | None = None
    memory_per_node: str | None = None
    script: Path | None = None
    checkpoint_at: str | None = None
    resume: Path | None = None
    net: bool = False
    pcap: Path | None = None
    packages: tuple[str, ...] = ()  # of Debian, in the initial file system
    programs: Mapping[str, Path] = field(default_factory=dict)  # more files, by their names under /run/moscope

    def of_the_machine(self) -> dict[str, Any]:
        """The given options that a checkpoint already determines, by their command-line names."""
        named = {"--kernel": self.kernel, "--initrd": self.initrd, "--append": self.append, "--cores": self.cores,
                 "--memory-per-node": self.memory_per_node, "--net": self.net or None, "--with": self.packages or None}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Plan:
    """`config` is for the engine. `typed` are lines for the guest's shell; None if a terminal provides input, or if there is none."""

    config: dict[str, Any]
    out: Path
    checkpoint_at: str | None = None
    resume: Path | None = None
    typed: list[str] | None = None
    at_prompt: bool = False  # the guest has shown its prompt just before it goes on
    prompts: bool = True  # the guest has moscope's own initial file system, which tells when it waits for input
    remarks: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> int:
        return int(self.config["chips"])

    def with_lines(self, lines: list[str]) -> "Plan":
        """The same run, in which these lines are typed. They may be parts of a command, for which the shell has another prompt."""
        markers = sorted({*self.config["markers"], CONTINUATION})
        return dataclasses.replace(self, typed=lines, config={**self.config, "markers": markers})


def make(shared: Shared, options: Options, machine: Machine | None = None) -> Plan:
    """Checks the options and collects all inputs of the run; fetches kernel and busybox if they are missing."""
    out = shared.out or DEFAULT_OUT
    jsonio.check_replaceable(out)
    inputs = {name: path for name, path in (("--initrd", options.initrd), ("--disk", options.disk), ("--script", options.script),
                                            ("--from", options.resume)) if path is not None}
    for name, path in inputs.items():
        _check_readable(name, path)
    inputs |= {name: Path(text) for name, text in (("--kernel", options.kernel), ("--machine", shared.machine))
               if text and Path(text).is_file()}  # a name otherwise, or refused when it is read
    for name, path in inputs.items():
        _check_stays(name, path, out)
    if options.checkpoint_at == "":
        raise UserError('--checkpoint-at: "": expected text that the console will show, or "ready"')
    plan = _resumed(shared, options, out) if options.resume else _fresh(shared, options, out, machine)
    if options.pcap:
        _check_stays("--pcap", options.pcap, out)
        disk = {"the checkpoint's disk": Path(plan.config["disk"])} if plan.config["disk"] else {}
        plan.config["pcap"] = _pcap(options.pcap, plan.config, inputs | disk)
    markers = {initramfs.PROMPT, PANIC, *([plan.checkpoint_at] if plan.checkpoint_at else [])}
    plan.config["markers"] = sorted(markers)
    for name, text in (("--checkpoint-at", plan.checkpoint_at),
                       *((f"--{key}", plan.config.get(key)) for key in ("kernel", "initrd", "append", "disk", "pcap"))):
        _check_utf8(name, text or "")
    return plan


def marker(given: str | None) -> str | None:
    """`ready` stands for the line that the initial file system prints before the script or shell, `shell` for the
    shell's prompt."""
    return {"ready": initramfs.READY, "shell": initramfs.PROMPT}.get(given or "", given)


def _pcap(path: Path, config: dict[str, Any], inputs: Mapping[str, Path]) -> str:
    """The capture file, which is empty now. UserError if it cannot be written, or is one of the inputs, which have names for people."""
    if "nic" not in config:
        raise UserError(f"--pcap: {path}: the checkpoint's machine has no network card: expected one that was booted with --net")
    if same := [name for name, other in inputs.items() if path.exists() and path.samefile(other)]:
        raise UserError(f"--pcap: {path}: is the file of {same[0]}, which the capture would replace: expected another file")
    try:
        path.open("wb").close()
    except OSError as error:
        raise UserError(f"--pcap: {path}: {error.strerror}: expected {expected(error, 'a writable file')}") from error
    return str(path.absolute())


def _check_readable(name: str, path: Path) -> None:
    if why := readable.fault(path):
        raise UserError(f"{name}: {path}: {why}: expected a readable file")


def _check_utf8(name: str, text: str) -> None:
    """UserError for bytes that are no UTF-8, which the engine's configuration, a JSON text, cannot hold."""
    if not paths.is_utf8(text):
        raise UserError(f"{name}: {text:.80}: is not valid UTF-8: expected UTF-8")


def _check_stays(name: str, path: Path, out: Path) -> None:
    """UserError for an input file in the results folder, because the run replaces everything in that folder."""
    if path.resolve().is_relative_to(out.resolve()):
        raise UserError(f"{name}: {path}: lies in the folder {out}, which the results of this run will replace: expected a file "
                        "elsewhere, or another folder (--out)")


def _fresh(shared: Shared, options: Options, out: Path, machine: Machine | None) -> Plan:
    machine = _sized(machine or load_machine(shared.machine, shared.sets), options)
    _check_card(shared, bool(options.net or options.pcap), "--net")
    check_guests(machine, shared)
    cores = options.cores if options.cores is not None else machine.cores
    if not 1 <= cores <= machine.cores:
        raise UserError(f"--cores: {cores}: expected 1 to {machine.cores} for {machine.name}")
    if options.script and options.initrd:
        raise UserError(f"--script: moscope cannot run a script in the initial file system of --initrd, {options.initrd}: "
                        "expected --script or --initrd, not both")
    if options.packages and options.initrd:
        raise UserError(f"--with: moscope adds no packages to the initial file system of --initrd, {options.initrd}: "
                        "expected --with or --initrd, not both")
    chosen = kernel.find("distro" if options.kernel is None else options.kernel, shared.say)
    append = " ".join(part for part in (COMMAND_LINE, chosen.append, options.append) if part)
    info: dict[str, Any] = {"machine": machine.name, "kernel": chosen.document(), "append": append,
                            "checkpoint_at": marker(options.checkpoint_at), "script": options.script is not None}
    config = {
        **platform(machine), "cores": cores, "seed": shared.seed, "restore": False, "append": append, "info": info,
        "kernel": str(chosen.image.absolute()), "initrd": "", "disk": "", "disk_read_only": False,
    }
    remarks = []
    if options.net or options.pcap:
        config["nic"] = engine_json(machine.nic)
    if options.disk:
        config["disk"] = str(options.disk.absolute())
        info["disk"] = {"file": config["disk"], "sha256": packages.digest_of(options.disk)}
    if options.initrd:
        config["initrd"] = str(options.initrd.absolute())
    elif chosen.is_linux:
        packaged = debian.files(options.packages, shared.say) if options.packages else {}
        built = initramfs.build(chosen, shared.say, options.script, {**packaged, **options.programs})
        config["initrd"] = str(built.path)
        if chosen.modules is None and chosen.release and not chosen.append:
            remarks.append(f"no modules of {chosen.image} were found: the kernel must have all drivers of the guest built in")
    elif options.script:
        raise UserError(f"--script: {chosen.image} is not a Linux kernel: expected a Linux kernel")
    elif options.packages:
        raise UserError(f"--with: {chosen.image} is not a Linux kernel: expected a Linux kernel")
    info["prompts"] = options.initrd is None and chosen.is_linux
    return Plan(config, out, marker(options.checkpoint_at), prompts=info["prompts"], remarks=remarks)


def _resumed(shared: Shared, options: Options, out: Path) -> Plan:
    from moscope.boot.engine import checkpoint_config

    assert options.resume is not None
    fixed = options.of_the_machine()
    if fixed:
        raise UserError(f"{options.resume}: the checkpoint determines {', '.join(sorted(fixed))}: expected {_none_of(sorted(fixed))}")
    config: dict[str, Any] = json.loads(checkpoint_config(options.resume))
    _check_card(shared, "nic" in config, "a checkpoint of a boot with --net")
    _check_same(shared, options.resume, config)
    config |= {"restore": True, "kernel": "", "initrd": "", "append": config["info"]["append"],
               "disk": _disk_of(options, config["info"].get("disk"), out)}
    if options.script and config["info"].get("script"):
        raise UserError(f"--script: {options.script}: {options.resume} is from a boot with a script, so no shell is waiting: "
                        "expected no --script, or a checkpoint of a boot without a script")
    typed = script_lines(options.script) if options.script else None
    config["info"]["script"] = bool(config["info"].get("script") or options.script)
    at_prompt = config["info"]["checkpoint_at"] == initramfs.PROMPT
    config["info"]["checkpoint_at"] = marker(options.checkpoint_at)  # recorded in the run's own checkpoint
    return Plan(config, out, marker(options.checkpoint_at), options.resume, typed, at_prompt,
                prompts=config["info"].get("prompts", True))


def _check_same(shared: Shared, checkpoint: Path, config: dict[str, Any]) -> None:
    """Seed and machine are those of the checkpoint: options may repeat them, but not change them."""
    if "seed" in shared.given and shared.seed != config["seed"]:
        raise UserError(f"--seed: {shared.seed}: {checkpoint} continues with its own seed, {config['seed']}: expected that seed, "
                        "or no --seed")
    named = [f"--machine {shared.machine}"] if "machine" in shared.given else []
    changed = [f"--set {text:.80}" for text in shared.sets]
    if not named and not changed:
        return
    machine = load_machine(shared.machine if named else config["info"]["machine"], shared.sets)
    wanted = platform(machine)
    if "nic" in config:
        wanted["nic"] = engine_json(machine.nic)
    if not any(text.partition("=")[0].strip() == "memory_per_node" for text in shared.sets):
        wanted["memory_per_node"] = config["memory_per_node"]  # --memory-per-node may have chosen it
    other = [key for key, value in wanted.items() if config.get(key) != value]
    if machine.name != config["info"]["machine"] or other:
        differs = f" (differs: {', '.join(other)})" if other else ""
        raise UserError(f"{' '.join(named + changed)}: {checkpoint} is from another machine, {config['info']['machine']}"
                        f"{differs}: expected {_none_of(named + changed)}, or a boot from the start")


def _check_card(shared: Shared, present: bool, needed: str) -> None:
    """UserError for a parameter of a network card that the machine does not have."""
    unused = [text for text in shared.sets if text.partition("=")[0].strip().startswith("nic.")]
    if unused and not present:
        raise UserError(f"--set {unused[0]:.80}: the machine has no network card: expected {needed}, or no nic.*")


def _none_of(options: Sequence[str]) -> str:
    return f"no {options[0].split()[0]}" if len(options) == 1 else "none of these options"


def _disk_of(options: Options, recorded: dict[str, str] | None, out: Path) -> str:
    """The disk of a checkpoint's machine: the original file or a copy with the same contents."""
    if recorded is None:
        if options.disk:
            raise UserError(f"{options.resume}: is from a machine without a disk: expected no --disk")
        return ""
    path = options.disk or Path(recorded["file"])
    if not path.is_file():
        raise UserError(f"{options.resume}: was taken with the disk {path}, which is gone: expected --disk with a copy of it")
    _check_stays(str(options.resume), path, out)
    if packages.digest_of(path) != recorded["sha256"]:
        raise UserError(f"{path}: has changed since {options.resume} was taken: expected the disk as it was then (sha256 "
                        f"{recorded['sha256']})")
    return str(path.absolute())


def _sized(machine: Machine, options: Options) -> Machine:
    if options.memory_per_node is None:
        return machine
    try:
        sized: Machine = replace(machine, memory_per_node=Size(options.memory_per_node, "--memory-per-node")).validate()
    except ConfigError as error:
        raise error.at("--memory-per-node") from None
    return sized


def check_guests(machine: Machine, shared: Shared) -> None:
    """ConfigError about the option or file that gives the machine more chips, or chips of more cores, than guests can run on."""
    from moscope import _engine

    for key in ("chips", "cores_per_chip"):
        if (given := int(getattr(machine, key))) > (most := _engine.GUEST_LIMITS[key]):
            error = ConfigError(f"{key}: {given}", f"1 to {most} on a machine that runs guests")
            raise blamed(error, shared.machine, shared.sets)


def platform(machine: Machine) -> dict[str, Any]:
    """The machine as firmware tables and processors describe it (moscope.system/1; src/board/system_config.hh)."""
    period = machine.core_clock.period
    return {"schema": "moscope.system/1", "chips": int(machine.chips), "cores_per_chip": int(machine.cores_per_chip),
            "core_clock": {"num": period.numerator, "den": period.denominator},
            "memory_per_node": machine.memory_per_node.bytes, "hops": machine.hops(), "cpu": cpu_json(machine)}


def script_lines(script: Path) -> list[str]:
    """A script as lines to type at a prompt, for a machine whose initial file system is already fixed."""
    import base64

    text = base64.b64encode(script.read_bytes()).decode()
    width = 200  # a terminal line holds 4095 characters; short ones are kinder to line editors
    lines = ["stty -echo", ": >/run/typed"]
    lines += [f"printf %s {text[i : i + width]} >>/run/typed" for i in range(0, len(text), width)]
    return [*lines, "base64 -d </run/typed >/run/script", f'sh /run/script </dev/null; echo "{initramfs.SCRIPT_ENDED}$?"',
            "exit"]
