# SPDX-License-Identifier: BSD-3-Clause
"""Sweep files: what is read from them, which points they describe, and how mistakes in them are answered."""

import os
from pathlib import Path

import pytest

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.sweeps import axes, main, overrides, points, spec

TRACE = 'job = "trace"\nfixed.script = "c0 ld A@n0"\n'


def read(tmp_path: Path, text: str) -> spec.Spec:
    file = tmp_path / "s.toml"
    file.write_text(text)
    return spec.read(file)


def test_axes_make_a_product_whose_last_axis_varies_fastest(tmp_path: Path) -> None:
    made = axes.points(read(tmp_path, TRACE + '[axes]\nlinks.clock = ["1GHz", "2GHz"]\n"topology" = ["ring", "twisted_ladder"]\n'))
    assert [(p["links.clock"], p["topology"]) for p in made] == [("1GHz", "ring"), ("1GHz", "twisted_ladder"), ("2GHz", "ring"),
                                                                 ("2GHz", "twisted_ladder")]
    assert all(p["script"] == "c0 ld A@n0" for p in made)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert read(tmp_path, "\N{BYTE ORDER MARK}" + TRACE).job == "trace"


def test_zipped_axes_advance_together(tmp_path: Path) -> None:
    made = axes.points(read(tmp_path, TRACE.replace("fixed", 'zip = [["chips", "topology"]]\nfixed') +
                            '[axes]\nchips = [4, 8]\nseed = [1, 2]\ntopology = ["ring", "twisted_ladder"]\n'))
    assert [(p["chips"], p["topology"], p["seed"]) for p in made] == [(4, "ring", 1), (4, "ring", 2), (8, "twisted_ladder", 1),
                                                                      (8, "twisted_ladder", 2)]


def test_zipped_axes_may_repeat_a_value_but_no_combination(tmp_path: Path) -> None:
    text = TRACE.replace("fixed", 'zip = [["chips", "topology"]]\nfixed') + '[axes]\nchips = [2, 4]\ntopology = ["ring", "ring"]\n'
    assert [(p["chips"], p["topology"]) for p in axes.points(read(tmp_path, text))] == [(2, "ring"), (4, "ring")]
    with pytest.raises(UserError, match="zip of chips, topology: 2, ring appears twice: expected each combination of values once"):
        read(tmp_path, text.replace("[2, 4]", "[2, 2]"))


def test_excluded_points_are_left_out(tmp_path: Path) -> None:
    made = axes.points(read(tmp_path, TRACE + '[axes]\nseed = [1, 2, 3]\ntopology = ["ring", "twisted_ladder"]\n'
                                              '[[exclude]]\ntopology = "ring"\nseed = [2, 3]\n'))
    assert [(p["seed"], p["topology"]) for p in made] == [(1, "ring"), (1, "twisted_ladder"), (2, "twisted_ladder"), (3, "twisted_ladder")]


def test_an_exclusion_may_write_a_value_otherwise_than_the_axis(tmp_path: Path) -> None:
    found = read(tmp_path, TRACE + '[axes]\nlinks.clock = ["1GHz", "2GHz"]\nl1d.size = ["32KiB", "1MiB"]\n'
                                   '[[exclude]]\nlinks.clock = "1000MHz"\nl1d.size = "1024KiB"\n')
    assert [(p["links.clock"], p["l1d.size"]) for p in axes.points(found)] == [("1GHz", "32KiB"), ("2GHz", "32KiB"), ("2GHz", "1MiB")]


@pytest.mark.parametrize("text, error", [
    ("job = 1x", "expected newline or end of document after a statement (at line 1, column 8): expected TOML"),
    ("", 'names no job: expected such as job = "trace"'),
    (TRACE + "[axis]\nseed = [1]", 'no part of a sweep called "axis": expected a known name, such as axes'),
    (TRACE + "[axes]\nseed = 1", "axes.seed: 1: expected a list of one value or more"),
    (TRACE + "[axes]\nseed = [1, 1]", "axes.seed: 1 appears twice: expected each value once"),
    (TRACE + '[axes]\nscript = ["c0 ld A@n1"]', "script: is fixed and an axis: expected one of the two"),
    ('zip = [["seed", "chips"]]\n' + TRACE + "[axes]\nseed = [1, 2]\nchips = [1]",
     "zip: seed has 2, chips has 1 values: expected equal numbers of values"),
    (TRACE + "[axes]\nseed = [nan]", "axes.seed: nan: expected a string, number, true or false"),
    (TRACE + '[axes]\n"links.clock" = ["1GHz"]\nlinks.clock = ["2GHz"]', "axes: links.clock: appears twice: expected each parameter once"),
    (TRACE + '[axes]\ncore_clock = ["1.0GHz", "2.4GHz"]\n[[exclude]]\ncore_clock = "2GHz"',
     "exclude.core_clock: 2GHz is not a value of the axis: expected one of 1.0GHz, 2.4GHz"),
    (TRACE + "[axes]\nseed = [1, 2]\n[[exclude]]\nseed = 2.0", "exclude.seed: 2.0 is not a value of the axis: expected one of 1, 2"),
    ('zip = [["sed"]]\n' + TRACE + "[axes]\nseed = [1, 2]", 'zip: no axis called "sed": expected a known name, such as seed'),
])
def test_a_mistake_in_the_file_is_a_user_error_that_names_the_place(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)
    assert str(raised.value) == f"{tmp_path / 's.toml'}: {error}"


