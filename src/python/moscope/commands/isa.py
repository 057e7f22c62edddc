# SPDX-License-Identifier: BSD-3-Clause
"""`moscope isa`: the instructions of the machine's processor, and the model's support for each."""

from dataclasses import asdict
from itertools import groupby

from moscope import errors
from moscope.cli import Shared, command


@command(unused=("seed",))
def isa(shared: Shared) -> int:
    """List every instruction of the real processor, with its implementation and tests, or the reason why it is masked."""
    from moscope.config import load_machine
    from moscope.config.cpu import load_processor
    from moscope.isa.report import counts, table

    machine = load_machine(shared.machine, shared.sets)
    brand = load_processor(str(machine.cpu)).brand
    rows = table(machine)
    count = counts(rows)
    shared.result({"schema": "moscope.isa/1", "ok": count["lacking"] == 0, "machine": machine.name, "processor": brand,
                   "counts": count, "instructions": [{**asdict(r), "lacking": list(r.lacking), "untested": list(r.untested)}
                                                     for r in rows]})
    if shared.json:
        return errors.OK if count["lacking"] == 0 else errors.FOUND
    print(f"{brand}: {count['implemented']} instructions implemented, {count['lacking']} lacking, {count['masked']} masked")
    for (name, feature), members in groupby(rows, key=lambda r: (r.set, r.feature)):
        print(f"\n{name}" + (f"  (CPUID {feature})" if feature else ""))
        for r in members:
            what = r.group if r.status == "implemented" else f"{r.status}: {r.note if r.status == 'masked' else ' '.join(r.lacking)}"
            print(f"  {r.mnemonic:<14} {r.forms:>4} forms  {what}" + (f"; {r.note}" if r.status == "implemented" else ""))
    return errors.OK if count["lacking"] == 0 else errors.FOUND
