# SPDX-License-Identifier: BSD-3-Clause
"""Schemas refuse what the contracts do not allow; a result folder is whole or absent."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from moscope import jsonio, paths
from moscope.errors import UserError

LATENCY = {"schema": "moscope.latency/1", "machine": "small", "rows": [
    {"name": "L1", "reference": 3, "source": "published", "measured": 3.0, "unit": "cycles", "trace": "t.json"}]}
CHECK = {"schema": "moscope.check/1", "ok": True, "ops": 10, "seconds": 0.5, "reached": 3, "declared": 4,
         "unreached": ["L1Cache S Inv"], "violations": []}
TRACE = {"schema": "moscope.trace/1",
         "accesses": [{"core": 0, "op": "ld", "address": "0x40", "segments": [{"name": "L1", "fs": 1}]}],
         "messages": [{"type": "GETS", "address": "0x40"}],
         "transitions": [{"machine": "L1Cache", "state": "I", "event": "Load", "next": "IS", "address": "0x40"}]}
BENCH = {"schema": "moscope.bench.memory/1", "l1_hits_per_s": 1e8, "l3_misses_per_s": 2e6,
         "dram3_misses_per_s": 5e5, "tester_loads_per_s": 5e4}


@pytest.mark.parametrize("path", sorted(jsonio.SCHEMAS.rglob("*.json")), ids=lambda p: p.stem)
def test_each_schema_is_valid_and_lies_under_its_name(path: Path) -> None:
    schema = jsonio.schema(path)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonio.schema_file(schema["properties"]["schema"]["const"]) == path


SCHEMA = re.compile(r"moscope\.[a-z0-9_.]+/\d+")
# Names of what is no JSON document for scripts: input of an engine, tables, files by which parts of moscope work together.
NO_DOCUMENTS = {f"moscope.{name}/1" for name in (
    "system", "machine", "gem5", "card", "episodes", "links", "loads", "stacks", "transactions",
    "sweep.table", "sweep.lines", "sweep.point", "sweep.workflow")}


def schemas_named(text: str) -> set[str]:
    """The schemas that a Python source names."""
    if not SCHEMA.search(text):
        return set()
    texts = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {t for t in texts if SCHEMA.fullmatch(t)}


def test_each_schema_that_a_source_names_has_a_file() -> None:
    named = {name for folder in (paths.PACKAGE, paths.root() / "analysis") for path in folder.rglob("*.py")
             for name in schemas_named(path.read_text(encoding="utf-8"))}
    assert len(named) > 40
    lacking = {name for name in named if not jsonio.schema_file(name).is_file()}
    wanted = [f"src/python/moscope/schemas/{jsonio.schema_file(name).name}" for name in sorted(lacking - NO_DOCUMENTS)]
    assert not wanted, "documents without a JSON Schema: expected these files, as docs/extending/command.md shows"
    assert lacking == NO_DOCUMENTS


def results_without_schema(text: str) -> list[int]:
    """The lines of a Python source where a literal object without a schema is a command's result."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    given = [call.args[0] for call in calls if call.func.attr in ("result", "answer") and call.args]  # type: ignore[attr-defined]
    return [d.lineno for d in given if isinstance(d, ast.Dict) and "schema" not in {k.value for k in d.keys if isinstance(k, ast.Constant)}]


def test_each_result_of_a_command_names_its_schema() -> None:
    sources = sorted((paths.PACKAGE / "commands").rglob("*.py"))
    assert not [f"{path}:{line}" for path in sources for line in results_without_schema(path.read_text(encoding="utf-8"))]
    assert results_without_schema("shared.result({'schema': 'moscope.a/1'})\nshared.result({'a': 1})\n") == [2]


def test_a_short_schema_is_completed_from_its_name(tmp_path: Path) -> None:
    (tmp_path / "moscope.clocks.1.json").write_text('{"properties": {"core": {"type": "string"}}}')
    schema = jsonio.schema(tmp_path / "moscope.clocks.1.json")
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({"schema": "moscope.clocks/1", "core": "2GHz"})
    assert not valid({"schema": "moscope.clocks/2", "core": "2GHz"}) and not valid({"schema": "moscope.clocks/1"})


