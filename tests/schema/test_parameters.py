# SPDX-License-Identifier: BSD-3-Clause
"""A described parameter is everything at once: option, limit, the engine's value, C++ and a row of the reference page."""


import pytest

from moscope.schema.describe import BadDescription
from moscope.schema.emit import cpp, markdown
from moscope.schema.errors import ConfigError
from moscope.schema.parameters import Described, Group, check_limits, engine_json, param
from moscope.schema.units import Count, Flag, Name, Size, Time


class Oven(Described):
    """An oven."""

    racks: Count = param("racks in it", default=Count(2, "seen"), least=1, most=4)
    warm_up: Time = param("until it is hot", default=Time("5ns", "assumed"), least="1ns", most="1us")
    tray: Size = param("a tray", default=Size("64B", "assumed"))
    fan: Flag = param("whether air moves", default=Flag(True, "seen"))
    mode: Name = param("what it does", default=Name("bake", "seen"), choices=lambda: ("bake", "grill"))


GROUP = Group("OvenParams", Oven, "moscope")


def test_texts_become_quantities_and_the_engines_values() -> None:
    oven = Oven(warm_up="7ns")  # type: ignore[arg-type]
    check_limits(oven)
    assert engine_json(oven) == {"racks": 2, "warm_up_fs": 7_000_000, "tray_bytes": 64, "fan": True, "mode": "bake"}


def test_a_field_without_a_default_below_one_with_a_default_is_refused_with_file_and_group() -> None:
    with pytest.raises(BadDescription) as raised:
        class Grill(Described):
            """A grill."""

            bars: Count = param("bars", default=Count(2, "seen"))
            length: Size = param("of a bar")

    assert str(raised.value).startswith(f"{__file__}: Grill: non-default argument 'length' follows")
    assert str(raised.value).endswith(": expected fields without a default above the others")


@pytest.mark.parametrize("values, says", [
    ({"racks": 0}, "ovens.racks: 0: expected 1 to 4"),
    ({"racks": 5}, "ovens.racks: 5: expected 1 to 4"),
    ({"warm_up": "1ps"}, "ovens.warm_up: 1ps: expected 1ns to 1us"),
    ({"warm_up": "2us"}, "ovens.warm_up: 2us: expected 1ns to 1us"),
    ({"mode": "fry"}, "ovens.mode: 'fry': expected one of bake, grill"),
])
def test_a_value_beyond_its_limits_is_refused_by_name(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_limits(Oven(**values), "ovens.")
    assert says in str(raised.value)


def test_the_struct_has_the_defaults_the_limits_and_a_visitor() -> None:
    text = "\n".join(cpp.group(GROUP))
    assert "unsigned racks{2}; ///< racks in it" in text and "Tick warm_up_fs{5000000};" in text
    assert 'bool fan{true};' in text and 'std::string mode{"bake"};' in text
    assert 'f("racks", all.racks..., unsigned{1}, unsigned{4});' in text and 'f("fan", all.fan...);' in text
    assert "static constexpr Tick warm_up_fs = 1000000000;" in text


def test_the_reference_page_has_a_row_for_each() -> None:
    assert "| `warm_up` | until it is hot | 5ns | 1ns to 1us | assumed |" in markdown.parameters(GROUP)
