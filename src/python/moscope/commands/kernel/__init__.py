# SPDX-License-Identifier: BSD-3-Clause
"""The project's kernel: its fixes, building it, and its configuration."""
