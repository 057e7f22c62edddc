# SPDX-License-Identifier: BSD-3-Clause
"""Names that the generated C++ of a controller uses for what is the runtime's or its own. A protocol may use them, too: functions,
actions, parameters and variables of functions then have another name in C++ (`own`, ..). A member of a machine keeps its name in C++,
so it must not have one of these (check_names.py)."""
from __future__ import annotations

from .ast import Function

MEMBERS = frozenset("""
    append_field assertion_failed at before_change begin_wake buffers cannot_peek cause complete_message copy_fields copy_partial
    count_bytes dequeue divide doTransition due end_wake entered_in existing first_bit_set first_head first_of for_each_entry
    forget_line found_entry functional_read get_mask head head_for head_ready here if_pure in index_of info init is_element kept_by
    located look_again_next_cycle lookup_or_make mask_bits name new_message next_address next_due next_head no_cause no_transition
    not_in number_of_set permission place_number poll present probe_hit protocol_assert protocol_error pure_hit reads ready_head
    recycle_head remainder_of remove_from rest_until select_bits send send_inside send_only_to set_block_size set_cache set_directory
    set_dma_sequencer set_mask set_place set_sequencer set_value set_what settled shift_left shift_right stall_head state_of take
    taken_by_one tbes_in_use test_byte traced victim_of view wake_entry
""".split())
"""Members and functions that controllers, or functions outside of machines, call."""
_LOCALS = frozenset({"state", "next", "event"})
"""Variables of generated functions that call a protocol's functions and actions."""
_CALLED = frozenset({"getState", "setState", "getAccessPermission", "setAccessPermission", "getNextState", "functionalRead"})
"""Functions that the engine calls under these names (check_hooks.py)."""


def own(name: str) -> str:
    """The C++ name of a parameter or a variable of a function."""
    return f"{name}_own" if _is_taken(name) else name


def own_action(name: str) -> str:
    """The C++ name of an action."""
    return f"{name}_action" if _is_taken(name) or name in _LOCALS else name


def own_function(function: Function) -> str:
    """The C++ name of a function. In C++, a function of a controller would hide all others of its name."""
    if function.body is None or function.owner is not None or function.name in _CALLED:
        return function.name
    taken = function.hides_others or _is_taken(function.name) or function.name in _LOCALS
    return f"{function.name}_function" if taken else function.name


def _is_taken(name: str) -> bool:
    return name in MEMBERS or name.startswith("on_")
