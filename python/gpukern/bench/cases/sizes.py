"""Sizes as people write them: numbers, sums of them, shapes and ranges.

``2**27-157``, ``1k``, ``4096x4096``, ``1k:16k:x2`` and ``1000:5000:1000``.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator

FORMS = "a size such as 1024, 1k, 2**27-157 or 1024x2048, or a range such as 1k:16k:x2"

# Elements: an array is counted by 64 bits with a sign.
_LARGEST = 2**63 - 1
_MOST_SIZES = 1000
_MOST_CHARACTERS = 100
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def parse_sizes(text: str) -> list[tuple[int, ...]]:
    """The sizes of a list with commas. Raises ValueError for what is none, with its text."""
    entries = [entry.strip() for entry in text.split(",")]
    found = [size for entry in entries if entry for size in _sizes(entry)]
    if not found:
        raise ValueError(f"{text!r} is not {FORMS}")
    return found


def _sizes(text: str) -> list[tuple[int, ...]]:
    """The sizes of one entry: one, or those of a range."""
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"{text[:20] + '...'!r} is longer than {_MOST_CHARACTERS} characters")
    if ":" in text:
        return [(number,) for number in _range(text)]
    return [tuple(_number(part, text) for part in re.split("[xX]", text))]


def _range(text: str) -> list[int]:
    """FIRST:LAST:STEP, or FIRST:LAST:xFACTOR; the last one is in it."""
    parts = [part.strip() for part in text.split(":")]
    if len(parts) != 3:
        raise ValueError(
            f"{text!r} is not a range: FIRST:LAST:xFACTOR as in 1k:16k:x2, or FIRST:LAST:STEP as "
            "in 1000:5000:1000"
        )
    geometric = parts[2][:1] in ("x", "X")
    first, last = (_number(part, text) for part in parts[:2])
    step = _number(parts[2][geometric:], text)
    if first > last:
        raise ValueError(f"{text!r} is an empty range: {first} is more than {last}")
    if geometric and step < 2:
        raise ValueError(f"{text!r} does not end: a range grows by x2 or more")
    found: list[int] = []
    for number in _steps(first, step, geometric):
        if number > last:
            break
        if len(found) == _MOST_SIZES:
            raise ValueError(f"{text!r} is more than {_MOST_SIZES} sizes")
        found.append(number)
    return found


def _steps(first: int, step: int, geometric: bool) -> Iterator[int]:
    number = first
    while True:
        yield number
        number = number * step if geometric else number + step


def _number(text: str, whole: str) -> int:
    """What a sum comes to: positive, and such that an array could be counted by it."""
    if not re.fullmatch(r"[0-9kKmMgG_+*/() -]+", text):
        raise ValueError(f"{whole!r} is not {FORMS}")
    # 1k is 1024: a number and its unit belong together before anything else is done.
    plain = re.sub(
        r"\b(\d[\d_]*)([kKmMgG])\b", lambda m: f"({m[1]}*{_UNITS[m[2].lower()]})", text.strip()
    )
    try:
        value = _value(ast.parse(plain, mode="eval").body)
    except (SyntaxError, RecursionError):
        raise ValueError(f"{whole!r} is not {FORMS}") from None
    except (OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"{whole!r}: {error}") from None
    if not 0 < value <= _LARGEST:
        raise ValueError(f"{whole!r} is not {FORMS}: {value} is no positive number")
    return value


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _checked(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Pow):
            return _power(left, right)
        if type(node.op) in _OPERATORS:
            return _checked(_OPERATORS[type(node.op)](left, right))
    raise SyntaxError


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise OverflowError(f"the power {exponent} makes no whole number")
    # A power of two or more whose exponent is over 63 is too large, and not worked out.
    if abs(base) > 1 and exponent > 63:
        raise OverflowError("this is more elements than an array may have")
    return _checked(base**exponent)


def _checked(value: int) -> int:
    if abs(value) > _LARGEST:
        raise OverflowError("this is more elements than an array may have")
    return value
