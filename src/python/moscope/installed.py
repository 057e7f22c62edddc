# SPDX-License-Identifier: BSD-3-Clause
"""The command `moscope` of an installed package: what the launcher does before it starts the front end, less the building."""

import sys
from typing import NoReturn

from moscope import bootstrap, paths
from moscope._version import VERSION


def main() -> NoReturn:
    arguments = sys.argv[1:]
    if not paths.installed():  # `pip install --editable .`: what changed in the checkout is built
        bootstrap.main(arguments)
    if arguments == ["--version"]:
        print(f"moscope {VERSION}")
        sys.exit(0)
    bootstrap.front_end(sys.executable, arguments)
