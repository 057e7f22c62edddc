# SPDX-License-Identifier: BSD-3-Clause
"""`moscope kernel list`: the names that --kernel accepts, their fixes, and the builds in the cache."""

from typing import Any

from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def list_(shared: Shared) -> None:
    """List the kernel names, the fixes, and the builds in the cache."""
    from moscope.guest import kernel, kernel_build, kernel_config, kernel_names, kernel_patches

    fixes, built = kernel_patches.fixes(), kernel_build.all_kept()
    shared.result({"schema": "moscope.kernels/1", "names": [*kernel.NAMES, *kernel_names.SETTINGS],
                   "fixes": list(map(_row, fixes)),
                   "variants": kernel_config.variants(),
                   "built": [{"key": b.key, "image": str(b.image), "source": b.document["source"],
                              "sha256": b.document["sha256"], "variant": b.document.get("variant", "")} for b in built]})
    if shared.json:
        return
    print("distro     Debian's cloud kernel, unmodified\n"
          "upstream   the project's build of Linux 6.1, which runs 6.1's own code\n"
          "stock      the same image: shared data as in Linux 2.6.35, in the forms below\n"
          "pk         the same image: shared data as in the MOSBENCH paper's PK\n"
          "stock+N,N  stock with these fixes;  pk-N,N  pk without them;  pk@NAME  another build\n")
    for fix in fixes:
        where = f", in the variant {fix.variant}" if fix.variant else ""
        print(f"fix {fix.number:>2}  {fix.title} ({', '.join(fix.applications)}){where}\n"
              f"        stock     {fix.stock}\n        pk        {fix.pk}\n"
              f"        upstream  {fix.upstream}\n        differs   {fix.differs}")
    if not fixes:
        print("no fix can be switched")
    print(f"\nvariants, for `moscope kernel build --variant`: {', '.join(kernel_config.variants())}")
    print("\nbuilt:" if built else "\nno build in the cache: `moscope kernel build` makes one")
    for b in built:
        print(f"  {b.image}  {b.document['source']}{f', variant {name}' if (name := b.document.get('variant')) else ''}")


def _row(fix: Any) -> dict[str, Any]:
    return {"number": fix.number, "name": fix.title, "applications": list(fix.applications), "stock": fix.stock, "pk": fix.pk,
            "upstream": fix.upstream, "differs": fix.differs, "patch": fix.patch, "files": list(fix.files),
            "variant": fix.variant, "workload": fix.stress.workload if fix.stress else None}
