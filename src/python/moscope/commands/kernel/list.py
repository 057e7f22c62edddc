# SPDX-License-Identifier: BSD-3-Clause
"""`moscope kernel list`: the names that --kernel takes, the fixes behind them, and what has been built."""

from dataclasses import asdict

from moscope.cli import Shared, command


@command
def list_(shared: Shared) -> None:
    """List the kernels that can be named, the fixes that can be switched, and the builds in the cache."""
    from moscope.guest import kernel, kernel_build, kernel_config, kernel_names

    fixes, built = kernel_names.table().FIXES, kernel_build.all_kept()
    shared.result({"schema": "moscope.kernels/1", "names": [*kernel.NAMES, *kernel_names.SETTINGS],
                   "fixes": [{**asdict(fix), "files": list(fix.files)} for fix in fixes],
                   "variants": kernel_config.variants(),
                   "built": [{"key": b.key, "image": str(b.image), "source": b.document["source"],
                              "sha256": b.document["sha256"], "variant": b.document.get("variant", "")} for b in built]})
    if shared.json:
        return
    print("distro     Debian's cloud kernel, unmodified\n"
          "upstream   the project's build of Linux 6.1, every form its own\n"
          "stock      the same image: a replica of how 2.6.35 shared, in the forms below\n"
          "pk         the same image: as the MOSBENCH paper changed them\n"
          "stock+N,N  stock with these fixes;  pk-N,N  pk without them\n")
    for fix in fixes:
        print(f"fix {fix.number:>2}  {fix.name}\n        stock     {fix.stock}\n        pk        {fix.pk}\n        upstream  {fix.upstream}")
    if not fixes:
        print("no fix can be switched")
    print(f"\nvariants, for `moscope kernel build --variant`: {', '.join(kernel_config.variants())}")
    print("\nbuilt:" if built else "\nnothing is built: `moscope kernel build` does it")
    for b in built:
        print(f"  {b.image}  {b.document['source']}{f', variant {name}' if (name := b.document.get('variant')) else ''}")
