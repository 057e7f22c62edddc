# SPDX-License-Identifier: BSD-3-Clause
"""The command line: finds a command, gives it the options that all share, turns its end into an exit code.

A command is one module under `moscope/commands/`; its path is its name (`commands/protocol/list.py` is
`moscope protocol list`, a folder's docstring is its group's help). The module decorates one function with
`@command`; that function takes a `Shared` first, then its own typer options, and returns an exit code or nothing.
Only the command that is called is imported, so a start stays quick; heavy imports belong inside functions.
"""

import copy
import importlib
import inspect
import os
import pkgutil
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, overload

import typer
from typer.exceptions import TyperException

from moscope import commands, completion, contributed, errors, interruptions, jsonio, paths, streams
from moscope._version import VERSION
from moscope.errors import MoscopeError, UserError, unknown_name
from moscope.failures import as_error

DEFAULT_MACHINE = "opteron48"
# A whole number in every reader of JSON. Python multiplies it by a thousand, and the engine reads 64 bits.
MOST_SEED = 2**53 - 1
MOST_JOBS = 1000  # processes at the same time
HELP = ("-h", "--help")
OF_A_CHECKOUT = {"docs", "test"}  # commands that an installed package does not have
# The launcher answers it before there is a front end (bootstrap.build_targets), so it is in no list of commands.
BUILD = "`./moscope build` builds the simulator alone. See `./moscope build --help`."


@dataclass(frozen=True)
class Shared:
    """The options that every command takes, and how a command speaks: results on stdout, the rest on stderr."""

    machine: str = DEFAULT_MACHINE
    sets: list[str] = field(default_factory=list)
    seed: int = 1
    out: Path | None = None
    json: bool = False
    quiet: bool = False
    result_fd: int = 1
    given: frozenset[str] = frozenset()  # the fields above that the user set, even if to the default
    kept: Path | None = None  # where the JSON object also goes; None without `--out`, or if the command fills that folder itself

    def say(self, text: str) -> None:
        """Prints progress and remarks for people on stderr, also with `--json`."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def result(self, document: dict[str, Any]) -> None:
        """Emits the command's one JSON object: on stdout with `--json`, and into `--out` if the command puts nothing else there."""
        if self.kept:
            with jsonio.atomic_dir(self.kept.parent) as folder:
                (folder / self.kept.name).write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
            self.say(f"wrote {self.kept}")
        if not self.json:
            return
        sys.stdout.flush()
        data = jsonio.dumps(document).encode() + b"\n"
        while data:
            data = data[os.write(self.result_fd, data):]


    def answer(self, document: dict[str, Any], text: Callable[[], None]) -> None:
        """The result of a command whose exit code says what it found: the JSON object, or what `text` prints. Where the reader of the
        output ends first (`| head`), the command goes on to its exit code."""
        try:
            self.result(document)
            if not self.json:
                text()
                sys.stdout.flush()
        except (BrokenPipeError, SystemExit) as end:
            if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):  # rich ends so
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _folder(given: str) -> Path:
    if not given:  # Path("") is the current folder
        raise UserError("--out: is empty: expected a folder")
    return Path(given)


# Parameters that `command` adds to each function, in the order in which `--help` shows them.
_SHARED_OPTIONS: dict[str, tuple[Any, Any]] = {
    "machine": (Annotated[str, typer.Option(metavar="NAME|FILE.py", help="Machine to simulate.")], DEFAULT_MACHINE),
    "sets": (Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE",
                                               help="Change a machine parameter; repeatable.")], []),
    "seed": (Annotated[int, typer.Option(metavar="N", help="Seed of all random choices.")], 1),
    "out": (Annotated[Path | None, typer.Option(metavar="DIR", parser=_folder, help="Folder for the results.")], None),
    "json": (Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, everything else on stderr.")], False),
    "quiet": (Annotated[bool, typer.Option("--quiet", help="Print only results and errors.")], False),
}

#: The options that describe a simulation. Commands without one accept them all the same, as scripts pass them to any command.
SIMULATED = ("machine", "sets", "seed")
_WITHOUT_EFFECT = "No effect on this command."

Command = Callable[..., int | None]
_registered: dict[str, Command] = {}


def _said(kind: Any, text: str, **others: Any) -> Any:
    """The option with another help text, and other attributes."""
    type_, option = get_args(kind)
    changed = copy.copy(option)
    vars(changed).update(others, help=text)
    return Annotated[type_, changed]


def _shared_option(name: str, kept_as: str, unused: Sequence[str]) -> inspect.Parameter:
    kind, default = _SHARED_OPTIONS[name]
    if name in unused:
        kind = _said(kind, _WITHOUT_EFFECT, show_default=False)
    if name == "out" and kept_as:  # the command does not fill the folder itself
        kind = _said(kind, f"Folder for the results: the JSON object as {kept_as}.")
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def checked_seed(seed: int) -> int:
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"--seed: {seed}: expected 0 to {MOST_SEED}")
    return seed


