# SPDX-License-Identifier: BSD-3-Clause
"""A trace as text for people: each step of the script with its events, in the order of simulated time, then each access with the
segments of its latency. Times are counted from the beginning of the step."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from moscope.schema.constants import FS_PER_NS, LINE
from moscope.schema.enumerations import SEGMENT
from moscope.traces.document import is_home
from moscope.traces.remarks import line_names, line_of, remarks, value_text
from moscope.traces.script import OPS

Document = dict[str, Any]

# Segments of a latency: the short name, the meaning, and the colour in text and diagrams.
SEGMENTS = {name: (SEGMENT.short(name), SEGMENT.label(name), (SEGMENT[name].colours or ("#888888",))[0]) for name in SEGMENT.names}
NEVER = 2**63
MANY = 4  # more destinations than this are counted, not named


@dataclass(frozen=True)
class Line:
    """One event: when (fs), who, what, and how it is shown."""

    at: int
    rank: int
    who: str
    what: str
    style: str


NO_SUPPLIER = "own"  # the supplier of an access for which no controller sent the line


def period(document: Document) -> Fraction:
    numerator, denominator = document["clock"]["core_period_fs"]
    return Fraction(numerator, denominator)


def supplier_text(document: Document, access: dict[str, Any]) -> str:
    """The supplier of the data, in words."""
    if access["op"] == "flush":
        return "no cache: a flush moves no data to the core"
    kind = str(access["supplier"])
    if access.get("device") is not None and access["supplier_number"] is None:
        return f"node {access['home']}, the home"  # the home serves devices, and its answer does not say whose data it was
    if is_secondary(document, access):
        older = older_access(document, access)
        return f"{older['text']}, an older access of its core to the line" if older else "a prefetch of its core"
    suppliers = [c for c in document["controllers"] if c["machine"] == kind]
    near = not access["hops"] and not any(s["name"] in ("crossbar", "link") for s in access["segments"])
    if not suppliers and near:  # a hit takes no transition
        return "its own caches"
    if kind == NO_SUPPLIER:
        return "no cache: the access writes the whole line" if access["op"] == "nt" else "a controller that the protocol does not name"
    if not suppliers:
        return kind
    unsent = access["supplier_number"] is None and access["supplier_chip"] is None  # no controller sent the line for this access
    if unsent and not near and access["op"] in ("st", "rmw"):
        return "no cache: the core had the line, and waited to write it"
    if any(c["core"] is not None for c in suppliers):
        return "its own caches" if near else "another core's cache"
    if not is_home(suppliers[0]):
        return f"an {kind.removesuffix('Cache')}"
    # Segments do not decide this: even if an access waited longest for the answer to a probe, its data may come from DRAM.
    read = any(m["access"] == access["id"] and m["from"].startswith("DRAM") for m in document["messages"])
    return f"the memory of node {access['home']}" if read else f"node {access['home']}, which got the data from a cache"


def is_secondary(document: Document, access: dict[str, Any]) -> bool:
    """Whether the access only waited for a line that its core had requested already: nothing was sent for it."""
    return (all(s["name"] == "queue" for s in access["segments"])
            and all(m["access"] != access["id"] for m in document["messages"]))


def older_access(document: Document, access: dict[str, Any]) -> dict[str, Any] | None:
    """The access of the same core with which a secondary one completed; None if that was a prefetch."""
    sent = {m["access"] for m in document["messages"]}
    return next((a for a in document["accesses"] if a["id"] in sent and a["core"] == access["core"] and a["done"] == access["done"]
                 and line_of(a) == line_of(access)), None)


def hops_text(hops: int) -> str:
    return "no links crossed" if hops == 0 else f"{hops} link crossing{'s' if hops > 1 else ''}"


def steps(document: Document) -> list[list[dict[str, Any]]]:
    """The accesses, step by step."""
    grouped: dict[int, list[dict[str, Any]]] = {}
    for access in document["accesses"]:
        grouped.setdefault(access["step"], []).append(access)
    return [grouped[k] for k in sorted(grouped)]


def step_windows(document: Document) -> list[tuple[int, int]]:
    """Beginning and end of each step: what follows an access up to the next step belongs to it."""
    starts = [min((a["issued"] for a in step if a["issued"] is not None), default=NEVER) for step in steps(document)]
    return list(zip(starts, [*starts[1:], NEVER], strict=True))


def lines_of(document: Document) -> list[list[Line]]:
    """The events of each step, in the order of time."""
    found = sorted([*_accesses(document), *_messages(document), *_transitions(document)], key=lambda line: (line.at, line.rank))
    return [found[bisect_left(found, begin, key=_at):bisect_left(found, end, key=_at)] for begin, end in step_windows(document)]


def _at(line: Line) -> int:
    return line.at


def _accesses(document: Document) -> Iterator[Line]:
    for a in document["accesses"]:
        if a["issued"] is None:
            continue
        yield Line(a["issued"], 0, who(a), f"issues {operation(a, a['line'])} ({a['address']})", "bold")
        if a["done"] is None:
            continue
        yield Line(a["done"], 3, who(a),
                   f"{operation(a, a['line'])} done after {a['latency_cycles']:.1f} cycles", "bold")


def operation(access: dict[str, Any], place: str) -> str:
    """What the access does, in words, with its place as a name or an address."""
    return f"{OPS[access['op']]} of {'the line ' if access.get('size') == LINE else ''}{place}"


def who(access: dict[str, Any]) -> str:
    return f"device {access['device']}" if access.get("device") is not None else f"core {access['core']}"


def destinations_text(message: dict[str, Any]) -> str:
    names = [d["to"] for d in message["deliveries"]]
    if len(names) <= MANY:
        return ", ".join(names) or "none"
    kinds: dict[str, int] = {}
    for name in names:
        kind = name.rsplit("-", 1)[0]
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{n} x {kind}" for kind, n in kinds.items())


def is_request(message: dict[str, Any]) -> bool:
    """Whether the message is the core's request to its first-level cache, which is shown as the access itself."""
    return message["structure"] in ("RubyRequest", "SequencerMsg")


