# SPDX-License-Identifier: BSD-3-Clause
"""`moscope.check` and `moscope.verify` find what the commands find; a broken protocol is a result, a wrong argument a UserError."""

import json
import subprocess
from collections.abc import Callable

import pytest

import moscope as package
from moscope.protocol import testing

Moscope = Callable[..., subprocess.CompletedProcess[str]]
TIMES = ("seconds", "loads_per_second", "memory")


def timeless(document: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in document.items() if key not in TIMES}


def test_a_check_has_the_figures_of_the_command(moscope: Moscope) -> None:
    seen: list[package.Progress] = []
    found = package.check("MSI", "small", ops=2000, without=["uncached_load"], seed=3, progress=seen.append)
    printed = json.loads(moscope("protocol", "check", "MSI", "--machine", "small", "--ops", "2000", "--without", "uncached_load",
                              "--seed", "3", "--json").stdout)
    assert timeless(found.document) == timeless(printed)
    assert found.ok and not found.violations and found.unreached == printed["unreached"]
    assert max(p.share for p in seen) <= 1.0


def test_the_progress_of_a_check_is_that_of_both_sizes_of_caches() -> None:
    seen: list[package.Progress] = []
    assert package.check("MSI", "small", caches="mixed", ops=2000, progress=seen.append).ok
    shares = [p.share for p in seen if p.phase == "testing"]
    assert shares == sorted(shares) and shares[-1] > 0.5


def test_a_verification_has_the_figures_of_the_command(moscope: Moscope) -> None:
    found = package.verify("MSI", requests=["ld"], progress=False)
    printed = json.loads(moscope("protocol", "verify", "MSI", "--requests", "ld", "--json").stdout)
    assert timeless(found.document) == timeless(printed)
    assert found.ok and found.complete and found.states == printed["states"] and "Directory B_A x InvAck" in found.unreachable


@pytest.mark.parametrize("call, said", [
    (lambda: package.check("MSI", ops=0), "--ops: 0: expected 1 or more"),
    (lambda: package.check("MSII"), "MSII"),
    (lambda: package.check(None), "moscope.check: None: expected the name or the file of a protocol"),  # type: ignore[arg-type]
    (lambda: package.check("MSI", package.Machine("small", protocol="MOESI_HTAssist")), "the command tests MSI"),
    (lambda: package.check("MSI", counterexample="c.txt"), "c.txt: the name does not end in .toml"),
    (lambda: package.verify("MSI", requests=["lod"]), 'no kind of request called "lod"'),
    (lambda: package.verify("MSI", caches=2.5), "--caches: 2.5: expected a whole number"),  # type: ignore[arg-type]
    (lambda: package.verify("MSI", memory="much"), "--memory: "),
])
def test_a_wrong_argument_is_refused_before_anything_runs(call: Callable[[], object], said: str) -> None:
    with pytest.raises(package.UserError) as error:
        call()
    assert said in str(error.value)


def test_an_interrupted_check_raises_the_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "run", lambda *_: testing.Tested({"stopped": True}))
    with pytest.raises(KeyboardInterrupt):
        package.check("MSI")
