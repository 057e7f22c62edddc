# SPDX-License-Identifier: BSD-3-Clause
"""What runs inside the simulated machine: kernels, their modules, the initial file system and root images.

Everything here is made from packages of the distribution, which its own client fetches by name. Results are kept
in the user's cache under names that contain a digest of the content.
"""
