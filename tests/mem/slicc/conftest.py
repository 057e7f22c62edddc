# SPDX-License-Identifier: BSD-3-Clause
"""This folder has the name of the compiler's package. pytest registers it as the module `slicc` before it imports the tests, so
that module is removed here and the package is imported."""
import importlib
import sys

if not getattr(sys.modules.get("slicc"), "__file__", None):
    sys.modules.pop("slicc", None)
importlib.import_module("slicc.compile")
