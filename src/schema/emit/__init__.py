# SPDX-License-Identifier: BSD-3-Clause
"""From descriptions to other languages; each module knows one of them and no description by name."""
