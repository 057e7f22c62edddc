# SPDX-License-Identifier: BSD-3-Clause
"""One description per fact: parameters, enumerations, records and counters, each with its name, type, unit, default,
limits, source and one sentence. The build makes C++ headers from them (`headers.py`); Python uses them as they are, and
makes numpy and Arrow types, JSON Schemas and Markdown tables from them when asked (`emit/`). Standard library only."""
