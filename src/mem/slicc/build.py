# SPDX-License-Identifier: BSD-3-Clause
"""From grammar rules to nodes of the tree, called as the parser reduces. Rules whose children are just the fields of a node
stand in a table; the others have a method of their name."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from lark import Token, Transformer, v_args

from . import ast
from .ast import Loc

MAX_EXPRESSION_DEPTH = 200
MAX_DIGITS = 40
"""The digits that a number keeps: no type of the generated code holds more, and Python converts at most some thousands."""

NODES: dict[str, tuple[Callable[..., ast.Node], str]] = {
    "protocol_decl": (ast.ProtocolDecl, "@ name options"),
    "include_decl": (ast.Include, "- @path"),
    "action_decl": (ast.Action, "- @name pairs body"),
    "in_port_decl": (ast.InPort, "- @name message_ref buffer pairs body"),
    "out_port_decl": (ast.OutPort, "- @name message_ref buffer pairs"),
    "func_decl": (ast.Function, "return_ref @name formals pairs body"),
    "enum_value": (ast.EnumValue, "@name pairs"),
    "next_state": (ast.Word, "@name"),
    "void": (ast.TypeRef, "@name"),
    "name": (ast.Name, "@name"),
    # statements
    "enqueue": (ast.Enqueue, "@ port message_ref latency bypass body"),
    "defer_enqueue": (ast.DeferEnqueue, "@ port message_ref body"),
    "stall_and_wait": (ast.StallAndWait, "@ port address"),
    "wakeup_port": (ast.WakeupPort, "@ port address"),
    "peek": (ast.Peek, "@ port message_ref pairs body"),
    "check_allocate": (ast.CheckAllocate, "@ table"),
    "check_next_cycle": (ast.CheckNextCycle, "@"),
    "check_stop_slots": (ast.CheckStopSlots, "@ port first second"),
    "check_probe": (ast.CheckProbe, "@ port address"),
    "return_stmt": (ast.Return, "@ value"),
    # expressions
    "binary": (ast.Binary, "left @op right"),
    "unary": (ast.Unary, "@op operand"),
    "variable": (ast.Name, "@name"),
    "local_var": (ast.LocalVar, "type_ref @name"),
    "call": (ast.Call, "@name args"),
    "class_call": (ast.ClassCall, "type_ref @name args"),
    "member": (ast.Member, "object @name"),
    "method_call": (ast.MethodCall, "object @name args"),
    "cast_ref": (ast.StaticCast, "@ type_ref operand"),
    "cast_mode": (ast.StaticCast, "@ type_ref mode operand"),
    "new": (ast.New, "@ type_ref"),
    "ood": (ast.Ood, "@"),
}
"""A rule's node, and for each child of the rule the field that it fills; `-` fills none. The child with `@` gives the place."""

LISTS: dict[str, Callable[[list[Any]], object]] = {
    "decls": list, "obj_decls": list, "members": list, "formals": list, "exprs": list, "block": list, "options": list, "pairs": dict,
}
"""Rules whose value is the list, or the dictionary, of their children."""

KINDS = {"external_type": "external", "structure": "struct", "global": "struct", "enumeration": "enum",
         "state_declaration": "state"}
"""The kind of the type that each keyword declares."""

_IfHead: TypeAlias = tuple[Loc, ast.Expr, list[ast.Stmt]]


class TooDeep(Exception):
    """An expression nests deeper than MAX_EXPRESSION_DEPTH."""

    def __init__(self, loc: Loc) -> None:
        super().__init__(loc)
        self.loc = loc


