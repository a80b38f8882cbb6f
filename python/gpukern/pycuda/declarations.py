"""C's types by NumPy's dtypes, and declarations of arguments such as ``float *x``."""

import re
from typing import Any

import numpy as np

_CTYPES = {
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned",
    "int64": "long",
    "uint64": "unsigned long",
    "float32": "float",
    "float64": "double",
    "complex64": "pycuda::complex<float>",
    "complex128": "pycuda::complex<double>",
}
_NAMED = {ctype: np.dtype(name) for name, ctype in _CTYPES.items()} | {
    name: np.dtype(kind)
    for kind, names in {
        "i1": ("char", "int8_t"),
        "u1": ("uint8_t", "uchar"),
        "i2": ("int16_t", "short int", "signed short"),
        "u2": ("uint16_t", "ushort", "unsigned short int"),
        "i4": ("int32_t", "signed", "signed int"),
        "u4": ("uint32_t", "uint", "unsigned int"),
        "i8": ("int64_t", "long long", "long int", "ptrdiff_t", "ssize_t", "long long int"),
        "u8": ("uint64_t", "size_t", "unsigned long long", "unsigned long int", "ulong"),
    }.items()
    for name in names
}
_VECTOR_SCALARS = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "long": "i8",
    "ulong": "u8",
    "longlong": "i8",
    "ulonglong": "u8",
    "float": "f4",
    "double": "f8",
}


class vec:
    """CUDA's vectors: ``vec.float3`` is a dtype, ``vec.make_float3(x, y, z)`` a scalar of it."""


def _make_vectors() -> None:
    for name, scalar in _VECTOR_SCALARS.items():
        for lanes in (1, 2, 3, 4):
            vector = f"{name}{lanes}"
            dtype = np.dtype([(field, scalar) for field in "xyzw"[:lanes]])
            _NAMED[vector] = dtype
            setattr(vec, vector, dtype)
            setattr(vec, f"make_{vector}", _maker(vector, dtype))


def _maker(name: str, dtype: np.dtype[Any]) -> Any:
    def make(*lanes: Any) -> Any:
        if len(lanes) != len(dtype.names or ()):
            raise TypeError(
                f"make_{name}: takes {len(dtype.names or ())} numbers, and was given {len(lanes)}"
            )
        return np.array([lanes], dtype)[0]

    return staticmethod(make)


_make_vectors()


def get_or_register_dtype(names: Any, dtype: Any = None) -> np.dtype[Any]:
    """Have a structure's name in C stand for a dtype, in arguments of kernels; or find it."""
    every = [names] if isinstance(names, str) else list(names)
    if dtype is None:
        return named_dtype(every[0])
    kind: np.dtype[Any] = np.dtype(dtype)
    for name in every:
        _NAMED[name] = kind
    return kind


def named_dtype(ctype: str) -> np.dtype[Any]:
    """The dtype of a type in C."""
    found = _NAMED.get(ctype)
    if found is None:
        raise TypeError(
            f"{ctype!r} is no type that is known here; pycuda.tools.get_or_register_dtype(name, "
            "dtype) makes a structure known"
        )
    return found


def dtype_to_ctype(dtype: Any, with_fp_tex_hack: bool = False) -> str:
    """The type in C of a dtype; raises TypeError where there is none."""
    if dtype is None or with_fp_tex_hack:
        raise TypeError("dtype_to_ctype: takes a dtype alone; texture references are left out")
    kind = np.dtype(dtype)
    if kind.name in _CTYPES and kind.isnative:
        return _CTYPES[kind.name]
    for name, known in _NAMED.items():
        if known == kind:
            return name
    raise TypeError(
        f"{kind} has no type in C that is known here; pycuda.tools.get_or_register_dtype(name, "
        "dtype) makes a structure known"
    )


class Argument:
    """An argument of a kernel: a dtype and a name."""

    struct_char: str

    def __init__(self, dtype: Any, name: str) -> None:
        self.dtype = np.dtype(dtype)
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.dtype})"

    def declarator(self) -> str:
        """The argument as C declares it."""
        raise NotImplementedError


class VectorArg(Argument):
    """A pointer to elements of the dtype."""

    struct_char = "P"

    def declarator(self) -> str:
        """The pointer as C declares it."""
        return f"{dtype_to_ctype(self.dtype)} *{self.name}"


class ScalarArg(Argument):
    """A number or structure of the dtype."""

    def declarator(self) -> str:
        """The number as C declares it."""
        return f"{dtype_to_ctype(self.dtype)} {self.name}"

    @property
    def struct_char(self) -> str:  # type: ignore[override]
        """Its letter in a format of struct."""
        return f"{self.dtype.itemsize}s" if self.dtype.kind in "Vc" else self.dtype.char


_WORDS = re.compile(r"\b(?:const|volatile|struct|__restrict__|restrict|__restrict)\b")
_ARGUMENT = re.compile(r"(.+?)\s*(\*?)\s*\b(\w+)(\s*\[\s*\])?$", re.DOTALL)


def parse_c_arg(c_arg: str) -> Argument:
    """``"float *x"`` as an argument; raises TypeError for a type that is not known."""
    text = " ".join(_WORDS.sub(" ", c_arg).split())
    found = _ARGUMENT.match(text)
    if not found:
        raise TypeError(f"{c_arg!r} is no argument; one is written as float *x or int n")
    ctype, star, name, brackets = found.groups()
    kind = named_dtype(re.sub(r"\s*([<>:])\s*", r"\1", ctype))
    return (VectorArg if star or brackets else ScalarArg)(kind, name)


def arguments_of(arguments: Any) -> list[Argument]:
    """Arguments of a text with commas, or a list of them."""
    if isinstance(arguments, str):
        return [parse_c_arg(each) for each in _split(arguments)]
    return [parse_c_arg(each) if isinstance(each, str) else each for each in arguments]


def _split(arguments: str) -> list[str]:
    """At the commas that are outside of a template's arguments."""
    return [part for part in re.split(r",(?![^<]*>)", arguments) if part.strip()]
