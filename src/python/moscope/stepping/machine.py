# SPDX-License-Identifier: BSD-3-Clause
"""The machine of a history as a page draws it: chips with their cores and controllers, and the links between chips."""

from typing import Any

from moscope.experiment import Subject


def arrays(controller: dict[str, Any]) -> list[dict[str, Any]]:
    """The set-associative arrays of a controller, the home's probe filter among them."""
    return [{"name": name, "sets": value["sets"], "ways": value["ways"]}
            for name, value in controller["params"].items() if isinstance(value, dict) and "sets" in value]


def drawn(subject: Subject) -> dict[str, Any]:
    described = subject.elaborated
    per_chip = int(described["cores_per_chip"])
    controllers = [{"name": f"{c['machine']}-{c['version']}", "machine": c["machine"], "role": c["role"], "version": c["version"],
                    "chip": c["chip"], "core": c.get("core"), "arrays": arrays(c)} for c in described["controllers"]]
    memory = {a["node"] for a in described["address_map"]}
    chips = [{"chip": chip, "cores": list(range(chip * per_chip, (chip + 1) * per_chip)), "memory": chip in memory,
              "controllers": [c["name"] for c in controllers if c["chip"] == chip]} for chip in range(int(described["chips"]))]
    links = [{"from": e.a, "to": e.b, "name": f"link {e.a}-{e.b}", "width": str(e.width or subject.machine.links.width)}
             for e in subject.machine.edges()]
    return {"name": subject.machine.name, "topology": subject.machine.topology.name, "cores": subject.machine.cores, "chips": chips,
            "links": links, "controllers": controllers}
