# SPDX-License-Identifier: BSD-3-Clause
"""What the package ast guarantees to the emitters holds for the tiny protocols that compile and for the project's own."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slicc import ast
from slicc.compile import compile_protocol

HERE = Path(__file__).parent
OWN = HERE.parents[2] / "src" / "mem" / "ruby" / "protocol"
FILES = sorted((HERE / "protocols").glob("ok_*.slicc")) + sorted(OWN.glob("*.slicc"))


def compiled(path: Path) -> ast.Program:
    program, diagnostics = compile_protocol(str(path))
    assert program is not None, diagnostics.report()
    return program


def tiny(name: str) -> ast.Program:
    return compiled(HERE / "protocols" / f"{name}.slicc")


def bodies(program: ast.Program) -> Iterator[list[ast.Stmt]]:
    types = program.types + [declared for machine in program.machines for declared in machine.types]
    functions = program.functions + [function for machine in program.machines for function in machine.functions]
    functions += [method for declared in types for overloads in declared.methods.values() for method in overloads]
    yield from (function.body for function in functions if function.body is not None)
    for machine in program.machines:
        yield from (port.body for port in machine.in_ports)
        yield from (action.body for action in machine.actions)


def action(program: ast.Program, name: str) -> ast.Action:
    return next(action for action in program.machines[0].actions if action.name == name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_expression_has_a_type_and_every_name_its_declaration(path: Path) -> None:
    program = compiled(path)
    seen = 0
    for body in bodies(program):
        for expr in ast.walk_exprs(body):
            seen += 1
            assert isinstance(expr.type, ast.Type) and expr.type.kind != "unknown", expr
            match expr:
                case ast.Name():
                    assert expr.kind in ast.NAME_KINDS and expr.decl is not None
                case ast.Member():
                    assert expr.field is not None
                case ast.Call():
                    assert expr.function is not None
                case ast.MethodCall() | ast.ClassCall():
                    assert expr.method is not None
                case ast.EnumRef():
                    assert expr.value is expr.type.values[expr.value_name]
    assert seen > 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_special_calls_become_nodes_of_their_own(path: Path) -> None:
    special = {"trigger", "error", "assert", "DPRINTF", "DPRINTFN", "APPEND_TRANSITION_COMMENT", "set_tbe", "unset_tbe", "set_cache_entry",
               "unset_cache_entry", "stallPort"}
    for body in bodies(compiled(path)):
        assert not [expr for expr in ast.walk_exprs(body) if isinstance(expr, ast.Call) and expr.name in special]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_pair_has_one_transition_in_order_of_declaration(path: Path) -> None:
    for machine in compiled(path).machines:
        assert len(machine.table) == len(machine.transitions)
        assert [t.key for t in machine.transitions] == list(machine.table)


def test_entries_and_tbes_are_handles_and_parameters_are_not() -> None:
    program = tiny("ok_statements")
    kinds: dict[str, set[bool]] = {}
    for body in bodies(program):
        for expr in ast.walk_exprs(body):
            if isinstance(expr, ast.Name):
                kinds.setdefault(expr.kind, set()).add(expr.is_pointer)
    assert kinds["cache_entry"] == kinds["tbe"] == {True}
    assert kinds["param"] == kinds["object"] == kinds["in_msg"] == kinds["out_msg"] == {False}


def test_a_subscript_is_a_call_of_lookup() -> None:
    program = tiny("ok_plain")
    calls = [expr for body in bodies(program) for expr in ast.walk_exprs(body) if isinstance(expr, ast.MethodCall) and expr.subscript]
    assert calls and all(call.name == "lookup" and call.method.owner is not None and call.is_pointer for call in calls)


def test_else_if_chains_are_branches_of_one_if() -> None:
    ifs = [s for s in action(tiny("ok_statements"), "everything").body if isinstance(s, ast.If)]
    assert [(len(statement.branches), statement.otherwise is not None) for statement in ifs] == [(2, True), (1, False)]


def test_operators_bind_as_in_c() -> None:
    program = tiny("ok_operators")
    function = program.machines[0].function("counted")[0]
    total = function.body[0].init  # type: ignore[index,union-attr]  # a + b * 3 - a / 2 + a % 5

    def shape(expr: ast.Expr) -> str:
        match expr:
            case ast.Binary():
                return f"({shape(expr.left)}{expr.op}{shape(expr.right)})"
            case ast.Name():
                return expr.name
            case ast.Literal():
                return str(expr.value)
        return "?"

    assert shape(total) == "(((a+(b*3))-(a/2))+(a%5))"


def test_resources_are_the_enqueues_and_allocations_of_all_actions() -> None:
    program = tiny("ok_statements")
    machine = program.machines[0]
    needs = {place.name: count for place, count in machine.table["M", "Data"].resources.items()}
    assert needs == {"TBEs": 1, "request_out": 1}


def test_a_star_is_a_transition_without_next_state() -> None:
    assert tiny("ok_wildcard_next_state").machines[0].table["M", "Data"].next_state is None


def test_an_action_named_z_stall_makes_a_stall() -> None:
    table = tiny("ok_plain").machines[0].table
    assert table["IM", "Load"].is_stall and not table["M", "Load"].is_stall


def test_request_types_are_kept_with_the_transition() -> None:
    transition = tiny("ok_request_types").machines[0].table["M", "Data"]
    assert [request.name for request in transition.request_types] == ["TagArrayRead", "DataArrayRead"]


def test_overloads_are_chosen_by_exact_type_before_interface() -> None:
    machine = tiny("ok_overloads").machines[0]
    calls = [expr for expr in ast.walk_exprs(machine.function("sizes")[0].body or []) if isinstance(expr, ast.Call)]
    assert sorted(call.function.formals[0].type.name for call in calls) == ["AbstractCacheEntry", "Addr", "Msg"]


def test_defaults_of_fields_and_parameters_are_constants() -> None:
    program = tiny("ok_plain")
    machine = program.machines[0]
    entry = machine.entry_type
    assert entry is not None
    state, dirty = entry.fields["CacheState"].default_value, entry.fields["Dirty"].default_value
    assert isinstance(state, ast.EnumRef) and state.value.name == "I"
    assert isinstance(dirty, ast.Literal) and dirty.value is False
    defaults = {param.name: param.default.value for param in machine.params if isinstance(param.default, ast.Literal)}
    assert defaults == {"latency": 2, "eager": False}


def test_each_machine_has_its_own_types() -> None:
    first, second = tiny("ok_two_machines").machines
    assert first.state_type is not second.state_type
    assert second.entry_type is None and second.tbe_type is None
    assert second.state_type is not None and second.state_type.c_name == "Directory_State"


def test_a_template_names_its_element() -> None:
    machine = tiny("ok_plain").machines[0]
    table = next(decl for decl in machine.objects if decl.name == "TBEs")
    assert table.element is machine.tbe_type and table.constructor == "m_number_of_TBEs"
