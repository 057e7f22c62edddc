# SPDX-License-Identifier: BSD-3-Clause
"""`python3 src/mem/slicc`: puts the folder above on the path in place of this one, whose `ast` is not the standard library's."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(HERE)] + [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]

from slicc.cli import main  # noqa: E402

sys.exit(main())
