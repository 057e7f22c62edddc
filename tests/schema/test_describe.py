# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions that no emitter could follow are refused where they are written, and emitters do what small ones say."""

from collections.abc import Callable

import numpy
import pyarrow
import pytest

from moscope.schema.describe import BadDescription, Column, Counter, Counters, Enumeration, Field, Member, Record, Table
from moscope.schema.emit import arrow, cpp, jsonschema, markdown

COLOUR = Enumeration("Colour", "Colours", "What it looks like.", {"red": "as fire", "green": "as grass"})
ROW = Record("Row", "A row.", (
    Field("wide", "u64", "a number"),
    Field("narrow", "u8", "a colour or none", values=COLOUR, none=2),
    Field("sums", "u32", "by colour", "fs", each=COLOUR),
    Field("flags", "u8", "marks", flags={"old": "it is old", "big": "it is big"}),
))
COUNTS = Counters("Counts", "What is counted.", (
    Counter("reads", "bursts", "reads served"), Counter("lost", "clocks", "lost by colour", signed=True, each=COLOUR)))


@pytest.mark.parametrize("describe, problem", [
    (lambda: Enumeration("colour", "Colours", "x", {"red": "r"}), "expected type names"),
    (lambda: Enumeration("Colour", "Colours", "x", {}), "0 members"),
    (lambda: Enumeration("Colour", "Colours", "x", {"count": "c"}), "count: expected another name"),
    (lambda: Enumeration("Colour", "Colours", "x", {"Red": "r"}), "'Red': expected a lower-case identifier"),
    (lambda: Enumeration("Colour", "Colours", "x", {"class": "r"}), "not a word of C++ or Python"),
    (lambda: Enumeration("Colour", "Colours", "", {"red": "r"}), "expected one line"),
    (lambda: Enumeration("Colour", "Colours", "x", {"red": Member("r", colours=("red", "red"))}), "'red': expected #rrggbb"),
    (lambda: Enumeration("Colour", "Colours", "x", {"red": Member("r", colours=("#ff0000", "#ee0000")), "blue": "b"}),
     "blue: no colours"),
    (lambda: Enumeration("Colour", "Colours", "x", {"red": Member("r", group="warm"), "blue": "b"}),
     "blue: no group: expected one for all members or for none, such as warm"),
    (lambda: Table("Rows", "x", ROW, (Column("twice", "narrower", "x"),)), "of narrower: expected a field of Row"),
    (lambda: Table("Rows", "x", ROW, (Column("wide", "narrow", "x"),)), "wide: described twice"),
    (lambda: Table("Rows", "x", ROW, (), internal=("hidden",)), "internal hidden: expected fields of Row"),
    (lambda: Field("a", "u24", "x"), "type 'u24': expected one of"),
    (lambda: Field("a", "u8", "x", default=256), "default 256: expected 0 to 255"),
    (lambda: Field("a", "u8", "x", none=-1), "none -1: expected 0 to 255"),
    (lambda: Field("a", "u8", "x", flags={f"f{i}": "x" for i in range(9)}), "9 flags: expected at most 8"),
    (lambda: Field("a", "u8", "x", each=COLOUR, values=COLOUR), "expected plain numbers"),
    (lambda: Record("Row", "x", ()), "no fields"),
    (lambda: Record("Row", "x", (Field("a", "u8", "x"), Field("a", "u8", "x"))), "described twice"),
    (lambda: Counters("Counts", "x", (Counter("a", "", "x"), Counter("a", "", "x"))), "described twice"),
])
def test_bad_descriptions_are_refused(describe: Callable[[], object], problem: str) -> None:
    with pytest.raises(BadDescription) as raised:
        describe()
    assert problem in str(raised.value)


def test_a_member_has_the_wording_of_each_place_or_falls_back() -> None:
    size = Enumeration("Size", "Sizes", "How large it is.", {
        "very_small": "below one", "large": Member("above one", "LARGE", short="L", noun="large ones", rank=-1)})
    assert (size.label("very_small"), size.short("very_small"), size.noun("very_small")) == ("very small",) * 3
    assert (size.label("large"), size.short("large"), size.noun("large")) == ("LARGE", "L", "large ones")
    assert size.ranked == ("large", "very_small") and size.names == ("very_small", "large")


