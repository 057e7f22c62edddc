# SPDX-License-Identifier: BSD-3-Clause
"""run.json names the version of moscope that measured it."""

from collections.abc import Callable

from moscope._version import VERSION
from moscope.runs import directory
from moscope.runs.options import Plan


def test_the_configuration_of_a_run_names_the_version(plan: Callable[..., Plan]) -> None:
    assert directory.configuration(plan(1), [])["versions"]["moscope"] == VERSION
