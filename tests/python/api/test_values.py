# SPDX-License-Identifier: BSD-3-Clause
"""Values of arguments are checked before anything runs, and may be numpy's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import moscope as package

SCRIPT = "c0 ld A@n1"
SWEEP = """job = "trace"
zip = [["seed", "links.clock"]]
fixed.script = "c0 ld A@n1"
axes.seed = [1, 2]
axes."links.clock" = ["1GHz", "2GHz"]
"""


class Made(Exception):
    """What a call would have run."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """The plan of a run, or the description of a sweep, instead of its results."""
    from moscope.runs import main as runs
    from moscope.sweeps import main as sweeps

    def stop(plan: Any, *_: Any, **__: Any) -> None:
        raise Made(plan)

    monkeypatch.setattr(runs, "measure", stop)
    monkeypatch.setattr(sweeps, "run", stop)

    def of(call: Callable[[], Any]) -> Any:
        with pytest.raises(Made) as raised:
            call()
        return raised.value.args[0]

    return of


@pytest.mark.parametrize("seed, said", [(-1, "--seed: -1: expected 0 to "), (2**70, "expected 0 to "), ("3", "--seed: 3: expected a whole"),
                                        (1.5, "--seed: 1.5: expected a whole number")])
def test_a_seed_that_no_run_can_have_is_a_user_error(seed: Any, said: str) -> None:
    for call in (lambda: package.trace(SCRIPT, "small", seed=seed), lambda: package.latency("small", seed=seed),
                 lambda: package.run("counter", kernel="distro", cores=1, seed=seed)):
        with pytest.raises(package.UserError, match=said):
            call()


@pytest.mark.parametrize("options, said", [
    ({"begin": 5}, "--begin: 5: expected a string"), ({"program": ["/bin/true"]}, "--program: .*: expected a string"),
    ({"window": 5}, "--window: 5: expected a string"), ({"warmup": 1.5}, "--warmup"), ({"detail": True}, "--detail"),
    ({"memory_per_node": 2**30}, "--memory-per-node"), ({"stdin": 0}, "--stdin: 0: expected a path"), ({"take": 1}, "--take"),
    ({"packages": 5}, "--with: 5: expected a string or several"), ({"variables": [1]}, "--env: 1: expected"), ({"count": 5}, "--count: 5"),
    ({"machine": 5}, "--machine: 5: expected a name or a path"), ({"out": 5}, "--out: 5: expected a path"),
])
def test_an_argument_of_another_type_is_a_user_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(package.UserError, match=said):
        package.run(**{"workload": "counter", "kernel": "distro", "cores": 1, **options})


@pytest.mark.parametrize("option, value, said", [
    ("jobs", "2", "--jobs: 2: expected a whole"), ("jobs", 1.5, "--jobs: 1.5: expected a whole"),
    ("executor", 5, "--executor: 5: expected a string"), ("plot", 5, "--plot: 5: expected a string")])
def test_an_option_of_a_sweep_of_another_type_is_a_user_error(option: str, value: Any, said: str) -> None:
    with pytest.raises(package.UserError, match=said):
        package.sweep("trace", {"seed": [1, 2]}, fixed={"script": SCRIPT}, **{option: value})


LONG = ("a" * 300, "/" + "b" * 200 + ("/" + "b" * 200) * 20)  # a component, and in all


@pytest.mark.parametrize("path", LONG)
@pytest.mark.parametrize("option, others", [("out", {"workload": "counter"}), ("workload", {}), ("program", {}),
                                            ("stdin", {"program": "/bin/true"}), ("take", {"program": "/bin/true"})])
def test_a_path_that_is_too_long_is_a_user_error(option: str, others: dict[str, str], path: str) -> None:
    with pytest.raises(package.UserError, match="File name too long: expected"):
        package.run(kernel="distro", cores=1, **others, **{option: f"/{path}"})


@pytest.mark.parametrize("path", LONG)
def test_a_path_that_is_too_long_is_a_user_error_of_every_call(path: str) -> None:
    for call in (lambda: package.sweep("latency", {"machine": ["small"]}, out=path), lambda: package.sweep(f"{path}.toml"),
                 lambda: package.open_run(path), lambda: package.Machine(f"{path}.py")):
        with pytest.raises(package.UserError, match="File name too long: expected"):
            call()


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
@pytest.mark.parametrize("option, said", [("out", "--out: .*: expected a path"), ("machine", "--machine: .*: expected a name or a path"),
                                          ("stdin", "--stdin"), ("take", "--take"), ("workload", "--workload: .*: is not a path")])
def test_a_text_that_can_be_no_path_is_a_user_error(option: str, said: str, path: str) -> None:
    with pytest.raises(package.UserError, match=said):
        package.run(**{"workload": "counter", "kernel": "distro", "cores": 1, option: f"/{path}"})


@pytest.mark.parametrize("name, arguments", [("open_run", (5,)), ("open_run", (None,)), ("trace", (5,)), ("trace", (SCRIPT, 5)),
                                             ("latency", (3,))])
def test_an_argument_of_another_type_is_a_user_error_in_every_call(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(package.UserError):
        getattr(package, name)(*arguments)


@pytest.mark.parametrize("call, said", [
    (lambda: package.latency("small", bandwidth="no"), "--bandwidth: no: expected True or False"),
    (lambda: package.latency("small", progress="yes"), "progress: yes: expected True, False, None or a function"),
    (lambda: package.latency("small", progress=0), "progress: 0: expected"),
    (lambda: package.run("counter", kernel="distro", cores=1, progress=5), "progress: 5: expected True, False, None or a function"),
    (lambda: package.run("counter", kernel="distro", cores=1, check="no"), "check: no: expected True or False"),
    (lambda: package.sweep("trace", {"seed": [1]}, fixed={"script": SCRIPT}, check=None), "check: None: expected True or False"),
    (lambda: package.sweep("trace", {"links.width": [8]}, fixed={"script": SCRIPT}, seed=True),
     "moscope.sweep: links.width=8: seed: True: expected a whole"),
    (lambda: package.trace(SCRIPT, "small", seed=True), "--seed: True: expected a whole number"),
    (lambda: package.verify("MSI", symmetry="no"), "--symmetry: no: expected True or False"),
    (lambda: package.check("MSI", ops=True), "--ops: True: expected a whole number"),
])
def test_a_switch_is_true_or_false_and_a_number_is_neither(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(package.UserError, match=f"^{said}"):
        call()


@pytest.mark.parametrize("parts, said", [
    ({"axes": 5}, "axes: 5: expected a mapping"), ({"fixed": ["seed"]}, "fixed: .*: expected a mapping"),
    ({"axes": {5: [1]}}, "axes: .*: expected a mapping from names"), ({"zips": 5}, "zips: 5: expected a list of lists of axes"),
    ({"zips": [5]}, "zips: 5: expected a list of axes"), ({"exclude": {"seed": 1}}, "exclude: .*: expected a list of mappings"),
    ({"exclude": ["seed"]}, "exclude: seed: expected a mapping"),
])
def test_parts_of_a_sweep_of_another_type_are_user_errors(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(package.UserError, match=f"^{said}"):
        package.sweep("trace", **{"axes": {"seed": [1]}, "fixed": {"script": SCRIPT}, **parts})


def test_parameters_of_a_machine_are_named_by_texts() -> None:
    values: list[Any] = [5, "links.clock=1GHz", ["links.clock"]]
    for value in values:
        with pytest.raises(package.UserError, match=r"^moscope.Machine: .*: expected a mapping from names to values"):
            package.Machine("small", value)
    with pytest.raises(package.UserError, match=r"^moscope.Machine: 5: expected a string"):
        package.Machine("small")[values[0]]


@pytest.mark.parametrize("options, said", [({"windows": 1.5}, "--windows: 1.5: expected a whole number"),
                                           ({"threads": "2"}, "--threads: 2: expected a whole number"),
                                           ({"until_error": 0.03}, "--until-error: 0.03: expected")])
def test_a_number_of_another_kind_is_a_user_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(package.UserError, match=said):
        package.run("counter", kernel="distro", cores=1, **options)


def test_numbers_may_be_those_of_numpy(made: Any) -> None:
    values: list[Any] = [numpy.int64(2), numpy.int64(3), numpy.int64(4), numpy.arange(8, 17, 8)]
    two, three, four, widths = values
    plan = made(lambda: package.run("counter", kernel="distro", cores=numpy.arange(1, 3), seed=three, windows=four))
    assert (plan.seed, [(p.cores, p.windows) for p in plan.points]) == (3, [(1, 4), (2, 4)])
    assert isinstance(plan.seed, int)
    spec = made(lambda: package.sweep("trace", {"links.width": widths}, fixed={"script": SCRIPT}, seed=two,
                                      exclude=[{"links.width": widths[:1]}]))
    assert spec.axes == {"links.width": [8, 16]} and type(spec.axes["links.width"][0]) is int
    assert (spec.fixed["seed"], spec.exclude) == (2, [{"links.width": [8]}])


def test_a_text_is_one_value_where_several_are_expected(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(package.UserError, match="--with: no,name: expected the name of a Debian package"):
        package.run(program=str(program), begin="1ms", packages="no,name")


def test_excluded_values_may_be_a_tuple_or_a_topology(made: Any) -> None:
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]
    spec = made(lambda: package.sweep("trace", {"topology": [ring, "ring"], "seed": (1, 2)}, fixed={"script": SCRIPT},
                                      exclude=[{"topology": ring, "seed": (1, 2)}, {"topology": [ring, "ring"]}]))
    assert spec.exclude == [{"topology": ["0-1 1-2 2-3 3-0"], "seed": [1, 2]}, {"topology": ["0-1 1-2 2-3 3-0", "ring"]}]


@pytest.mark.parametrize("values", ["1GHz", 3, None])
def test_an_axis_of_no_list_is_a_user_error(values: Any) -> None:
    with pytest.raises(package.UserError, match="axes.links.clock: .*: expected a list of one value or more"):
        package.sweep("trace", {"links.clock": values}, fixed={"script": SCRIPT})


def test_nothing_of_a_call_with_a_sweep_file_is_ignored(tmp_path: Path, made: Any) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SWEEP)
    with pytest.raises(package.UserError, match="mine.toml: seed: is given as an option and zipped: expected one of the two"):
        package.sweep(file, seed=7)
    for parts in ({"axes": {"seed": [5]}}, {"fixed": {"seed": 5}}, {"zips": [["seed"]]}, {"exclude": [{"seed": 1}]}):
        with pytest.raises(package.UserError, match="mine.toml: is a sweep file: expected no axes, fixed, zips or exclude with it"):
            package.sweep(file, **parts)
    file.write_text(SWEEP.replace('zip = [["seed", "links.clock"]]', ""))
    spec = made(lambda: package.sweep(file, seed=7))
    assert (spec.fixed["seed"], list(spec.axes)) == (7, ["links.clock"])
