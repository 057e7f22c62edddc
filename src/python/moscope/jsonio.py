# SPDX-License-Identifier: BSD-3-Clause
"""JSON as the contracts define it, and result folders that are complete or absent.

Each document names its schema (`"schema": "moscope.latency/1"`). The schemas are in `moscope/schemas/`, one file
per name, and tests validate real output against them.
"""

import functools
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moscope import paths
from moscope.errors import UserError
from moscope.failures import expected

SCHEMAS = Path(__file__).parent / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Marks a folder of results, which a later run may replace. Folders without it hold the user's own files.
MARK = ".moscope-output"
# Files that identify folders to which several starts of a command add results.
COLLECTED = {"options.json": "a run", "workflow/config.json": "a sweep"}
# The most characters of a 64-bit integer, its sign included.
MOST_DIGITS = len(str(1 << 64))


def dumps(document: Any) -> str:
    """One line; a number that JSON cannot represent (NaN, infinity) raises an error here, not at the reader."""
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """Parses JSON. Raises a ValueError for a text that is not valid JSON, for NaN and infinity (1e999), which Python's parser accepts,
    and for an integer that is longer than any 64-bit integer, because a division of a large integer can overflow."""
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_of_64_bits)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text:.20} is not a JSON number")


def _of_64_bits(text: str) -> int:
    if len(text) <= MOST_DIGITS:
        return int(text)
    raise ValueError(f"{text:.20}... is too large: expected a number of 64 bits")


def schema_file(name: str) -> Path:
    """The file of a schema: `moscope.latency/1` is in `moscope.latency.1.json`. Three kinds have folders: documents that are only
    files of a run directory, documents that analysis makes from one, and those of `bench`."""
    file = name.replace("/", ".") + ".json"
    return next((found for folder in ("", "files", "analysis", "bench") if (found := SCHEMAS / folder / file).is_file()), SCHEMAS / file)


def schema(path: Path) -> dict[str, Any]:
    """The schema in a file; parts that src/schema describes are written there as {"described": NAME}. A file may omit what
    follows from its name, and `required` if all properties are required."""
    from moscope.schema import catalogue

    given = json.loads(path.read_text(encoding="utf-8"))
    name = "/".join(path.stem.rsplit(".", 1))
    properties = {"schema": {"const": name}, **given["properties"]}
    whole = {"$schema": DIALECT, "title": name, "type": "object", "required": list(properties), **given, "properties": properties}
    expanded: dict[str, Any] = catalogue.expand(whole)
    return expanded


def validate(document: dict[str, Any]) -> None:
    """Validates a document against the schema that it names; raises ValueError with the place and the rule."""
    name = document.get("schema")
    if not isinstance(name, str) or not schema_file(name).is_file():
        raise ValueError(f"no such schema: {name!r}")
    faults = [f"{error.json_path}: {error.message}" for error in _validator(name, schema).iter_errors(document)]
    if faults:
        raise ValueError(f"{name}: " + "; ".join(faults))


@functools.cache
def _validator(name: str, read: Callable[[Path], Any]) -> Any:
    """A validator for the schema of this name. `read` loads that schema and the schemas that it references."""
    import jsonschema  # slow to import
    import referencing
    from referencing.jsonschema import DRAFT202012

    others: Any = referencing.Registry(retrieve=lambda uri: DRAFT202012.create_resource(read(SCHEMAS / uri)))  # type: ignore[call-arg]
    return jsonschema.Draft202012Validator(read(schema_file(name)), registry=others)


_TYPES = {"object": "an object", "array": "a list", "string": "a string", "number": "a number", "integer": "a number",
          "boolean": "true or false"}


_OF_TYPES = {"$schema", "$ref", "$defs", "type", "const", "properties", "items", "allOf"}


def mistyped(document: dict[str, Any], name: str) -> str:
    """The first value whose type differs from the schema, and the expected type: `windows[0].ops: expected a number`. Empty if all
    types match. Missing and additional keys are allowed, because other versions write other keys."""
    for error in _validator(name, _types_of).iter_errors(document):
        place = error.json_path.removeprefix("$").removeprefix(".")
        if error.validator == "type":
            kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
            return f"{place}: expected {' or '.join(_TYPES.get(kind, kind) for kind in kinds)}"
        return f"{place}: expected {error.validator_value}"
    return ""


