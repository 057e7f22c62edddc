# SPDX-License-Identifier: BSD-3-Clause
"""Flame graphs of waiting on the page (Gregg, CACM 59(6), 2016): a bar for each function, as wide as its share of the waiting, below the
function that called it. Without scripts the whole is shown; with them a click on a bar makes it fill the width."""

from analysis.chains import Chain, by_functions, chains, sampled, stores_note
from analysis.chains.tree import Call, placed, tree
from analysis.described import FS_PER_US
from analysis.page.markup import NARROW_SPACE, code, esc, number, percent
from analysis.run_directory import Point
from moscope.naming.own_code import INLINED, is_program

ROW = 20  # pixels
NARROWEST = 0.002  # of the whole; narrower bars are left out
# By the class of a bar.
KINDS = {"a": "all, or a process", "u": "function of a program or a library", "k": "function of the kernel", "l": "cache line"}
SHOWN = 3  # chains in words
WORTH = 0.02  # share of all waiting from which a name has a graph of its own


def section(p: Point) -> str:
    """Of all waiting of a point."""
    found = chains(p)
    if not found:
        return ""
    count = sum(one.samples for one in found)
    waited = number(sum(one.waiting for one in found) / FS_PER_US, 1)
    note = (f"{number(count)} samples of the stacks of waiting cores, {waited}{NARROW_SPACE}µs of waiting. "
            "Each function is below the one that called it; its width is its share of the waiting. The lowest bar of a chain is the cache "
            "line. Click a bar to enlarge it; click <i>all</i> to go back. Arrow keys move among the bars.")
    return f'<section class="block"><h3>Call chains of waiting cores</h3><p class="unit">{note}</p>{graph(found, True)}</section>'


def of_name(p: Point, name: str, kind: str, wait_share: float) -> str:
    """The call chains of a name, in words and as a graph."""
    found = chains(p, name, kind) if wait_share >= WORTH and sampled(p) else []
    if not found:
        return ""
    whole = sum(one.waiting for one in found)
    said = "".join(f"<li>{esc(percent(one.waiting / whole))} {_words(one)}</li>" for one in by_functions(found)[:SHOWN])
    note = " ".join(("Call chains of waiting cores, from samples.", esc(stores_note(p, name, kind)))).strip()
    return f'<p class="unit">{note}</p><ul class="chains">{said}</ul>{graph(found)}'


def _words(one: Chain) -> str:
    """Innermost first."""
    return ' <span class="quiet">←</span> '.join(code(frame) for frame in reversed(one.frames)) or '<span class="quiet">unknown</span>'


def _kind(call: Call, above: str) -> str:
    """Of a line, or of a program's function or the kernel's. A function that was inlined has no program in its name."""
    if call.line:
        return "l"
    return above if call.function.endswith(INLINED) and above in "uk" else "u" if is_program(call.function) else "k"


def _legend(kinds: set[str]) -> str:
    keys = "".join(f'<span><i class="{kind}"></i>{esc(text)}</span>' for kind, text in KINDS.items() if kind in kinds)
    return f'<div class="legend flame-kinds">{keys}</div>'


def graph(found: list[Chain], with_lines: bool = False) -> str:
    root = tree(found, with_lines)
    bars, deepest, above, kinds = list[str](), 0, dict[int, str](), set[str]()
    for call, depth, start, width in placed(root, NARROWEST):
        deepest = max(deepest, depth)
        label = f"{call.function}: {percent(width, 1)}, {number(call.waiting / FS_PER_US, 1)}{NARROW_SPACE}µs"
        kind = above[depth] = "a" if depth < 2 else _kind(call, above[depth - 1])
        kinds.add(kind)
        bars.append(f'<button type="button" class="{kind}" data-x="{start:.5f}" data-w="{width:.5f}" title="{esc(label)}" '
                    f'tabindex="{-1 if bars else 0}" style="left:{100 * start:.3f}%;width:{100 * width:.3f}%;top:{depth * ROW}px">'
                    f'{esc(call.function)}</button>')
    return (f'{_legend(kinds)}<div class="flames" role="group" aria-label="Call chains" style="height:{(deepest + 1) * ROW}px">'
            f'{"".join(bars)}</div>')
