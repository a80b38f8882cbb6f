"""pycuda.cumath: functions of each element of an array."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpukern.pycuda.array import GPUArray, apply_to, new_like
from gpukern.pycuda.elements import apply

_Function = Callable[..., GPUArray]


def _function(name: str, complex_too: bool = True) -> _Function:
    def call(array: GPUArray, *, out: Any = None, stream: Any = None) -> GPUArray:
        if not isinstance(array, GPUArray):
            raise TypeError(f"cumath.{name}: takes a GPUArray, not {type(array)}")
        if array.dtype.kind not in ("fc" if complex_too else "f"):
            kinds = "real or complex" if complex_too else "real"
            raise TypeError(
                f"cumath.{name}: takes {kinds} numbers with a fraction, not {array.dtype}; convert "
                "them with .astype(...)"
            )
        return apply_to(f"z[i] = {name}(x)", array.dtype, {"x": array}, out=out, stream=stream)

    call.__name__ = name
    call.__doc__ = f"``{name}`` of each element, in ``out`` where that is given."
    return call


fabs = _function("fabs", complex_too=False)
ceil = _function("ceil", complex_too=False)
floor = _function("floor", complex_too=False)
exp = _function("exp")
log = _function("log")
log10 = _function("log10")
sqrt = _function("sqrt")
sin = _function("sin")
cos = _function("cos")
tan = _function("tan")
asin = _function("asin", complex_too=False)
acos = _function("acos", complex_too=False)
atan = _function("atan", complex_too=False)
sinh = _function("sinh")
cosh = _function("cosh")
tanh = _function("tanh")


def _real_pair(name: str, *arrays: GPUArray) -> None:
    for array in arrays:
        if array.dtype not in (np.float32, np.float64):
            raise TypeError(f"cumath.{name}: takes float32 or float64, not {array.dtype}")
        if array.shape != arrays[0].shape or not array.flags.c_contiguous:
            raise ValueError(f"cumath.{name}: takes contiguous arrays of one shape")


def fmod(arg: GPUArray, mod: GPUArray, stream: Any = None) -> GPUArray:
    """The remainder of each division, with the sign of ``arg``."""
    _real_pair("fmod", arg, mod)
    return apply_to("z[i] = fmod(x, y)", arg.dtype, {"x": arg, "y": mod}, stream=stream)


def frexp(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]:
    """(significands, exponents), with ``arg == significand * 2**exponent``."""
    _real_pair("frexp", arg)
    significands, exponents = new_like(arg, arg.dtype), new_like(arg, arg.dtype)
    operation = "int e; s[i] = frexp(x, &e); z[i] = e"
    apply(operation, {"s": significands, "z": exponents}, {"x": arg}, stream)
    return significands, exponents


def ldexp(significand: GPUArray, exponent: GPUArray, stream: Any = None) -> GPUArray:
    """``significand * 2**exponent``."""
    _real_pair("ldexp", significand, exponent)
    inputs = {"x": significand, "y": exponent}
    return apply_to("z[i] = ldexp(x, (int)y)", significand.dtype, inputs, stream=stream)


def modf(arg: GPUArray, stream: Any = None) -> tuple[GPUArray, GPUArray]:
    """(fractional parts, integer parts)."""
    _real_pair("modf", arg)
    parts, wholes = new_like(arg, arg.dtype), new_like(arg, arg.dtype)
    apply("z[i] = trunc(x); s[i] = x - trunc(x)", {"s": parts, "z": wholes}, {"x": arg}, stream)
    return parts, wholes
