# SPDX-License-Identifier: BSD-3-Clause
"""moscope's Python front end. The native module `moscope._engine` lives in the build folder of the variant in use."""

from moscope.paths import native_package

__path__.append(str(native_package()))
