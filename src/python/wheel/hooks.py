# SPDX-License-Identifier: BSD-3-Clause
"""How `pip wheel .` and `pip install .` build moscope: Hatchling's hooks, named in pyproject.toml.

The launcher builds (`./moscope build`), so that a wheel takes what the checkout has built already.
"""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import contents


class MetadataHook(MetadataHookInterface):
    """Dependencies from requirements.txt, the version from moscope/_version.py."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        pinned = contents.named_packages((root / "requirements.txt").read_text(encoding="utf-8"))
        for name in self.config["not-at-run-time"]:
            del pinned[name]
        metadata["dependencies"] = [contents.accepted(name, version) for name, version in pinned.items()]
        found = re.search(r'VERSION = "(.*)"', (root / "src/python/moscope/_version.py").read_text(encoding="utf-8"))
        assert found is not None
        metadata["version"] = found[1]


class BuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}  # pip's, of the environment that it isolates
        environment.pop("MOSCOPE_VARIANT", None)
        if subprocess.run([sys.executable, root / "moscope", "build", *contents.TARGETS], env=environment, check=False).returncode != 0:
            raise SystemExit("moscope: the build failed: expected what `./moscope build` in the checkout needs")
        if version == "editable":  # which stays in the checkout
            return
        build_data["pure_python"] = False
        tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        build_data["tag"] = f"{tag}-{tag}-{re.sub('[-.]', '_', sysconfig.get_platform())}"
        build_data["force_include"].update({str(source): target for source, target in contents.files(root)})
