"""The parameters of a kernel that is made of an expression: "float x, T y, raw int32 table"."""

import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from gpukern.text.calls import checked_text

# NumPy's names, and C's for the same.
_C_NAMES = {
    "float32": ("float",),
    "float64": ("double",),
    "float16": ("__half", "half"),
    "bfloat16": ("__nv_bfloat16",),
    "int8": ("signed char", "int8_t", "char"),
    "int16": ("short", "int16_t", "short int"),
    "int32": ("int", "int32_t"),
    "int64": ("long long", "int64_t", "long", "long int", "long long int", "ptrdiff_t"),
    "uint8": ("unsigned char", "uint8_t", "uchar"),
    "uint16": ("unsigned short", "uint16_t", "ushort", "unsigned short int"),
    "uint32": ("unsigned", "uint32_t", "uint", "unsigned int"),
    "uint64": ("unsigned long long", "uint64_t", "ulong", "unsigned long", "size_t"),
    "bool": ("bool",),
}
_DTYPES = {
    name: np.dtype(ml_dtypes.bfloat16 if numpy_name == "bfloat16" else numpy_name)
    for numpy_name, names in _C_NAMES.items()
    for name in (numpy_name, *names)
}
_QUALIFIERS = ("const", "volatile", "_non_const")
RESERVED = ("i", "n")
RESULT = "gk_result"  # of a kernel whose result has no name of the user's, who knows it as out


def c_name(dtype: np.dtype[Any]) -> str:
    """The dtype's name in CUDA C++."""
    return _C_NAMES[dtype.name][0]


def named_dtype(name: str) -> np.dtype[Any] | None:
    """The dtype of a name of C's or NumPy's; None where there is none."""
    return _DTYPES.get(name)


@dataclass(frozen=True)
class Declared:
    """A parameter as it is written. ``letter`` stands for whichever dtype the arguments have."""

    text: str
    name: str
    dtype: np.dtype[Any] | None
    letter: str | None
    raw: bool

    def dtype_in(self, bound: dict[str, np.dtype[Any]]) -> np.dtype[Any]:
        """Its dtype in a call."""
        return bound[self.letter] if self.letter else self.dtype  # type: ignore[return-value]


def declared(argument: str, text: str) -> tuple[Declared, ...]:
    """What the text declares; raises TypeError and ValueError, naming the argument."""
    checked_text(argument, text)
    parts = [" ".join(part.split()) for part in text.split(",")]
    if parts == [""]:
        return ()
    found = tuple(_one(argument, part) for part in parts)
    check_names(argument, found)
    return found


def _one(argument: str, text: str) -> Declared:
    if "*" in text or "&" in text or "[" in text:
        raise ValueError(
            f"{argument} has {text!r}, which is a pointer, and has to be an element, as 'float x', "
            "or 'raw float x' for an array that is indexed"
        )
    words = text.split()
    raw = "raw" in words[:-1]
    kind = " ".join(word for word in words[:-1] if word not in (*_QUALIFIERS, "raw"))
    name = words[-1] if words else ""
    if not kind or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(
            f"{argument} has {text!r}, which is no parameter; it has to be a type and a name, as "
            "'float x'"
        )
    if name in RESERVED:
        what = "the number of an element" if name == "i" else "the number of elements"
        raise ValueError(f"{argument} has a parameter {name}, which is {what}")
    shown = f"{kind} out" if name == RESULT else text
    if re.fullmatch(r"[A-Za-z]", kind):
        return Declared(shown, name, None, kind, raw)
    return Declared(shown, name, _checked_dtype(argument, kind), None, raw)


def _checked_dtype(argument: str, name: str) -> np.dtype[Any]:
    dtype = named_dtype(name)
    if dtype is None:
        raise TypeError(
            f"{argument} has {name!r}, which is no type that an array has; use C's, as float, "
            "NumPy's, as float32, or one letter for any"
        )
    return dtype


def check_type(argument: str, text: str) -> None:
    """That it is a type, or a letter for one."""
    if not re.fullmatch(r"[A-Za-z]", checked_text(argument, text)):
        _checked_dtype(argument, text)


def check_names(argument: str, parameters: tuple[Declared, ...]) -> None:
    """That no two have the same name."""
    names = [parameter.name for parameter in parameters]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"{argument} has two parameters {twice[0]!r}; each has to have its own name"
        )


def checked_identifier(name: str) -> str:
    """A name that a kernel can have."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"name has to be one that a function in C can have, not {name!r}")
    return name