def closed(schema: Any, place: str) -> Iterator[str]:
    """Places in a schema that refuse keys which they do not name."""
    if isinstance(schema, dict):
        if schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False:
            yield place
        for key, inner in schema.items():
            yield from closed(inner, f"{place}/{key}")
    elif isinstance(schema, list):
        for inner in schema:
            yield from closed(inner, place)


def test_only_objects_whose_values_add_up_are_closed_to_new_keys() -> None:
    found = [p for path in sorted(jsonio.SCHEMAS.rglob("*.json")) for p in closed(jsonio.schema(path), path.name)]
    # Shares of the cores' time add up to one, a transaction's segments to its latency, the stall of the classes to all stall.
    assert found == ["moscope.attribution.1.json/properties/segments", "moscope.attribution.1.json/properties/classes",
                     "moscope.run.1.json/$defs/cycles",
                     "moscope.stats.1.json/properties/cores/items/properties/segments_fs"]


@pytest.mark.parametrize("document", [LATENCY, CHECK, TRACE, BENCH], ids=lambda d: d["schema"])
def test_each_key_of_the_contracts_examples_is_required(document: dict) -> None:
    jsonio.validate(document)
    for key in document:
        with pytest.raises(ValueError):
            jsonio.validate({k: v for k, v in document.items() if k != key})


@pytest.mark.parametrize("document", [
    {**CHECK, "violations": ["stale value"]},  # not ok, then
    {**CHECK, "ok": False},  # but nothing violated
    {**LATENCY, "rows": []},
    {**LATENCY, "rows": [{**LATENCY["rows"][0], "unit": "ns"}]},
    {**BENCH, "l1_hits_per_s": 0},
    {**TRACE, "accesses": [{**TRACE["accesses"][0], "op": "load"}]},
    {"schema": "moscope.nothing/1"},
])
def test_a_document_against_the_contract_is_refused(document: dict) -> None:
    with pytest.raises(ValueError):
        jsonio.validate(document)


def test_not_a_number_is_not_written() -> None:
    with pytest.raises(ValueError):
        jsonio.dumps({"measured": float("nan")})


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", '{"a": 1e999}', "[" * 100_000, "{", "", "1" + "0" * 400])
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        jsonio.loads(text)
    assert jsonio.loads('{"a": [1, 2.5e3, "NaN"]}') == {"a": [1, 2500.0, "NaN"]}
    assert jsonio.loads(f"[{-2**63}, {2**64 - 1}]") == [-2**63, 2**64 - 1]


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_result_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    with jsonio.atomic_dir(tmp_path / "deep" / "run") as partial:
        (partial / "run.json").write_text("{}")
        assert not (tmp_path / "deep" / "run").exists()
    assert names(tmp_path / "deep" / "run") == [jsonio.MARK, "run.json"]
    assert names(tmp_path / "deep") == ["run"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_leaves_the_earlier_result_and_nothing_else(tmp_path: Path, failure: type) -> None:
    with jsonio.atomic_dir(tmp_path / "run") as partial:
        (partial / "first").touch()
    with pytest.raises(failure), jsonio.atomic_dir(tmp_path / "run") as partial:
        (partial / "second").touch()
        raise failure
    assert names(tmp_path) == ["run"] and "first" in names(tmp_path / "run")


def test_a_later_result_replaces_an_earlier_one(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with jsonio.atomic_dir(tmp_path / "run") as partial:
            (partial / name).touch()
    assert names(tmp_path) == ["run"] and names(tmp_path / "run") == [jsonio.MARK, "second"]


@pytest.mark.parametrize("given", ["link", "real/sub/.."])
def test_results_go_where_a_link_or_a_parent_leads(tmp_path: Path, given: str) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "real" / jsonio.MARK).touch()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        with jsonio.atomic_dir(tmp_path / given) as partial:
            (partial / "sub").mkdir()
    assert names(tmp_path) == ["link", "real"] and (tmp_path / "link").is_symlink() and names(tmp_path / "real") == [jsonio.MARK, "sub"]


def test_the_parent_of_a_new_folder_is_not_replaced_if_it_holds_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    for adds in (False, True):
        with pytest.raises(UserError, match="new/..: holds files that moscope did not write"):
            jsonio.check_replaceable(tmp_path / "new" / "..", adds)


@pytest.mark.parametrize("why", ["mount point", "parent cannot be written"])
def test_in_a_folder_that_cannot_be_renamed_results_replace_earlier_ones_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                                    why: str) -> None:
    out, access = tmp_path / "out", os.access
    out.mkdir()
    if why == "mount point":
        monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == out)
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path and access(path, mode))
    identity = out.stat().st_ino
    with jsonio.atomic_dir(out) as partial:
        (partial / "first").mkdir()
        (partial / "first" / "deep").touch()
        assert names(tmp_path) == ["out"], "nothing beside it"
    assert names(out) == [jsonio.MARK, "first"] and names(out / "first") == ["deep"]
    with pytest.raises(KeyboardInterrupt), jsonio.atomic_dir(out) as partial:
        (partial / "second").touch()
        raise KeyboardInterrupt
    assert names(out) == [jsonio.MARK, "first"]
    (out / ".out.partial-4194999").mkdir()  # of one that was killed
    with jsonio.atomic_dir(out) as partial:
        (partial / "third").touch()
    assert names(out) == [jsonio.MARK, "third"] and out.stat().st_ino == identity