F = TypeVar("F", bound=Command)


@overload
def command(function: F, *, fills_out: bool = False, unused: Sequence[str] = ()) -> F: ...
@overload
def command(function: None = None, *, fills_out: bool = False, unused: Sequence[str] = ()) -> Callable[[F], F]: ...
def command(function: Command | None = None, *, fills_out: bool = False, unused: Sequence[str] = ()) -> Any:
    """Registers `function` as the command of its module and gives it the shared options. `fills_out`: it puts files into
    `--out` itself; for the others `Shared.result` keeps the JSON object there. `unused`: those of SIMULATED that have no effect on it,
    which its help says, and a remark where the user gives one."""
    if function is None:
        return partial(command, fills_out=fills_out, unused=unused)
    kept_as = "" if fills_out else "-".join(function.__module__.split(".")[2:]) + ".json"
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    added = [_shared_option(name, kept_as, unused) for name in _SHARED_OPTIONS]

    def run(**arguments: Any) -> int | None:
        context: typer.Context = arguments.pop("context")
        values = {name: arguments.pop(name) for name in _SHARED_OPTIONS}
        sources = {name: context.get_parameter_source(name) for name in values}
        given = frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")
        checked_seed(values["seed"])
        if values["json"] and not streams.has_stdout():
            raise UserError("standard output: is closed: expected an open one, for the result of --json")
        kept = (values["out"] / kept_as).absolute() if kept_as and values["out"] else None
        if kept:
            jsonio.check_replaceable(kept.parent)  # before any long work
        with json_only_on_stdout(values["json"]) as fd:
            shared = Shared(**values, result_fd=fd, given=given, kept=kept)
            for name in (name for name in unused if name in given):
                shared.say(f"--{name.removesuffix('s')}: has no effect on {context.command_path}")
            return function(shared, **arguments)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own] + added + [context]
    if completion.asked():
        parameters = [p.replace(annotation=completion.with_values(p.name, p.annotation)) for p in parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one, mypy does not know it
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = function.__doc__
    _registered[function.__module__] = run
    return function


@contextmanager
def json_only_on_stdout(wanted: bool) -> Iterator[int]:
    """With `--json`, all printed output (also that of C++) goes to stderr. Yields the descriptor for the result."""
    if not wanted:
        yield 1
        return
    sys.stdout.flush()
    result = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield result
    finally:
        os.dup2(result, 1)
        os.close(result)


def _names_in(package: str) -> dict[str, str]:
    """Command and group names in a package, with the modules that hold them."""
    module = importlib.import_module(package)
    found = {m.name.rstrip("_").replace("_", "-"): f"{package}.{m.name}" for m in pkgutil.iter_modules(module.__path__)}
    return {name: place for name, place in found.items() if not (paths.installed() and name in OF_A_CHECKOUT)}


def _add(app: typer.Typer, name: str, module_name: str, rest: list[str] | None, called: str) -> None:
    """Adds the command or group `name` to `app`. Of a group, only the part that `rest` names is loaded; nothing is loaded if the
    group is only listed."""
    module = contributed.imported(module_name, "a command (docs/extending/command.md)")
    if hasattr(module, "__path__"):
        group = typer.Typer(help=module.__doc__, context_settings={"help_option_names": HELP})
        _fill(group, module_name if rest is not None else None, rest or [], f"{called} {name}")
        app.add_typer(group, name=name)
    elif module_name in _registered:
        app.command(name, context_settings={"help_option_names": HELP})(_registered[module_name])


def _fill(app: typer.Typer, package: str | None, arguments: list[str], called: str) -> None:
    # A group even if only one command is loaded; without a command it prints its help.
    @app.callback(invoke_without_command=True)
    def group(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    names = _names_in(package) if package else {}
    if arguments and not arguments[0].startswith("-"):
        wanted = arguments[0]
        if wanted not in names:
            _check_group(package, wanted)
            raise unknown_name(called, "command", wanted, names)
        _add(app, wanted, names[wanted], arguments[1:], called)
    else:
        for name, module in names.items():
            _add(app, name, module, None, called)


def _check_group(package: str | None, name: str) -> None:
    """Raises a UserError for a folder of commands that Python does not find, because it has no `__init__.py`."""
    for path in importlib.import_module(package).__path__ if package else ():
        file = Path(path) / name.replace("-", "_") / "__init__.py"
        if not file.exists() and any(file.parent.glob("*.py")):
            raise UserError(f"{contributed.shown(file)}: no such file: expected one whose docstring is the help of the group "
                            f"{name} (docs/extending/command.md)")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"moscope {VERSION}")
        raise typer.Exit


def _show_completion(given: str | None) -> None:
    if given is not None:
        print(completion.script(completion.shell_of("--show-completion", given)))
        raise typer.Exit


def _install_completion(given: str | None) -> None:
    if given is not None:
        shell = completion.shell_of("--install-completion", given)
        print(f"{shell}: completion is installed in {completion.install(shell)} and works in new shells", file=sys.stderr)
        raise typer.Exit


_COMPLETION = ("--install-completion", "--show-completion")


def _top(context: typer.Context,
         version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True,
                                               help="Show the version number.")] = False,
         install_completion: Annotated[str | None, typer.Option(
             metavar="[SHELL]", callback=_install_completion, is_eager=True,
             help="Install completion for bash, zsh or fish. Default: the current shell.")] = None,
         show_completion: Annotated[str | None, typer.Option(
             metavar="[SHELL]", callback=_show_completion, is_eager=True, help="Print the completion script.")] = None,
         ) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _complete() -> int:
    """Answers a shell that completes a command line; the answer is empty if the line is not valid."""
    from typer._completion_classes import completion_init

    completion_init()
    os.environ["COLUMNS"] = "10000"  # keeps each description on one line
    try:
        return _dispatch(completion.words())
    except (MoscopeError, TyperException):
        return errors.OK


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[-1] in _COMPLETION:  # without a shell: complete for the current one
        arguments = [*arguments, ""]
    app = typer.Typer(
        help="Simulator of the 48-core Opteron machine of the MOSBENCH paper. See `moscope COMMAND --help`.",
        epilog=None if paths.installed() else BUILD, add_completion=False, context_settings={"help_option_names": HELP})
    _fill(app, commands.__name__, arguments, "moscope")
    app.callback(invoke_without_command=True)(_top)
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="moscope", standalone_mode=False)
    except SystemExit as end:
        # typer and rich answer a closed pipe with an exit code that has another meaning here.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise
    return int(code or errors.OK)


