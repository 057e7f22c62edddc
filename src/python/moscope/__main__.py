# SPDX-License-Identifier: BSD-3-Clause
"""`python -m moscope`: what the launcher runs once everything is in place."""

import sys

from moscope.cli import main

sys.exit(main(sys.argv[1:]))