def _types_of(path: Path) -> Any:
    """The schema in a file, reduced to its types."""
    return _types_in(schema(path))


def _types_in(rules: Any) -> Any:
    """Removes the rules that documents of other versions may break; types remain."""
    if isinstance(rules, list):
        return [_types_in(one) for one in rules]
    if not isinstance(rules, dict):
        return "number" if rules == "integer" else rules
    return {key: {name: _types_in(one) for name, one in value.items()} if key in ("properties", "$defs") else _types_in(value)
            for key, value in rules.items() if key in _OF_TYPES or key == "additionalProperties" and isinstance(value, dict)}


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """A folder to write results into, which takes the name `path` only when the block ends well.

    An earlier result at `path` is replaced; a folder that holds anything else is a user error. Leftovers of runs
    that were killed are removed on the way. Where `path` is a folder that cannot be renamed (a mount point, or one in a folder
    that cannot be written) what it holds is replaced, entry by entry, at the end. A link stays: the folder that it leads to is replaced.
    """
    check_replaceable(path)
    path = path.resolve()
    stays = _stays(path)
    beside = path if stays else path.parent
    partial = beside / f".{path.name}.partial-{os.getpid()}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if stays:
            (path / MARK).touch()
        _remove_leftovers(beside, path.name)
        partial.mkdir()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: expected {expected(error, 'a writable folder')}") from error
    try:
        (partial / MARK).touch()
        yield partial
        _flush(partial)
        if stays:
            _replace_entries(path, partial)
            return
        old = path.with_name(f".{path.name}.old-{os.getpid()}")
        if path.exists():
            path.rename(old)
        partial.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Writes the files to the disk, so that a folder that exists after a loss of power is complete."""
    for file in folder.rglob("*"):
        if file.is_file() and not file.is_symlink():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def check_replaceable(path: Path, adds: bool = False) -> None:
    """Raises unless results may be put at `path`; worth calling before a long run. `adds`: the results are added to those of the
    run or sweep there. Other commands must not replace these, because their points may have taken hours."""
    if not paths.is_utf8(str(path.absolute())):
        raise UserError(f"{path.absolute()}: is not valid UTF-8: expected a folder for results whose path is in UTF-8")
    place = next(folder for folder in (path.absolute(), *path.absolute().parents) if os.path.lexists(folder))
    if not place.is_dir():
        raise UserError(f"{path if path.exists() else place}: is {'a file' if place.exists() else 'a dangling link'}: expected a folder")
    there = path.resolve()  # which may exist where `path` does not yet: `new/..`
    if (not there.exists() or _stays(there)) and not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{path}: the folder {place} cannot be written: expected a writable folder")
    if there.exists() and any(there.iterdir()) and not (there / MARK).exists():
        raise UserError(f"{path}: holds files that moscope did not write: expected a new or empty folder")
    if not adds and (of := next((of for name, of in COLLECTED.items() if (there / name).exists()), None)):
        raise UserError(f"{path}: holds the results of {of}: expected another --out, or a folder without these results")


def _stays(path: Path) -> bool:
    """Whether `path`, which is resolved, is a folder that cannot be renamed, so that another folder cannot take its place."""
    return path.is_dir() and (os.path.ismount(path) or not os.access(path.parent, os.W_OK | os.X_OK))


def _replace_entries(path: Path, partial: Path) -> None:
    """Replaces the entries of `path` by those of `partial`, a folder in `path`."""
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            if entry != partial:
                shutil.rmtree(entry)
        elif entry.name != MARK:
            entry.unlink()
    for entry in partial.iterdir():
        entry.replace(path / entry.name)


def _remove_leftovers(folder: Path, name: str) -> None:
    for sibling in folder.iterdir():
        if is_leftover(sibling, re.escape(name)):
            shutil.rmtree(sibling, ignore_errors=True)


def is_leftover(folder: Path, names: str = ".+") -> bool:
    """Whether a process that has ended left this folder under a temporary name. `names`: the pattern of its name as a result."""
    match = re.fullmatch(rf"\.{names}\.(?:partial|old)-(\d+)", folder.name)
    return match is not None and not Path("/proc", match[1]).exists()