# What typer expects of a value, by the name of the fault that its validation (pydantic) finds.
_EXPECTED = {"int_parsing": "a whole number", "int_parsing_size": "a whole number with fewer digits", "float_parsing": "a number",
             "greater_than_equal": "{ge} or more", "less_than_equal": "{le} or less"}


def _wrong_value(error: TyperException) -> UserError | None:
    """For a value that is no number, or out of its range; None for any other complaint."""
    faults: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    fault = faults[0] if faults else {}
    expected, parameter = _EXPECTED.get(fault.get("type", "")), getattr(error, "param", None)
    if expected is None or parameter is None:
        return None
    return UserError(f"{max(parameter.opts, key=len)}: {fault['input']!s:.40}: expected {expected.format(**fault.get('ctx', {}))}")


def _usage_error(error: TyperException) -> UserError:
    """typer's complaint in the form that all user errors have."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context else "moscope"
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        known = [o for p in context.command.params for o in p.opts if o.startswith("-")] if context else []
        return unknown_name(where, "option", option, known)
    if wrong := _wrong_value(error):
        return wrong
    message = error.format_message().strip().rstrip(".")
    return UserError(f"{where}: {message[:1].lower() + message[1:]}: expected what `{where} --help` lists")


def _report(error: MoscopeError) -> int:
    with suppress(BrokenPipeError):  # without a reader of stderr the exit code stays
        print(error.report(), file=sys.stderr)
    return error.exit_code


def _is_closed(fd: int) -> bool:
    """Whether a pipe has no reader any more."""
    asked = select.poll()
    asked.register(fd, 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in asked.poll(0))


def _file(fd: int) -> tuple[int, int] | None:
    """Identifies the open file of a descriptor; rich replaces a closed pipe by another file."""
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _check_utf8(arguments: list[str]) -> None:
    """Refuses arguments that are not UTF-8. Neither the result files nor the libraries that write them support such text."""
    for word in arguments:
        if not paths.is_utf8(word):
            raise UserError(f"{word}: is not valid UTF-8: expected an argument in UTF-8")


def main(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code; no exception leaves it as a traceback."""
    streams.prepare()
    interruptions.hear()
    output = _file(1)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which the start has blocked (bootstrap.front_end)
        if completion.asked():
            return _complete()
        _check_utf8(arguments)
        code = _dispatch(arguments)
        if code == errors.INTERRUPTED:  # typer's exit code for an interruption
            raise KeyboardInterrupt
        sys.stdout.flush()
        return code
    except MoscopeError as error:
        return _report(error)
    except TyperException as error:
        return _report(_usage_error(error))
    except (KeyboardInterrupt, typer.Abort):
        print("moscope: interrupted", file=sys.stderr)
        return errors.INTERRUPTED
    except Exception as error:  # noqa: BLE001  the one place where everything is caught
        if isinstance(error, BrokenPipeError) and (_is_closed(1) or _file(1) != output):
            # The reader has closed our output; keep the interpreter from complaining when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return errors.OK
        return _report(as_error(error, f"moscope {' '.join(arguments)}"))
