# SPDX-License-Identifier: BSD-3-Clause
"""Expressions: types of operators and members, choice among overloads, and the calls that are nodes of their own."""
from __future__ import annotations

import difflib
from collections.abc import Callable

from . import ast, conversions
from .ast import Expr, Stmt, Type
from .declare import Declarer
from .errors import Diagnostics, arguments, describe, expected
from .scopes import Namespace, Scope
from .supported import DEBUG_FLAGS, PROTOTYPES


class CallResolver:
    """Resolves expressions and calls; resolve.py adds the statements."""

    def __init__(self, declarer: Declarer, diagnostics: Diagnostics) -> None:
        self.declarer = declarer
        self.program = declarer.program
        self.diagnostics = diagnostics
        self.unknown = declarer.unknown
        self.space: Namespace = declarer.space
        self.scope = Scope()
        self.machine: ast.Machine | None = None
        self.in_port: ast.InPort | None = None
        self.place = ""
        self.position = 0
        self.special: dict[str, Callable[[ast.Call], Stmt]] = {
            "trigger": self._trigger,
            "stallPort": self._stall_port,
            "error": self._error,
            "assert": self._assert,
            "DPRINTF": self._debug_print,
            "DPRINTFN": self._debug_print,
            "APPEND_TRANSITION_COMMENT": self._comment,
            "set_cache_entry": self._set_entry,
            "unset_cache_entry": self._set_entry,
            "set_tbe": self._set_tbe,
            "unset_tbe": self._set_tbe,
        }

    # ---- helpers

    def is_unknown(self, *types: Type) -> bool:
        return any(declared is self.unknown for declared in types)

    def named(self, name: str) -> Type:
        return self.space.find_type(name) or self.unknown

    def not_portable(self, loc: ast.Loc, what: str) -> None:
        self.diagnostics.warning(loc, f"{what}: expected a form that gem5 accepts", "portability")

    def check_order(self, decl: ast.Declaration | ast.Function | Type | None, loc: ast.Loc) -> None:
        """Warns of a use above the declaration: gem5 reads a protocol once, from top to bottom."""
        if decl is not None and self.declarer.serial.of(decl) > self.position:
            self.diagnostics.warning(loc, f"'{decl.name}': used before its declaration: expected the declaration above, as gem5 "
                                     "requires", "order")

    def misplaced(self, call: ast.Call, where: str) -> None:
        self.diagnostics.error(call.loc, f"{call.name}: misplaced: expected within an {where}")

    def expect(self, expr: Expr, name: str, what: str) -> None:
        """Resolves an expression and reports an error if its type is not the one called `name`."""
        self.expr(expr)
        if not self.is_unknown(expr.type) and expr.type.name != name:
            self.diagnostics.error(expr.loc, f"{what}: of type {expr.type}: expected {name}")

    # ---- expressions

    def expr(self, expr: Expr) -> Type:
        """Resolves an expression and all below it; returns its type."""
        kind = type(expr).__name__
        method = getattr(self, f"_expr_{kind}", None)
        if method is None:  # a declaration where a value is needed
            after = f", or ';' before '{expr.name}'" if isinstance(expr, ast.LocalVar) else ""
            self.diagnostics.error(expr.loc, f"declaration: misplaced: expected a value{after}")
            if isinstance(expr, ast.LocalVar):
                expr.type_ref.type = self.unknown
            return self.unknown
        expr.type = method(expr)
        return expr.type

    def _expr_Literal(self, expr: ast.Literal) -> Type:
        if not isinstance(expr.value, str) and expr.value >= 2**64:
            self.diagnostics.error(expr.loc, f"number: {expr.value}: expected at most {2**64 - 1}")
        name = "bool" if isinstance(expr.value, bool) else "std::string" if isinstance(expr.value, str) else "int"
        return self.named(name)

    def _expr_Name(self, expr: ast.Name) -> Type:
        symbol = self.scope.find(expr.name)
        if symbol is None:
            hint = expected(expr.name, self.scope.names(), "a declared variable")
            if expr.name in ("in_msg", "out_msg"):
                hint = f" here: expected within {'peek' if expr.name == 'in_msg' else 'enqueue'}"
            elif expr.name in ("address", "tbe", "cache_entry"):
                hint = " here: expected within an action" if self.place != "action" else ": expected a machine that declares its type"
            self.diagnostics.error(expr.loc, f"variable '{expr.name}': unknown{hint}")
            return self.unknown
        expr.kind, expr.decl, expr.is_pointer = symbol.kind, symbol.decl, symbol.is_pointer
        if symbol.kind in ("object", "global", "in_port", "out_port"):
            self.check_order(symbol.decl, expr.loc)
        return symbol.type

    def _expr_EnumRef(self, expr: ast.EnumRef) -> Type:
        declared = self.declarer.lookup_type(expr.type_ref, self.space)
        if self.is_unknown(declared):
            return declared
        if not declared.is_enum:
            self.diagnostics.error(expr.loc, f"type '{declared}': not an enumeration: expected one before ':'")
            return self.unknown
        self.check_order(declared, expr.type_ref.loc)
        value = declared.values.get(expr.value_name)
        if value is None:
            self.diagnostics.error(expr.loc, f"value '{expr.value_name}': not in {declared}"
                                   + expected(expr.value_name, declared.values, "one of its values"))
            return declared
        expr.value = value
        return declared

    def _expr_Ood(self, expr: ast.Ood) -> Type:
        expr.is_pointer = True
        return self.program.ood_type

    def _expr_New(self, expr: ast.New) -> Type:
        expr.is_pointer = True
        declared = self.declarer.lookup_type(expr.type_ref, self.space)
        self.check_order(declared, expr.type_ref.loc)
        return declared

    def _expr_StaticCast(self, expr: ast.StaticCast) -> Type:
        self.expr(expr.operand)
        declared = self.declarer.lookup_type(expr.type_ref, self.space)
        if expr.mode not in ("pointer", "value", "ref"):
            self.diagnostics.error(expr.loc, f"static_cast: mode '{expr.mode}': expected pointer or value")
        expr.is_pointer = expr.mode != "value" and (expr.mode == "pointer" or declared.is_handle)
        source = expr.operand.type
        if not self.is_unknown(declared, source) and expr.mode == "pointer":
            related = source is declared or source.interface is declared or declared.interface is source
            if not related and not isinstance(expr.operand, ast.Ood):
                self.diagnostics.error(expr.loc, f"static_cast: {source} to {declared}: expected one to be the other's interface")
        return declared

    def _expr_IsValid(self, expr: ast.IsValid) -> Type:
        self.expr(expr.operand)
        operand = expr.operand
        starred = isinstance(operand, ast.Name) and getattr(operand.decl, "pointer", False)
        if not (operand.is_pointer or starred or self.is_unknown(operand.type) or operand.type.name in ("PacketPtr", "RequestPtr")):
            word = "is_invalid" if expr.negated else "is_valid"
            self.diagnostics.error(operand.loc, f"{word}: value of type {operand.type}: expected a cache entry or TBE")
        return self.named("bool")

    def _expr_Unary(self, expr: ast.Unary) -> Type:
        operand = self.expr(expr.operand)
        if self.is_unknown(operand):
            return self.unknown
        result, portable = conversions.unary(expr.op, operand)
        if result is None:
            wanted = "bool" if expr.op == "!" else "a number"
            self.diagnostics.error(expr.loc, f"operator {expr.op}: applied to {operand}: expected {wanted}")
            return self.unknown
        if expr.op in ("++", "--") and not isinstance(expr.operand, (ast.Name, ast.Member)):
            self.diagnostics.error(expr.loc, f"operator {expr.op}: applied to a value: expected a variable")
        if not portable:
            self.not_portable(expr.loc, f"operator {expr.op}: applied to {operand}")
        return self.named(result)

    def _expr_Binary(self, expr: ast.Binary) -> Type:
        left, right = self.expr(expr.left), self.expr(expr.right)
        if self.is_unknown(left, right):
            return self.named("bool") if expr.op in conversions.COMPARISONS else self.unknown
        if isinstance(expr.left, ast.Ood) or isinstance(expr.right, ast.Ood):
            self.diagnostics.error(expr.loc, f"operator {expr.op}: applied to OOD: expected is_valid(..) or is_invalid(..)")
            return self.named("bool")
        result, portable = conversions.binary(expr.op, left, right)
        if result is None:
            wanted = conversions.operands(expr.op, left, right)
            self.diagnostics.error(expr.loc, f"operator {expr.op}: applied to {left} and {right}: expected {wanted}")
            return self.unknown if expr.op not in conversions.COMPARISONS else self.named("bool")
        if not portable:
            self.not_portable(expr.loc, f"operator {expr.op}: applied to {left} and {right}")
        return self.named(result)

    def _expr_Member(self, expr: ast.Member) -> Type:
        declared = self.expr(expr.object)
        if self.is_unknown(declared):
            return declared
        field = declared.fields.get(expr.name)
        if field is None and declared.interface is not None:
            field = declared.interface.fields.get(expr.name)
        if field is None:
            if expr.name in declared.methods:
                hint = f": expected a call of the method, {expr.name}(..)"
            else:
                hint = expected(expr.name, declared.fields, "a field")
            self.diagnostics.error(expr.loc, f"field '{expr.name}': not in {declared}{hint}")
            return self.unknown
        expr.field = field
        expr.is_pointer = field.pointer or field.type.is_handle
        return field.type

    # ---- calls

    def _arguments(self, args: list[Expr]) -> None:
        for arg in args:
            self.expr(arg)
            if arg.type is self.program.void_type:
                self.diagnostics.error(arg.loc, "argument: without a value: expected a call that returns one")
                arg.type = self.unknown

    def choose(self, overloads: list[ast.Function], args: list[Expr], loc: ast.Loc, what: str) -> ast.Function | None:
        """The overload that fits the arguments best; the first one if several fit equally well. None, with an error, when none
        fits."""
        best: ast.Function | None = None
        best_price = 0
        for function in overloads:
            price = self._price(function, args)
            if price is not None and (best is None or price < best_price):
                best, best_price = function, price
        if best is None:
            self._no_fit(overloads, args, loc, what)
            return None
        for formal, arg in zip(best.formals, args, strict=True):
            self.declarer.in_range(arg, formal.type, arg.loc)
        if best.owner is not None and best_price >= conversions.NUMERIC and not self.is_unknown(*(arg.type for arg in args)):
            self.not_portable(loc, f"{what}: called with ({describe(str(arg.type) for arg in args)})")
        return best

    def _price(self, function: ast.Function, args: list[Expr]) -> int | None:
        if len(function.formals) != len(args):
            return None
        total = 0
        for formal, arg in zip(function.formals, args, strict=True):
            price = conversions.cost(arg.type, formal.type, isinstance(arg, ast.Ood))
            if price is None:
                return None
            total += price
        return total

    def _no_fit(self, overloads: list[ast.Function], args: list[Expr], loc: ast.Loc, what: str) -> None:
        counts = sorted({len(function.formals) for function in overloads})
        if len(args) not in counts:
            self.diagnostics.error(loc, f"{what}: {arguments(len(args))}: expected {' or '.join(str(count) for count in counts)}")
            return
        same = [function for function in overloads if len(function.formals) == len(args)]
        if len(same) == 1:
            for number, (formal, arg) in enumerate(zip(same[0].formals, args, strict=True), 1):
                if conversions.cost(arg.type, formal.type, isinstance(arg, ast.Ood)) is None:
                    self.diagnostics.error(arg.loc, f"argument {number} of {what}: of type {arg.type}: expected {formal.type}")
            return
        given = describe(str(arg.type) for arg in args)
        forms = " or ".join(function.signature() for function in same[:4])
        self.diagnostics.error(loc, f"{what}: called with ({given}): expected {forms}")

    def _undeclared(self, name: str) -> str:
        """The end of a message about a function that is not declared."""
        if prototype := PROTOTYPES.get(name):
            return f"not declared: expected '{prototype};' in the machine"
        if self.space.find_type(name):
            return "unknown: expected no cast, since assignments and calls convert"
        return "unknown" + expected(name, self.space.function_names(), "a declared function")

    def _expr_Call(self, expr: ast.Call) -> Type:
        if expr.name in self.special:
            self.diagnostics.error(expr.loc, f"{expr.name}(..): used as a value: expected a statement of its own")
            return self.unknown
        self._arguments(expr.args)
        overloads = self.space.find_functions(expr.name)
        if not overloads:
            self.diagnostics.error(expr.loc, f"function '{expr.name}': {self._undeclared(expr.name)}")
            return self.unknown
        function = self.choose(overloads, expr.args, expr.loc, f"function '{expr.name}'")
        if function is None:
            return self.unknown
        self.check_order(function, expr.loc)
        if any(arg.type is not formal.type for arg, formal in zip(expr.args, function.formals, strict=True)) and not self.is_unknown(
                *(arg.type for arg in expr.args)):
            self.not_portable(expr.loc, f"function '{expr.name}': called with ({describe(str(arg.type) for arg in expr.args)})")
        expr.function = function
        expr.is_pointer = function.returns_pointer
        return function.return_type

    def _expr_MethodCall(self, expr: ast.MethodCall) -> Type:
        declared = self.expr(expr.object)
        self._arguments(expr.args)
        if self.is_unknown(declared):
            return declared
        overloads = declared.methods.get(expr.name, [])
        if not any(len(method.formals) == len(expr.args) for method in overloads) and declared.interface is not None:
            overloads = overloads + declared.interface.methods.get(expr.name, [])
        if not overloads:
            if expr.subscript:
                self.diagnostics.error(expr.loc, f"subscript: value of type {declared}: expected a type with a method lookup")
            else:
                known = list(declared.methods) + (list(declared.interface.methods) if declared.interface else [])
                hint = ": expected the field, without (..)" if expr.name in declared.fields else expected(expr.name, known, "a method")
                self.diagnostics.error(expr.loc, f"method '{expr.name}': not in {declared}{hint}")
            return self.unknown
        return self._bind(expr, declared, overloads)

    def _bind(self, expr: ast.MethodCall | ast.ClassCall, declared: Type, overloads: list[ast.Function]) -> Type:
        """Chooses among the methods of that name and sets the choice in the call; returns its type."""
        method = self.choose(overloads, expr.args, expr.loc, f"method '{expr.name}' of {declared}")
        if method is None:
            return self.unknown
        expr.method = method
        expr.is_pointer = method.returns_pointer
        return method.return_type

    def _expr_ClassCall(self, expr: ast.ClassCall) -> Type:
        declared = self.declarer.lookup_type(expr.type_ref, self.space)
        self._arguments(expr.args)
        if self.is_unknown(declared):
            return declared
        overloads = declared.methods.get(expr.name, [])
        if not overloads:
            self.diagnostics.error(expr.loc, f"method '{expr.name}': not in {declared}{expected(expr.name, declared.methods, 'a method')}")
            return self.unknown
        return self._bind(expr, declared, overloads)

    # ---- calls that are statements

    def _count(self, call: ast.Call, wanted: int) -> bool:
        if len(call.args) == wanted:
            return True
        self.diagnostics.error(call.loc, f"{call.name}: {arguments(len(call.args))}: expected {wanted}")
        return False

    def _trigger(self, call: ast.Call) -> Stmt:
        machine = self.machine
        self._arguments(call.args)
        if self.in_port is None or machine is None:
            self.misplaced(call, "in_port")
            return ast.ExprStmt(loc=call.loc, expr=call)
        wanted: list[Type | None] = [machine.event_type, self.space.find_type("Addr"), machine.entry_type, machine.tbe_type]
        types = [declared for declared in wanted if declared is not None]
        if len(call.args) != len(types):
            self.diagnostics.error(call.loc, f"trigger: {arguments(len(call.args))}: expected ({describe(map(str, types))}) in machine "
                                   f"'{machine.name}'")
            return ast.ExprStmt(loc=call.loc, expr=call)
        for number, (declared, arg) in enumerate(zip(types, call.args, strict=True), 1):
            price = conversions.cost(arg.type, declared, isinstance(arg, ast.Ood))
            if price is None:
                self.diagnostics.error(arg.loc, f"argument {number} of trigger: of type {arg.type}: expected {declared}")
        rest = call.args[2:]
        entry = rest.pop(0) if machine.entry_type is not None else None
        tbe = rest.pop(0) if machine.tbe_type is not None else None
        return ast.Trigger(loc=call.loc, event=call.args[0], address=call.args[1], entry=entry, tbe=tbe, in_port=self.in_port)

    def _stall_port(self, call: ast.Call) -> Stmt:
        self._count(call, 0)
        if self.in_port is None:
            self.misplaced(call, "in_port")
        return ast.StallPort(loc=call.loc)

    def _error(self, call: ast.Call) -> Stmt:
        self._arguments(call.args)
        if not self._count(call, 1):
            return ast.ExprStmt(loc=call.loc, expr=call)
        if not self.is_unknown(call.args[0].type) and call.args[0].type.name != "std::string":
            self.diagnostics.error(call.args[0].loc, f"error: message of type {call.args[0].type}: expected a string")
        return ast.ErrorStmt(loc=call.loc, message=call.args[0])

    def _assert(self, call: ast.Call) -> Stmt:
        if not self._count(call, 1):
            self._arguments(call.args)
            return ast.ExprStmt(loc=call.loc, expr=call)
        self.expect(call.args[0], "bool", "assertion")
        return ast.Assert(loc=call.loc, condition=call.args[0])

    def _debug_print(self, call: ast.Call) -> Stmt:
        args = list(call.args)
        flag: str | None = None
        if call.name == "DPRINTF":
            first = args.pop(0) if args else None
            if not isinstance(first, ast.Name):
                self.diagnostics.error(call.loc, "DPRINTF: no debug flag: expected a flag, a format and values")
            else:
                flag = first.name
                near = [] if flag in DEBUG_FLAGS else difflib.get_close_matches(flag, DEBUG_FLAGS, 1, 0.85)
                if near:  # any other name may be a flag that the author's gem5 declares
                    self.diagnostics.warning(first.loc, f"DPRINTF: flag '{flag}': not in gem5: expected '{near[0]}'", "portability")
        form = args.pop(0) if args else None
        if not isinstance(form, ast.Literal) or not isinstance(form.value, str):
            self.diagnostics.error(form.loc if form is not None else call.loc, f"{call.name}: no format: expected a literal string")
            form = None
        self._arguments(args)
        text = str(form.value) if form is not None else ""
        return ast.DebugPrint(loc=call.loc, flag=flag, format=text, args=args)

    def _comment(self, call: ast.Call) -> Stmt:
        self._arguments(call.args)
        if not self._count(call, 1):
            return ast.ExprStmt(loc=call.loc, expr=call)
        return ast.Comment(loc=call.loc, value=call.args[0])

    def _handle_statement(self, call: ast.Call, wanted: Type | None, what: str) -> Expr | None:
        self._arguments(call.args)
        setting = not call.name.startswith("unset")
        if self.place != "action":
            self.misplaced(call, "action")
        elif wanted is None:
            self.diagnostics.error(call.loc, f"{call.name}: no {what} type in the machine: expected one")
        prototypes = self.space.find_functions(call.name)
        if not prototypes:
            self.not_portable(call.loc, f"{call.name}: without a prototype in the machine")
        elif setting and len(call.args) == 1 and not any(function.formals and function.formals[0].type is call.args[0].type
                                                         for function in prototypes):
            self.not_portable(call.loc, f"{call.name}: called with ({call.args[0].type})")
        if not self._count(call, 1 if setting else 0) or not setting:
            return None
        value = call.args[0]
        if wanted is not None and not self.is_unknown(value.type) and value.type is not wanted and not (
                wanted.interface is value.type and value.type.is_handle):
            self.diagnostics.error(value.loc, f"{call.name}: value of type {value.type}: expected {wanted}")
        return value

    def _set_entry(self, call: ast.Call) -> Stmt:
        entry_type = self.machine.entry_type if self.machine is not None else None
        return ast.SetEntry(loc=call.loc, value=self._handle_statement(call, entry_type, "cache entry"))

    def _set_tbe(self, call: ast.Call) -> Stmt:
        tbe_type = self.machine.tbe_type if self.machine is not None else None
        return ast.SetTbe(loc=call.loc, value=self._handle_statement(call, tbe_type, "TBE"))
