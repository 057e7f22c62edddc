# SPDX-License-Identifier: BSD-3-Clause
"""From grammar rules to nodes of the tree: one method per rule of grammar.lark, called as the parser reduces."""
from __future__ import annotations

from typing import Any, Callable, Optional

from lark import Token, Transformer

from . import ast
from .ast import Loc

MAX_EXPRESSION_DEPTH = 200


class TooDeep(Exception):
    """An expression nests deeper than MAX_EXPRESSION_DEPTH."""

    def __init__(self, loc: Loc) -> None:
        super().__init__(loc)
        self.loc = loc


class Builder(Transformer):
    """Builds nodes; `file` is set by the parser before each file. Children are tokens, nodes, or lists of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.file = ""

    def _at(self, child: Any) -> Loc:
        if isinstance(child, Token):
            return Loc(self.file, child.line or 0, child.column or 0)
        return child.loc

    def _deep(self, expr: ast.Expr, *children: ast.Expr) -> ast.Expr:
        expr.depth = 1 + max((child.depth for child in children), default=0)
        if expr.depth > MAX_EXPRESSION_DEPTH:
            raise TooDeep(expr.loc)
        return expr

    # ---- files and declarations

    def start(self, c: list) -> list[ast.Node]:
        return c[0]

    def decls(self, c: list) -> list[ast.Node]:
        return c

    obj_decls = members = decls

    def protocol_decl(self, c: list) -> ast.Node:
        return ast.ProtocolDecl(loc=self._at(c[0]), name=_unquote(c[1]))

    def include_decl(self, c: list) -> ast.Node:
        return ast.Include(loc=self._at(c[1]), path=_unquote(c[1]))

    def machine_decl(self, c: list) -> ast.Node:
        _, kind, name, pairs, params, decls = c
        machine = ast.Machine(loc=self._at(name), name=str(name), pairs=pairs, params=[], decls=decls)
        machine.pairs["enumeration_of_name"] = str(kind)
        for decl in params:
            machine.params.append(ast.Param(loc=decl.loc, name=decl.name, type_ref=decl.type_ref, pointer=decl.pointer,
                                            pairs=decl.pairs, default=decl.init, machine=machine))
        return machine

    def action_decl(self, c: list) -> ast.Node:
        return ast.Action(loc=self._at(c[1]), name=str(c[1]), pairs=c[2], body=c[3])

    def in_port_decl(self, c: list) -> ast.Node:
        return ast.InPort(loc=self._at(c[1]), name=str(c[1]), message_ref=c[2], buffer=c[3], pairs=c[4], body=c[5])

    def out_port_decl(self, c: list) -> ast.Node:
        return ast.OutPort(loc=self._at(c[1]), name=str(c[1]), message_ref=c[2], buffer=c[3], pairs=c[4])

    def _transition(self, c: list, next_state: Optional[ast.Word], requests: list, actions: list) -> ast.Node:
        return ast.TransitionDecl(loc=self._at(c[0]), states=c[1], events=c[2], next_state=next_state,
                                  request_types=requests, actions=actions)

    def transition_stay(self, c: list) -> ast.Node:
        return self._transition(c, None, [], c[3])

    def transition_stay_requests(self, c: list) -> ast.Node:
        return self._transition(c, None, c[3], c[4])

    def transition_next(self, c: list) -> ast.Node:
        return self._transition(c, c[3], [], c[4])

    def transition_next_requests(self, c: list) -> ast.Node:
        return self._transition(c, c[3], c[4], c[5])

    def _word(self, token: Token) -> ast.Word:
        return ast.Word(loc=self._at(token), name=str(token))

    def next_state(self, c: list) -> ast.Word:
        return self._word(c[0])

    def word_list(self, c: list) -> list[ast.Word]:
        return [self._word(token) for token in c]

    one_word = word_list

    def _type(self, ref: ast.TypeRef, kind: str, pairs: ast.Pairs, members: list) -> ast.Type:
        return ast.Type(loc=ref.loc, name=ref.name, kind=kind, pairs=pairs, members=members)

    def extern_decl(self, c: list) -> ast.Node:
        c[2]["external"] = "yes"
        return self._type(c[1], "external", c[2], [])

    def struct_decl(self, c: list) -> ast.Node:
        return self._type(c[1], "struct", c[2], c[3])

    def global_decl(self, c: list) -> ast.Node:
        c[2]["global"] = "yes"
        return self._type(c[1], "struct", c[2], c[3])

    def _enumeration(self, ref: ast.TypeRef, kind: str, pairs: ast.Pairs, values: list) -> ast.Type:
        declared = self._type(ref, kind, pairs, [])
        declared.value_list = values
        return declared

    def enum_decl(self, c: list) -> ast.Node:
        return self._enumeration(c[1], "enum", c[2], c[3:])

    def state_decl(self, c: list) -> ast.Node:
        return self._enumeration(c[1], "state", c[2], c[3:])

    def enum_value(self, c: list) -> ast.Node:
        return ast.EnumValue(loc=self._at(c[0]), name=str(c[0]), pairs=c[1])

    def state_value(self, c: list) -> ast.Node:
        name, kind, permission, pairs = c
        pairs["permission_type"] = str(kind)
        return ast.State(loc=self._at(name), name=str(name), permission=str(permission), pairs=pairs)

    def _object(self, c: list, name: Token, pointer: bool, pairs: ast.Pairs, init: Optional[ast.Expr]) -> ast.Node:
        return ast.ObjectDecl(loc=self._at(name), name=str(name), type_ref=c[0], pointer=pointer, pairs=pairs, init=init)

    def obj_plain(self, c: list) -> ast.Node:
        return self._object(c, c[1], False, c[2], None)

    def obj_pointer(self, c: list) -> ast.Node:
        return self._object(c, c[2], True, c[3], None)

    def obj_init(self, c: list) -> ast.Node:
        return self._object(c, c[1], False, {}, c[2])

    def obj_pointer_init(self, c: list) -> ast.Node:
        return self._object(c, c[2], True, {}, c[3])

    def func_prototype(self, c: list) -> ast.Node:
        return ast.Function(loc=self._at(c[1]), name=str(c[1]), return_ref=c[0], formals=c[2], pairs=c[3], body=None)

    def func_definition(self, c: list) -> ast.Node:
        return ast.Function(loc=self._at(c[1]), name=str(c[1]), return_ref=c[0], formals=c[2], pairs=c[3], body=c[4])

    def void(self, c: list) -> ast.TypeRef:
        return ast.TypeRef(loc=self._at(c[0]), name="void")

    def typename(self, c: list) -> ast.TypeRef:
        if len(c) == 1:
            return ast.TypeRef(loc=self._at(c[0]), name=str(c[0]))
        return ast.TypeRef(loc=c[0].loc, name=f"{c[0].name}::{c[1]}")

    def formals(self, c: list) -> list[ast.Formal]:
        return c

    exprs = formals

    def _formal(self, ref: ast.TypeRef, name: Optional[Token], qualifier: str = "", default: Any = None) -> ast.Formal:
        return ast.Formal(loc=self._at(name) if name is not None else ref.loc, name=None if name is None else str(name),
                          type_ref=ref, qualifier=qualifier, default=default)

    def formal_type(self, c: list) -> ast.Formal:
        return self._formal(c[0], None)

    def formal_value(self, c: list) -> ast.Formal:
        return self._formal(c[0], c[1])

    def formal_pointer(self, c: list) -> ast.Formal:
        return self._formal(c[0], c[2], "PTR")

    def formal_ref(self, c: list) -> ast.Formal:
        return self._formal(c[0], c[2], "REF")

    def formal_const_ref(self, c: list) -> ast.Formal:
        return self._formal(c[1], c[3], "CONST_REF")

    def formal_pointer_default(self, c: list) -> ast.Formal:
        return self._formal(c[0], c[2], "PTR", _unquote(c[3]))

    def formal_default(self, c: list) -> ast.Formal:
        token = c[2]
        value = int(token[:40]) if token.type == "NUMBER" else token == "true" if token.type == "BOOL" else _unquote(token)
        return self._formal(c[0], c[1], "", value)

    def pairs(self, c: list) -> ast.Pairs:
        return dict(c)

    def pair_assign(self, c: list) -> tuple[str, str]:
        return str(c[0]), _unquote(c[1]) if c[1].type == "STRING" else str(c[1])

    def pair_short(self, c: list) -> tuple[str, str]:
        return "short", _unquote(c[0])

    def name(self, c: list) -> ast.Name:
        return ast.Name(loc=self._at(c[0]), name=str(c[0]))

    # ---- statements

    def block(self, c: list) -> list[ast.Stmt]:
        return c

    def expr_stmt(self, c: list) -> ast.Stmt:
        if isinstance(c[0], ast.LocalVar):
            return c[0]
        return ast.ExprStmt(loc=c[0].loc, expr=c[0])

    def assign(self, c: list) -> ast.Stmt:
        if isinstance(c[0], ast.LocalVar):
            c[0].init = c[1]
            return c[0]
        return ast.Assign(loc=c[0].loc, target=c[0], value=c[1])

    def enqueue(self, c: list) -> ast.Stmt:
        extra = c[3:-1]
        return ast.Enqueue(loc=self._at(c[0]), port=c[1], message_ref=c[2], latency=extra[0] if extra else None,
                           bypass=extra[1] if len(extra) > 1 else None, body=c[-1])

    def defer_enqueue(self, c: list) -> ast.Stmt:
        return ast.DeferEnqueue(loc=self._at(c[0]), port=c[1], message_ref=c[2], body=c[3])

    def stall_and_wait(self, c: list) -> ast.Stmt:
        return ast.StallAndWait(loc=self._at(c[0]), port=c[1], address=c[2])

    def wakeup_port(self, c: list) -> ast.Stmt:
        return ast.WakeupPort(loc=self._at(c[0]), port=c[1], address=c[2])

    def peek(self, c: list) -> ast.Stmt:
        return ast.Peek(loc=self._at(c[0]), port=c[1], message_ref=c[2], pairs=c[3], body=c[4])

    def check_allocate(self, c: list) -> ast.Stmt:
        return ast.CheckAllocate(loc=self._at(c[0]), table=c[1])

    def check_next_cycle(self, c: list) -> ast.Stmt:
        return ast.CheckNextCycle(loc=self._at(c[0]))

    def check_stop_slots(self, c: list) -> ast.Stmt:
        return ast.CheckStopSlots(loc=self._at(c[0]), port=c[1], first=_unquote(c[2]), second=_unquote(c[3]))

    def check_probe(self, c: list) -> ast.Stmt:
        return ast.CheckProbe(loc=self._at(c[0]), port=c[1], address=c[2])

    def return_stmt(self, c: list) -> ast.Stmt:
        return ast.Return(loc=self._at(c[0]), value=c[1])

    def if_head(self, c: list) -> tuple[Loc, ast.Expr, list]:
        return self._at(c[0]), c[1], c[2]

    def else_if(self, c: list) -> tuple[Loc, ast.Expr, list]:
        return self._at(c[1]), c[2], c[3]

    def if_only(self, c: list) -> ast.Stmt:
        return ast.If(loc=c[0][0], branches=[(branch[1], branch[2]) for branch in c], otherwise=None)

    def if_else(self, c: list) -> ast.Stmt:
        branches = [branch for branch in c[:-1] if not isinstance(branch, Token)]
        return ast.If(loc=c[0][0], branches=[(branch[1], branch[2]) for branch in branches], otherwise=c[-1])

    # ---- expressions

    def binary(self, c: list) -> ast.Expr:
        return self._deep(ast.Binary(loc=self._at(c[1]), op=str(c[1]), left=c[0], right=c[2]), c[0], c[2])

    def unary(self, c: list) -> ast.Expr:
        return self._deep(ast.Unary(loc=self._at(c[0]), op=str(c[0]), operand=c[1]), c[1])

    variable = name

    def local_var(self, c: list) -> ast.Node:
        node = ast.LocalVar(loc=self._at(c[1]), name=str(c[1]), type_ref=c[0])
        node.depth = 1  # type: ignore[attr-defined]  # stands where an expression may; resolve rejects it elsewhere
        return node

    def enum_ref(self, c: list) -> ast.Expr:
        ref = ast.TypeRef(loc=self._at(c[0]), name=str(c[0]))
        return ast.EnumRef(loc=self._at(c[1]), type_ref=ref, value_name=str(c[1]))

    def call(self, c: list) -> ast.Expr:
        return self._deep(ast.Call(loc=self._at(c[0]), name=str(c[0]), args=c[1]), *c[1])

    def class_call(self, c: list) -> ast.Expr:
        return self._deep(ast.ClassCall(loc=self._at(c[1]), type_ref=c[0], name=str(c[1]), args=c[2]), *c[2])

    def member(self, c: list) -> ast.Expr:
        return self._deep(ast.Member(loc=self._at(c[1]), object=c[0], name=str(c[1])), c[0])

    def method_call(self, c: list) -> ast.Expr:
        return self._deep(ast.MethodCall(loc=self._at(c[1]), object=c[0], name=str(c[1]), args=c[2]), c[0], *c[2])

    def subscript(self, c: list) -> ast.Expr:
        return self._deep(ast.MethodCall(loc=c[0].loc, object=c[0], name="lookup", args=c[1], subscript=True), c[0], *c[1])

    def cast_ref(self, c: list) -> ast.Expr:
        return self._deep(ast.StaticCast(loc=self._at(c[0]), type_ref=c[1], mode="ref", operand=c[2]), c[2])

    def cast_mode(self, c: list) -> ast.Expr:
        return self._deep(ast.StaticCast(loc=self._at(c[0]), type_ref=c[1], mode=_unquote(c[2]), operand=c[3]), c[3])

    def new(self, c: list) -> ast.Expr:
        return ast.New(loc=self._at(c[0]), type_ref=c[1])

    def ood(self, c: list) -> ast.Expr:
        return ast.Ood(loc=self._at(c[0]))

    def _literal(convert: Callable[[str], Any]) -> Callable[["Builder", list], ast.Expr]:  # type: ignore[misc]
        def build(self: "Builder", c: list) -> ast.Expr:
            return ast.Literal(loc=self._at(c[0]), value=convert(str(c[0])))

        return build

    string = _literal(lambda text: _unquote(text))
    number = _literal(lambda text: int(text[:40]))
    float_number = _literal(float)
    boolean = _literal(lambda text: text == "true")

    def parens(self, c: list) -> ast.Expr:
        return c[0]

    def is_valid(self, c: list) -> ast.Expr:
        return self._deep(ast.IsValid(loc=self._at(c[0]), operand=c[1], negated=False), c[1])

    def is_invalid(self, c: list) -> ast.Expr:
        return self._deep(ast.IsValid(loc=self._at(c[0]), operand=c[1], negated=True), c[1])


def _unquote(text: str) -> str:
    return str(text)[1:-1]