def test_a_device_or_a_pipe_is_no_sweep_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for file, kind in ((Path("/dev/zero"), "device"), (tmp_path / "pipe.toml", "pipe")):
        with pytest.raises(UserError, match=f"^{file}: is a {kind}: expected a sweep file"):
            spec.read(file)


@pytest.mark.parametrize("text, error", [
    (TRACE.replace("trace", "tracer"), 'job: no job called "tracer": expected a known name, such as trace'),
    (TRACE + '[axes]\nlinks.clok = ["1GHz"]', 'no parameter called "links.clok": expected a known name, such as links.clock'),
    ('job = "trace"\n[axes]\nseed = [1]', "no script: expected a value, which the job trace needs"),
    (TRACE + "[axes]\ntopology = ['ring', 'rong']", "topology=rong: --set topology=rong: "),
    (TRACE + "[axes]\nseed = [1]\n[[exclude]]\nseed = 1", "exclude: leaves no point: expected exclusions that match only some points"),
    (TRACE + 'fixed.png = "x.png"', "png: is an option that cannot be a parameter: expected one of the options of trace, machine, "),
    ('job = "protocol check"\nfixed.shrink = 3', "shrink: is an option that cannot be a parameter: "),
    ('job = "latency"\nfixed.gem5 = "g"', "gem5: is an option that cannot be a parameter: "),
    (TRACE + "fixed.xyzzy = 1", 'no parameter called "xyzzy": expected one of the options of trace, machine, seed and the keys of --set'),
    (TRACE + "[axes]\nseed = ['1', 2]", 'seed=1: seed: "1": expected a whole number'),
    ('job = "latency"\nfixed.bandwidth = "true"', 'bandwidth: "true": expected true or false'),
    ('job = "protocol check"\nfixed.protocol = "MSI"\nfixed.ops = "9"', 'ops: "9": expected a whole number from 1'),
    (TRACE + "[axes]\nseed = [true]", "seed=true: seed: True: expected a whole number"),
    (TRACE + "[axes]\nseed = [1]\n[[exclude]]\nsed = 1", 'exclude: no parameter called "sed": expected a known name, such as seed'),
])
def test_a_parameter_that_does_not_fit_is_found_before_any_point_runs(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(UserError) as raised:
        points.plan(read(tmp_path, text), print)
    assert str(raised.value).startswith(f"{tmp_path / 's.toml'}: {error}")


def test_an_unknown_job_is_named_with_its_file_also_by_the_command(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f'^{tmp_path}/s.toml: job: no job called "latencies": expected a known name, such as latency'):
        overrides.apply(read(tmp_path, 'job = "latencies"'), Shared())


def test_a_dry_run_names_the_file_and_the_point_of_a_mistake_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = read(tmp_path, 'job = "run"\n[fixed]\nprogram = "prog.sh"\nkernel = "distro"\nbegin = "1ms"\n[axes]\ncores = [1, 2]')
    with pytest.raises(UserError) as raised:
        main.run(found, tmp_path / "out", dry_run=True)
    assert str(raised.value).startswith(f"{tmp_path / 's.toml'}: cores=1: --program: prog.sh: is neither in {tmp_path} nor on the PATH: ")


@pytest.mark.parametrize("key, text, values", [
    ("links.clock", "1GHz,2.4GHz", ["1GHz", "2.4GHz"]),
    ("links.clock", "1GHz", ["1GHz"]),
    ("topology", "ring,twisted_ladder", ["ring", "twisted_ladder"]),
    ("topology", "0-1 1-2 2-3 3-4,4-5 5-6 6-7", ["0-1 1-2 2-3 3-4,4-5 5-6 6-7"]),
    ("routing", "[[0,1],[1,0]],[[1,0],[0,1]]", ["[[0,1],[1,0]]", "[[1,0],[0,1]]"]),
    ("params.L1Cache.issue_latency", "2,3", ["2", "3"]),
])
def test_commas_separate_values_unless_they_are_part_of_one(key: str, text: str, values: list[str]) -> None:
    single, several = overrides.split("opteron48", [f"{key}={text}"])
    assert {**single, **several} == {key: values}


@pytest.mark.parametrize("first, last, found", [
    ("1,2", "1", ({"dram.channels": ["1"]}, {})), ("1", "1,2", ({}, {"dram.channels": ["1", "2"]})),
])
def test_the_last_value_given_to_a_key_replaces_the_ones_before(first: str, last: str, found: object) -> None:
    assert overrides.split("opteron48", [f"dram.channels={first}", f"dram.channels={last}"]) == found
