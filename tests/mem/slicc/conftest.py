# SPDX-License-Identifier: BSD-3-Clause
"""This folder has the compiler's name, and pytest makes a module `slicc` of it before it imports what is here: the compiler's
package has to take the name back."""
import importlib
import sys

if not getattr(sys.modules.get("slicc"), "__file__", None):
    sys.modules.pop("slicc", None)
importlib.import_module("slicc.compile")
