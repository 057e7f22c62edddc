# SPDX-License-Identifier: BSD-3-Clause
"""What differs between two runs, points or sweeps: sides.py finds and pairs their points, pairs.py has the numbers, condition.py
the grammar of `--fail-if`, text.py and page.py what people read. docs/comparing.md explains them."""
