"""Arithmetic that a completion writes down: ``3.11 * 301 = 936``, ``(3.1 + 2.9) / 2 = 3.0``."""

from __future__ import annotations

import ast
import operator
import re
from dataclasses import dataclass

_NUMBER = r"\d{1,9}(?:,\d{3})*(?:\.\d{1,9})?"
_SIGN = r"[)\s]*[-+*/×·−x][(\s]*"
_SUM = re.compile(
    rf"(?<![\w.,(])(?P<left>\(*{_NUMBER}(?:{_SIGN}{_NUMBER})++\)*)(?:\s*(?:=|≈|->)\s*\$?(?P<result>{_NUMBER}))?"
)
_MOST_TERMS = 60  # of a calculation by hand; a text that repeats itself has thousands
_SIGNS = str.maketrans({"×": "*", "·": "*", "x": "*", "−": "-", ",": "_"})
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@dataclass(frozen=True)
class Calculation:
    """One calculation in a text.

    Parameters
    ----------
    left : str
        What is calculated, with ``*`` for every sign of multiplication, as long as in the text.
    start, end : int
        Where the operands stand.
    result : int
        Where the stated result starts.
    value : float or None
        What comes out; None where it is not arithmetic (unbalanced parentheses, division by
        zero) or has more than 60 signs.
    """

    left: str
    start: int
    end: int
    result: int
    value: float | None

    def sign_before(self, place: int) -> str:
        """The sign in front of the operand that starts at ``place`` of the text, or the empty string."""
        return self.left[: place - self.start].rstrip(" (")[-1:]

    def sign_after(self, place: int) -> str:
        """The sign behind the operand that ends at ``place`` of the text, or the empty string."""
        return self.left[place - self.start :].lstrip(" )")[:1]


def calculations(text: str) -> list[Calculation]:
    """Every calculation with a stated result, in order."""
    found = []
    for match in _SUM.finditer(text):
        if match["result"] is None:
            continue
        left = match["left"].translate(_SIGNS)
        found.append(Calculation(left, match.start("left"), match.end("left"), match.start("result"), _value(left)))
    return found


def _value(expression: str) -> float | None:
    if sum(expression.count(sign) for sign in "+-*/") > _MOST_TERMS:
        return None
    try:
        return _evaluate(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError, TypeError, ValueError):
        return None


def _evaluate(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right)))
    raise ValueError("neither a number nor one of + - * /")
