# SPDX-License-Identifier: BSD-3-Clause
"""Files of Debian packages and their dependencies for the guest's root. Packages are unpacked, not installed, so their scripts do
not run. Packages whose work the guest's busybox does (the shell, basic commands, init) are left out."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from moscope.aside import write_whole
from moscope.errors import UserError
from moscope.guest import packages
from moscope.guest.packages import Say

# Packages that are not fetched as dependencies, but only if they are named.
LEFT_OUT = {"adduser", "base-files", "base-passwd", "bash", "cdebconf", "coreutils", "dash", "debconf", "debianutils", "diffutils", "dpkg",
            "findutils", "grep", "gzip", "hostname", "init-system-helpers", "install-info", "libc-bin", "login", "lsb-base", "mount",
            "passwd", "perl-base", "procps", "sed", "sysvinit-utils", "tar", "tzdata", "ucf", "util-linux"}
# Nothing in a guest reads them.
NO_FOLDERS = re.compile(r"/usr/share/(doc|man|info|locale|lintian|bash-completion|bug|menu|applications|icons|pixmaps)(/|$)")
NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+\Z")


def files(names: Sequence[str], say: Say) -> dict[str, Path]:
    """The files of these packages and of their dependencies, by their paths in the guest."""
    found: dict[str, Path] = {}
    for name in closure(names, say):
        tree = packages.fetch(name, say, "a program that needs no package").tree
        for path in sorted(tree.rglob("*")):
            where = f"/{path.relative_to(tree)}"
            if not NO_FOLDERS.match(where) and (path.is_symlink() or not path.is_dir() or not any(path.iterdir())):
                found.setdefault(where, path)
    return found


def closure(names: Iterable[str], say: Say) -> list[str]:
    """The packages and what they depend on; kept in the cache, so that the same names give the same files later."""
    asked = sorted(set(names))
    for name in asked:
        if not NAME.match(name):
            raise UserError(f"--with: {name}: expected the name of a Debian package")
    kept = packages.cache() / "chosen" / f"closure-{hashlib.sha256(' '.join(asked).encode()).hexdigest()[:16]}.json"
    with packages.locked("closure"):
        try:
            return list(json.loads(kept.read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError):
            found = _depends(asked, say)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, json.dumps(found))
    return found


def _depends(asked: list[str], say: Say) -> list[str]:
    text = packages.depends(asked, say)
    known, found, waiting = graph(text), list[str](), list(asked)
    while waiting:
        name = waiting.pop(0)
        if name in found or name not in known:
            continue
        found.append(name)
        waiting += [one for one in known[name] if one not in LEFT_OUT]
    if missing := [name for name in asked if name not in found]:
        raise UserError(f"--with: {', '.join(missing)}: apt knows no such package: expected the name of a Debian package")
    return found


def graph(text: str) -> dict[str, list[str]]:
    """The dependencies of each package, from the output `text` of `apt-cache depends --recurse`. Of alternatives it takes the
    first; for a virtual package, the first package that provides it."""
    found: dict[str, list[str]] = {}
    current, skip, virtual = "", False, False
    for line in text.splitlines():
        if line and not line[0].isspace():
            current, skip, virtual = line.strip(), False, False
            if not current.startswith("<"):
                found.setdefault(current, [])
            continue
        relation, _, name = line.strip().partition(": ")
        if not name:  # this line names a package that provides the virtual package above
            if virtual and not current.startswith("<"):
                found[current].append(relation.split(":")[0])
                virtual = False
            continue
        alternative = relation.startswith("|")
        if relation.lstrip("|") in ("Depends", "PreDepends") and not skip and not current.startswith("<"):
            virtual = name.startswith("<")
            if not virtual:
                found[current].append(name.split(":")[0])
        else:
            virtual = False
        skip = alternative
    return found
