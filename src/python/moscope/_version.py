# SPDX-License-Identifier: BSD-3-Clause
"""The one version number. `moscope --version`, run.json, the documentation site, CITATION.cff and CHANGELOG.md agree with it."""

VERSION = "0.2.0"