def test_a_table_has_the_fields_of_its_record_and_what_is_computed_from_them() -> None:
    rows = Table("Rows", "x", ROW, (Column("twice", "wide", "twice it"), Column("mark", "flags", "one word", replaces=True)),
                 internal=("sums",))
    assert [c.name for c in rows.columns] == ["wide", "twice", "narrow", "mark"]
    data = numpy.zeros(2, arrow.dtype(ROW))
    data["wide"], data["narrow"] = (3, 4), (1, 2)
    made = arrow.file_table(rows, data, {"twice": lambda: pyarrow.array(2 * data["wide"]), "mark": lambda: pyarrow.array(["a", "b"])})
    assert made.to_pylist() == [{"wide": 3, "twice": 6, "narrow": "green", "mark": "a"},
                                {"wide": 4, "twice": 8, "narrow": None, "mark": "b"}]
    assert made.schema.field("twice").metadata[b"about"] == b"twice it"
    assert "| `twice` |  | twice it |" in markdown.columns(rows)


def test_fields_lie_at_multiples_of_their_size() -> None:
    assert ROW.offsets == {"wide": 0, "narrow": 8, "sums": 12, "flags": 20}
    assert ROW.size == 24
    assert arrow.dtype(ROW).itemsize == 24


def test_the_layout_changes_with_the_names_of_an_enumeration() -> None:
    other = Enumeration("Colour", "Colours", "x", {"red": "as fire", "blue": "as the sea"})
    one, changed = (Record("Row", "A row.", (Field("c", "u8", "x", values=values),)) for values in (COLOUR, other))
    assert one.layout != changed.layout


def test_a_record_in_cpp_has_its_padding_flags_and_checks() -> None:
    text = "\n".join(cpp.record(ROW))
    assert "std::array<std::uint8_t, 3> padding_9{};" in text and "padding_21{}" in text
    assert "std::array<std::uint32_t, kColours> sums{};" in text
    assert "kOld = 1;" in text and "kBig = 2;" in text and "kNoNarrow = 2;" in text
    assert "static_assert(sizeof(Row) == 24);" in text and "static_assert(offsetof(Row, sums) == 12);" in text


def test_rows_become_columns_with_words_and_nulls() -> None:
    data = numpy.zeros(2, arrow.dtype(ROW))
    data["narrow"] = 1, 2
    data["sums"] = (7, 8), (9, 10)
    data["flags"] = 0, 2
    table = arrow.table(ROW, data)
    assert table.column_names == ["wide", "narrow", "sums_red", "sums_green", "old", "big"]
    assert table["narrow"].to_pylist() == ["green", None]
    assert table["sums_green"].to_pylist() == [8, 10] and table["big"].to_pylist() == [False, True]
    assert table.schema.field("sums_red").metadata[b"unit"] == b"fs"


def test_counters_in_cpp_can_be_visited_and_subtracted() -> None:
    text = "\n".join(cpp.counters(COUNTS))
    assert "std::uint64_t reads = 0; ///< reads served (bursts)" in text
    assert 'f("lost", kColourNames, all.lost...);' in text
    assert "reads -= other.reads;" in text and "lost[i] += other.lost[i];" in text


def test_a_maximum_is_kept_by_a_difference_and_the_larger_one_by_a_sum() -> None:
    text = "\n".join(cpp.counters(Counters("Counts", "What is counted.", (Counter("peak", "bytes", "most bytes", maximum=True),))))
    assert "if (peak < other.peak)\n            peak = other.peak;" in text and "peak -=" not in text and "peak +=" not in text
    with pytest.raises(BadDescription, match="a maximum for each of Colour: expected a single maximum"):
        Counter("peak", "bytes", "most bytes", maximum=True, each=COLOUR)


def test_json_schema_and_markdown_say_the_same() -> None:
    schema = jsonschema.counters(COUNTS)
    assert schema["required"] == ["reads", "lost"] and schema["properties"]["lost"]["propertyNames"] == {"enum": ["red", "green"]}
    assert jsonschema.record(ROW)["properties"]["narrow"]["enum"] == ["red", "green", None]
    assert "| `lost` | clocks | lost by colour: `red`, `green` |" in markdown.counters(COUNTS)
    page = "a\n<!-- schema: counts -->\nold\n<!-- end -->\nb\n"
    assert markdown.replace_marked(page, lambda name: f"T {name}") == "a\n<!-- schema: counts -->\n\nT counts\n<!-- end -->\nb\n"