def test_a_folder_of_the_users_own_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UserError, match="new or empty folder"), jsonio.atomic_dir(tmp_path):
        pass
    with pytest.raises(UserError, match="is a file"), jsonio.atomic_dir(tmp_path / "thesis.tex"):
        pass
    assert names(tmp_path) == ["thesis.tex"]


def test_a_folder_whose_path_is_not_utf8_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / os.fsdecode(b"bad\xff name")
    place.mkdir()
    monkeypatch.chdir(place)
    with pytest.raises(UserError, match="name/out: is not valid UTF-8: expected a folder for results whose path is in UTF-8"):
        jsonio.check_replaceable(Path("out"), adds=True)


def test_a_place_where_no_folder_can_be_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").touch()
    (tmp_path / "astray").symlink_to(tmp_path / "gone")
    jsonio.check_replaceable(tmp_path / "a" / "b")
    for name, says in (("notes/run", "notes: is a file"), ("astray", "astray: is a dangling link"),
                       ("astray/run", "astray: is a dangling link")):
        with pytest.raises(UserError, match=says):
            jsonio.check_replaceable(tmp_path / name)
    monkeypatch.setattr(os, "access", lambda path, *_: path != tmp_path)
    with pytest.raises(UserError, match=f"{tmp_path}/a/b: the folder {tmp_path} cannot be written"):
        jsonio.check_replaceable(tmp_path / "a" / "b")


def test_leftovers_of_killed_runs_are_removed_and_those_of_live_ones_kept(tmp_path: Path) -> None:
    dead, live = tmp_path / ".run.partial-4194999", tmp_path / f".run.partial-{os.getppid()}"
    dead.mkdir()
    live.mkdir()
    with jsonio.atomic_dir(tmp_path / "run"):
        pass
    assert not dead.exists() and live.exists()


@pytest.mark.parametrize("name, of", [("options.json", "a run"), ("workflow/config.json", "a sweep")])
def test_what_a_run_or_a_sweep_has_collected_is_not_replaced(tmp_path: Path, name: str, of: str) -> None:
    (tmp_path / "out" / name).parent.mkdir(parents=True)
    (tmp_path / "out" / name).touch()
    (tmp_path / "out" / jsonio.MARK).touch()
    with pytest.raises(UserError, match=f"holds the results of {of}"), jsonio.atomic_dir(tmp_path / "out"):
        pass
    assert (tmp_path / "out" / name).exists()
    jsonio.check_replaceable(tmp_path / "out", adds=True)