# Words for messages between a home and its DRAM, by (type, whether it comes from DRAM).
MEMORY_WORDS = {("MEMORY_READ", False): "read", ("MEMORY_READ", True): "data", ("MEMORY_WB", False): "write",
                ("MEMORY_WB", True): "written"}


def message_word(message: dict[str, Any]) -> str:
    """The type of a message. For messages to and from DRAM, words that distinguish request and answer, which have the same type."""
    return MEMORY_WORDS.get((message["type"], message["from"].startswith("DRAM")), str(message["type"]))


def _messages(document: Document) -> Iterator[Line]:
    core_cycle = period(document)
    for m in document["messages"]:
        if is_request(m):
            continue
        arrivals = [d["at"] for d in m["deliveries"]]
        took = ""
        from_memory = m["from"].startswith("DRAM")
        if arrivals and not from_memory:
            first, last = ((t - m["sent"]) / core_cycle for t in (min(arrivals), max(arrivals)))
            took = f", arrives {float(first):.1f}{f' to {float(last):.1f}' if first != last else ''} cycles later"
        kind = document["vnets"].get(str(m["vnet"]), "") if m["network"] else "memory" if "Memory" in m["structure"] else "internal"
        data = " with data" if m["data"] else ""
        # A message of memory arrives at once and takes effect in the same moment.
        yield Line(m["sent"], 0 if from_memory else 2, m["from"], f"-> {destinations_text(m)}: {message_word(m)} ({kind}{data}){took}",
                   "cyan")
        for h in m["hops"]:
            spent = float((h["arrive"] - h["depart"]) / core_cycle)
            yield Line(h["depart"], 2, f"link {h['from']}->{h['to']}", f"carries {m['type']} for {spent:.1f} cycles", "dim")


def _transitions(document: Document) -> Iterator[Line]:
    many = len({t["address"] for t in document["transitions"]}) > 1
    names = line_names(document)
    for t in document["transitions"]:
        line = names.get(int(t["address"], 16), t["address"])
        stays = "stays " if t["state"] == t["next"] else f"{t['state']} -> "
        yield Line(t["at"], 1, t["controller"], f"{f'{line}: ' if many else ''}{t['event']}: {stays}{t['next']}", "green")


def print_trace(document: Document, wrong: list[str]) -> None:
    """The whole trace on stdout, then what is wrong (`end_texts` of the whole script, of which the document may have some steps)."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    cycle = period(document)
    lines = lines_of(document)
    width = max([8, *(len(line.who) for of_step in lines for line in of_step)])
    for step, window, of_step in zip(steps(document), step_windows(document), lines, strict=True):
        console.print(Text(f"Step {step[0]['step'] + 1}: " + " | ".join(a["text"] for a in step), "bold underline"))
        console.print(Text(f"{'cycles':>9} {'ns':>9}  {'where':<{width}}  what", "dim"))
        for line in of_step:
            at = line.at - window[0]
            console.print(Text(f"{float(at / cycle):9.1f} {at / FS_PER_NS:9.2f}  {line.who:<{width}}  "),
                          Text(line.what, line.style), sep="")
        console.print()
        for access in step:
            print_segments(console, document, access)
            console.print()
    for text in wrong:
        console.print(Text(f"wrong: {text}", "bold red"))


def end_texts(document: Document) -> list[str]:
    """What is wrong, where values are checked."""
    from moscope.protocol.counterexample.write import what

    texts = [a["text"] for a in document["accesses"]]
    return [*(what(texts, v, v["text"]) for v in document.get("violations", [])),
            *([document["protocol_error"]] if "protocol_error" in document else [])]


def not_done(access: dict[str, Any]) -> str:
    return "not done" + ("" if access["issued"] is not None else ", because it had not begun")


def print_segments(console: Any, document: Document, access: dict[str, Any]) -> None:
    """An access's latency, segment by segment, with their sum."""
    from rich.text import Text

    if access["done"] is None:
        console.print(Text(f"{access['text']}: {not_done(access)}", "bold"))
        return
    remarked = access["remarks"] if "remarks" in access else remarks(document, access)
    said = "".join(f", {text}" for text in (value_text(document, access), *remarked) if text)
    console.print(Text(f"{access['text']}: {access['latency_cycles']:.1f} cycles = {access['latency_ns']:.2f} ns, "
                       f"supplied by {supplier_text(document, access)}, {hops_text(access['hops'])}{said}", "bold"))
    longest = max((s["fs"] for s in access["segments"]), default=1)
    for s in access["segments"]:
        short, meaning, colour = SEGMENTS.get(s["name"], (s["name"], "", "white"))
        bar = "#" * max(1, round(30 * s["fs"] / longest))
        console.print(Text(f"{s['cycles']:9.1f} {s['fs'] / FS_PER_NS:9.2f}  {short:<12}  {meaning:<30} "),
                      Text(bar, colour), sep="")
    total = sum(s["fs"] for s in access["segments"])
    console.print(Text(f"{access['latency_cycles']:9.1f} {total / FS_PER_NS:9.2f}  total: the latency of the access", "dim"))
