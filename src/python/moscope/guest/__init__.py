# SPDX-License-Identifier: BSD-3-Clause
"""What runs inside the simulated machine: kernels, their modules, the initial file system and root images.

Everything here is made from the distribution's own packages, which its own client fetches by name, and is kept in
the user's cache under names that hold the content's digest.
"""