@v_args(inline=True)
class Builder(Transformer[Token, list[ast.Node]]):
    """Builds nodes; `file` is set by the parser before each file. Children are tokens, nodes, lists of nodes, or None for
    what is optional in the grammar. Raises TooDeep."""

    def __init__(self) -> None:
        super().__init__()
        self.file = ""
        for rule, (node, children) in NODES.items():
            setattr(self, rule, functools.partial(self._node, node, children.split()))
        for rule, gather in LISTS.items():
            setattr(self, rule, gather)

    def _at(self, child: Token | ast.Node) -> Loc:
        return Loc(self.file, child.line or 0, child.column or 0) if isinstance(child, Token) else child.loc

    def _node(self, node: Callable[..., ast.Node], children: list[str], given: list[Any]) -> ast.Node:
        """A node for a rule in the table `NODES`."""
        values: dict[str, Any] = {}
        for name, child in zip(children, given, strict=False):  # a function without a body has one child less
            if name.startswith("@"):
                values["loc"] = self._at(child)
            if name.strip("@-"):
                values[name.lstrip("@")] = _text(child) if isinstance(child, Token) else child
        return _measured(node(**values))

    # ---- files and declarations

    def start(self, decls: list[ast.Node]) -> list[ast.Node]:
        return decls

    def machine_decl(self, _: Token, kind: Token, name: Token, pairs: ast.Pairs, params: list[ast.ObjectDecl],
                     decls: list[ast.Node]) -> ast.Machine:
        pairs["enumeration_of_name"] = str(kind)
        machine = ast.Machine(loc=self._at(name), name=str(name), pairs=pairs, params=[], decls=decls)
        machine.params = [ast.Param(loc=decl.loc, name=decl.name, type_ref=decl.type_ref, pointer=decl.pointer,
                                    pairs=decl.pairs, default=decl.init, machine=machine) for decl in params]
        return machine

    def transition_decl(self, keyword: Token, states: list[ast.Word], events: list[ast.Word], next_state: ast.Word | None,
                        first: list[ast.Word], second: list[ast.Word] | None) -> ast.TransitionDecl:
        requests, actions = ([], first) if second is None else (first, second)
        return ast.TransitionDecl(loc=self._at(keyword), states=states, events=events, next_state=next_state,
                                  request_types=requests, actions=actions)

    def word_list(self, *names: Token) -> list[ast.Word]:
        return [ast.Word(loc=self._at(name), name=str(name)) for name in names]

    one_word = word_list

    def structure(self, keyword: Token, ref: ast.TypeRef, pairs: ast.Pairs, members: list[Any] | None = None) -> ast.Type:
        if keyword != "structure":
            pairs["external" if keyword == "external_type" else "global"] = "yes"
        return ast.Type(loc=ref.loc, name=ref.name, kind=KINDS[keyword], pairs=pairs, members=members or [])

    def enumeration(self, keyword: Token, ref: ast.TypeRef, pairs: ast.Pairs, *values: ast.EnumValue) -> ast.Type:
        return ast.Type(loc=ref.loc, name=ref.name, kind=KINDS[keyword], pairs=pairs, value_list=list(values))

    def state_value(self, name: Token, kind: Token, permission: Token, pairs: ast.Pairs) -> ast.State:
        pairs["permission_type"] = str(kind)
        return ast.State(loc=self._at(name), name=str(name), permission=str(permission), pairs=pairs)

    def obj_plain(self, ref: ast.TypeRef, star: Token | None, name: Token, pairs: ast.Pairs) -> ast.ObjectDecl:
        return ast.ObjectDecl(loc=self._at(name), name=str(name), type_ref=ref, pointer=star is not None, pairs=pairs)

    def obj_init(self, ref: ast.TypeRef, star: Token | None, name: Token, init: ast.Expr) -> ast.ObjectDecl:
        decl = self.obj_plain(ref, star, name, {})
        decl.init = init
        return decl

    def typename(self, outer: Token | ast.TypeRef, inner: Token | None = None) -> ast.TypeRef:
        name = str(outer) if isinstance(outer, Token) else f"{outer.name}::{inner}"
        return ast.TypeRef(loc=self._at(outer), name=name)

    def formal(self, ref: ast.TypeRef, sign: Token | None, name: Token | None, default: Token | None = None) -> ast.Formal:
        qualifier = {"*": "PTR", "&": "REF"}.get(sign or "", "")
        return ast.Formal(loc=self._at(ref if name is None else name), name=None if name is None else str(name), type_ref=ref,
                          qualifier=qualifier, default=None if default is None else _constant(default))

    def formal_const_ref(self, _: Token, ref: ast.TypeRef, sign: Token, name: Token) -> ast.Formal:
        formal = self.formal(ref, sign, name)
        formal.qualifier = "CONST_REF"
        return formal

    def formal_default(self, ref: ast.TypeRef, name: Token, default: Token) -> ast.Formal:
        return self.formal(ref, None, name, default)

    def pair_assign(self, key: Token, value: Token) -> tuple[str, str]:
        return str(key), _text(value)

    def pair_short(self, value: Token) -> tuple[str, str]:
        return "short", _text(value)

    # ---- statements

    def expr_stmt(self, expr: ast.Expr | ast.LocalVar) -> ast.Stmt:
        return expr if isinstance(expr, ast.LocalVar) else ast.ExprStmt(loc=expr.loc, expr=expr)

    def assign(self, target: ast.Expr | ast.LocalVar, value: ast.Expr) -> ast.Stmt:
        if not isinstance(target, ast.LocalVar):
            return ast.Assign(loc=target.loc, target=target, value=value)
        target.init = value
        return target

    def if_head(self, keyword: Token, condition: ast.Expr, body: list[ast.Stmt]) -> _IfHead:
        return self._at(keyword), condition, body

    def else_if(self, _: Token, keyword: Token, condition: ast.Expr, body: list[ast.Stmt]) -> _IfHead:
        return self._at(keyword), condition, body

    def if_only(self, *heads: _IfHead) -> ast.If:
        return ast.If(loc=heads[0][0], branches=[(condition, body) for _, condition, body in heads], otherwise=None)

    def if_else(self, *parts: Any) -> ast.If:
        *heads, _, otherwise = parts
        statement = self.if_only(*heads)
        statement.otherwise = otherwise
        return statement

    # ---- expressions

    def enum_ref(self, kind: Token, value: Token) -> ast.EnumRef:
        return ast.EnumRef(loc=self._at(value), type_ref=self.typename(kind), value_name=str(value))

    def subscript(self, base: ast.Expr, args: list[ast.Expr]) -> ast.Node:
        return _measured(ast.MethodCall(loc=base.loc, object=base, name="lookup", args=args, subscript=True))

    def is_valid(self, keyword: Token, operand: ast.Expr) -> ast.Node:
        return _measured(ast.IsValid(loc=self._at(keyword), operand=operand, negated=keyword == "is_invalid"))

    def literal(self, token: Token) -> ast.Literal:
        return ast.Literal(loc=self._at(token), value=_constant(token))

    def parens(self, expr: ast.Expr) -> ast.Expr:
        return expr


def _measured(node: ast.Node) -> ast.Node:
    """Notes the height of an expression; raises TooDeep."""
    if isinstance(node, ast.Expr):
        node.depth = 1 + max((child.depth for child in ast.child_exprs(node)), default=0)
        if node.depth > MAX_EXPRESSION_DEPTH:
            raise TooDeep(node.loc)
    return node


def _text(token: Token) -> str:
    """A token's text, a string's without the quotes."""
    return str(token)[1:-1] if token.type == "STRING" else str(token)


def _constant(token: Token) -> int | float | bool | str:
    """The value of a literal. A number is cut at MAX_DIGITS."""
    if token.type == "NUMBER":
        return int(token[:MAX_DIGITS])
    if token.type == "FLOAT":
        return float(token)
    return token == "true" if token.type == "BOOL" else _text(token)
