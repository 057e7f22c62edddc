# SPDX-License-Identifier: BSD-3-Clause
"""The files that the rules apply to, also new ones before `git add`."""

import subprocess
from pathlib import Path


def files(root: Path, *patterns: str) -> list[str]:
    """Tracked files and those that would be added; without git, all outside the build folder."""
    got = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns], cwd=root,
                         capture_output=True, text=True, check=False)
    if got.returncode == 0:
        return sorted(f for f in set(got.stdout.split("\0")) if f and (root / f).is_file())
    skip = {"build", "__pycache__", ".git"}
    return sorted(str(p.relative_to(root)) for p in root.rglob("*")
                  if p.is_file() and not skip & set(p.relative_to(root).parts))
