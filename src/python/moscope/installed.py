# SPDX-License-Identifier: BSD-3-Clause
"""The command `moscope` of an installed package: prepares the start of the front end like the launcher, but builds nothing."""

import sys
from typing import NoReturn

from moscope import bootstrap, paths
from moscope._version import VERSION


def main() -> NoReturn:
    arguments = sys.argv[1:]
    if not paths.installed():  # `pip install --editable .`: changes in the checkout have to be built
        bootstrap.main(arguments)
    if arguments == ["--version"]:
        print(f"moscope {VERSION}")
        sys.exit(0)
    bootstrap.front_end(sys.executable, arguments)
