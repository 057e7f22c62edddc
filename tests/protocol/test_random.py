# SPDX-License-Identifier: BSD-3-Clause
"""The random tester on the protocols: no violation, on few and many cores, with tiny and real caches."""

import json
from typing import Any

import pytest

from moscope import buildproto, jsonio
from moscope.errors import UserError
from moscope.protocol import check as protocol_check

PROTOCOLS = sorted(buildproto.known_protocols())
FILTER_OFF = ("probe_filter.enabled=false",)


def clean(answer: dict[str, Any], ops: int) -> None:
    assert not answer["violations"], "\n".join(answer["violations"])
    assert answer["ops"] == ops
    assert answer["checked_loads"] > ops / 2


@pytest.mark.parametrize("cores", [1, 2, 6, 48])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_value_read_was_current(subject: Any, protocol: str, cores: int) -> None:
    ops = 60_000
    clean(protocol_check.random_test(subject(protocol, cores), ops), ops)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_value_read_was_current_with_real_caches(subject: Any, protocol: str) -> None:
    ops = 60_000
    clean(protocol_check.random_test(subject(protocol, 48, caches="machine"), ops), ops)


@pytest.mark.parametrize("network, jitter", [("hypertransport", None), ("ideal", "100ns")])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_networks_show_no_violation(subject: Any, protocol: str, network: str, jitter: str | None) -> None:
    ops = 40_000
    clean(protocol_check.random_test(subject(protocol, 12, network=network, jitter=jitter), ops), ops)


@pytest.mark.parametrize("cores", [6, 48])
def test_every_value_read_was_current_without_the_filter(subject: Any, cores: int) -> None:
    ops = 50_000
    clean(protocol_check.random_test(subject("MOESI_HTAssist", cores, sets=FILTER_OFF), ops), ops)


@pytest.mark.parametrize("sets", [(), FILTER_OFF], ids=["filter-on", "filter-off"])
def test_every_value_read_was_current_where_fills_wait_for_lines_that_leave_an_l3(subject: Any, sets: tuple[str, ...]) -> None:
    ops = 40_000
    answer = protocol_check.random_test(subject("MOESI_HTAssist", 12, sets=("params.L3Cache.free_tbes=33790", *sets)), ops)
    clean(answer, ops)
    assert not [name for name in answer["unreached"] if name.endswith(".Crowded")]


@pytest.mark.parametrize(("protocol", "machines"), [("MSI", ("L1Cache", "Directory")), ("MOESI_HTAssist", ("Directory",))])
def test_every_value_read_was_current_where_transactions_wait_for_a_tbe(subject: Any, protocol: str, machines: tuple[str, ...]) -> None:
    ops = 20_000
    sets = tuple(f"params.{kind}.number_of_TBEs=1" for kind in machines)
    clean(protocol_check.random_test(subject(protocol, 12, sets=sets), ops), ops)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_depends_on_its_seed_only(subject: Any, protocol: str) -> None:
    def reported(seed: int) -> dict[str, Any]:
        answer = protocol_check.random_test(subject(protocol, 12), 20_000, seed)
        return {key: value for key, value in answer.items() if key not in ("seconds", "loads_per_second")}

    assert reported(3) == reported(3)
    assert reported(3) != reported(4)


def test_every_value_read_was_current_with_the_most_accesses_in_flight(subject: Any) -> None:
    clean(protocol_check.random_test(subject("MOESI_HTAssist", 12), 20_000, in_flight=16), 20_000)


def test_the_engine_refuses_more_accesses_in_flight_than_it_can_keep(subject: Any) -> None:
    with pytest.raises(UserError, match="in_flight: 17 is out of range: expected 1 to 16"):
        protocol_check.random_test(subject("MSI", 2), 1000, in_flight=17)


def test_the_command_reports_as_the_contract_says(moscope: Any) -> None:
    got = moscope("protocol", "check", "MSI", "--cores", "4", "--ops", "5000", "--json")
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    assert document["ok"] and document["ops"] == 5000
    assert document["reached"] + len(document["unreached"]) == document["declared"]
    assert set(document["left_out"]) == {"flush", "nt_store", "uncached_load", "dma"}


@pytest.mark.parametrize("cores, shape", [(13, "13 cores in 1 chip, 1 home"), (12, "12 cores in 6 chips, 6 homes")])
def test_the_command_says_which_machine_it_tests(moscope: Any, cores: int, shape: str) -> None:
    got = moscope("protocol", "check", "MSI", "--cores", str(cores), "--ops", "100")
    assert got.returncode == 0, got.stderr
    assert got.stdout.startswith(f"MSI on opteron48, {shape}, tiny caches: ")


@pytest.mark.parametrize("arguments, right", [
    (["MIS"], "such as MSI"),
    (["MSI", "--caches", "huge"], "tiny, machine or mixed"),
    (["MSI", "--cores", "0"], "1 to 256"),
    (["MSI", "--ops", "0"], "1 or more"),
    (["MSI", "--with", "dmaa"], "such as dma"),
    (["MSI", "--without", "flsh"], "such as flush"),
    (["MSI", "--set", "protocol=MOESI_HTAssist"], "--set protocol=MOESI_HTAssist: the command tests MSI: expected no other protocol"),
    (["nowhere/X.slicc"], "no such file"),
])
def test_what_cannot_be_checked_is_refused_with_what_is_expected(moscope: Any, arguments: list[str], right: str) -> None:
    got = moscope("protocol", "check", *arguments)
    assert got.returncode == 2
    assert right in got.stderr
    assert "Traceback" not in got.stderr


@pytest.mark.long
@pytest.mark.parametrize("protocol, sets", [("MOESI_HTAssist", ()), ("MOESI_HTAssist", FILTER_OFF), ("MSI", ())],
                         ids=["filter-on", "filter-off", "MSI"])
def test_ten_million_operations_on_48_cores_show_no_violation(subject: Any, protocol: str,
                                                              sets: tuple[str, ...]) -> None:
    ops = 10_000_000
    clean(protocol_check.random_test(subject(protocol, 48, sets=sets), ops), ops)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize("sets", [(), FILTER_OFF], ids=["filter-on", "filter-off"])
@pytest.mark.parametrize("cores", [1, 2, 3, 8, 18])
def test_many_seeds_show_no_violation(subject: Any, sets: tuple[str, ...], cores: int, seed: int) -> None:
    ops = 300_000
    clean(protocol_check.random_test(subject("MOESI_HTAssist", cores, sets=sets), ops, seed), ops)


@pytest.mark.long
def test_48_cores_check_50_000_loads_per_second(subject: Any) -> None:
    answer = protocol_check.random_test(subject("MOESI_HTAssist", 48), 500_000)
    assert answer["loads_per_second"] >= 50_000
