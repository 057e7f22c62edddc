# SPDX-License-Identifier: BSD-3-Clause
"""Build and configure the project's kernel, and list its fixes."""
