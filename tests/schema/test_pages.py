# SPDX-License-Identifier: BSD-3-Clause
"""Reference pages and JSON Schemas say what the descriptions say."""

from pathlib import Path

import jsonschema
import pytest

from moscope.schema import catalogue, pages
from moscope.schema.describe import BadDescription, Table
from moscope.schema.parameters import Group


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_a_page_has_the_tables_of_its_descriptions(page: Path) -> None:
    assert page.read_text() == pages.rewritten(page), "`PYTHONPATH=src/python python3 -m moscope.schema.pages` rewrites the tables"


def test_pages_that_must_have_tables_have_them() -> None:
    assert {"machines.md", "statistics.md"} <= {page.name for page in pages.pages()}


@pytest.mark.parametrize("name", sorted(catalogue.ALL))
def test_each_description_has_a_table_and_each_but_parameters_a_schema(name: str) -> None:
    assert catalogue.table(name).startswith("| ")
    if not isinstance(catalogue.find(name), Group | Table):
        jsonschema.Draft202012Validator.check_schema(catalogue.schema(name))


def test_a_name_that_is_not_described_is_refused() -> None:
    with pytest.raises(BadDescription, match="Nothing: is not described: expected one of"):
        catalogue.expand({"properties": {"x": [{"described": "Nothing"}]}})


def test_a_schema_takes_its_parts_from_the_descriptions() -> None:
    got = catalogue.expand({"properties": {"segments": {"described": "by Segment", "description": "where it went"}}})
    segments = got["properties"]["segments"]
    assert segments["description"] == "where it went" and "home_queue" in segments["required"]
