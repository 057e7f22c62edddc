# SPDX-License-Identifier: BSD-3-Clause
"""The instruction set that the processor executes, and the tests of each instruction."""
