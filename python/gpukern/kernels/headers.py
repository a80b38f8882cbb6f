"""The headers that sources name: what NVRTC lacks is here, in memory, the rest in folders.

NVRTC has no header of its own. nvcc gives every source those of the C library and of CUDA's
runtime, and sources are written for that.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from gpukern.kernels.source import includes

PRELUDE = "gpukern_prelude.h"

# Integers as NVIDIA's own headers have them for NVRTC: a program may include those as well.
_PRELUDE = """
#pragma once
using int8_t = signed char;
using int16_t = signed short;
using int32_t = signed int;
using int64_t = signed long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = signed long long;
using uintptr_t = unsigned long long;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32767 - 1)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define SIZE_MAX UINT64_MAX
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#endif
"""
_LIMITS = """
#pragma once
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32767 - 1)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295u
#define LONG_MIN (-9223372036854775807l - 1)
#define LONG_MAX 9223372036854775807l
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MIN (-9223372036854775807ll - 1)
#define LLONG_MAX 9223372036854775807ll
#define ULLONG_MAX 18446744073709551615ull
"""
_FLOATS = """
#pragma once
#define FLT_RADIX 2
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define FLT_EPSILON 1.19209289550781250e-7f
#define FLT_MIN 1.17549435082228751e-38f
#define FLT_MAX 3.40282346638528860e+38f
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define DBL_DIG 15
#define DBL_MANT_DIG 53
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
"""
_MATH = """
#pragma once
#ifndef M_PI
#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.434294481903251827651
#define M_LN2 0.693147180559945309417
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.785398163397448309616
#define M_1_PI 0.318309886183790671538
#define M_2_PI 0.636619772367581343076
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.707106781186547524401
#endif
"""
_ASSERT = """
#ifndef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                      \\
    ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __func__, 1))
extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *,
                                        size_t);
#endif
#endif
"""
_CONSTANTS = _PRELUDE + _MATH
# CUDA's names for what has a value in words, CUDART_PI and CUDART_PI_F for example.
_NAMED = {
    "ZERO": 0.0,
    "ONE": 1.0,
    "PI": math.pi,
    "PIO2": math.pi / 2,
    "PIO4": math.pi / 4,
    "3PIO4": 3 * math.pi / 4,
    "2_OVER_PI": 2 / math.pi,
    "SQRT_TWO": math.sqrt(2),
    "SQRT_HALF": math.sqrt(0.5),
    "THIRD": 1 / 3,
    "LN2": math.log(2),
    "LNT": math.log(10),
    "L2E": 1 / math.log(2),
    "L2T": math.log2(10),
    "LGE": 1 / math.log(10),
    "LG2": math.log10(2),
    "MIN_DENORM": 5e-324,
}
_NAMED_F = {"MIN_DENORM": 2.0**-149, "MAX_NORMAL": 3.4028234663852886e38}
_MATH_CONSTANTS = "\n".join(
    [
        "#pragma once",
        *(f"#define CUDART_{name} {value!r}" for name, value in _NAMED.items()),
        *(f"#define CUDART_{name}_F {value!r}f" for name, value in (_NAMED | _NAMED_F).items()),
        "#define CUDART_NEG_ZERO (-0.0)",
        "#define CUDART_NEG_ZERO_F (-0.0f)",
        "#define CUDART_INF_F __int_as_float(0x7f800000)",
        "#define CUDART_NAN_F __int_as_float(0x7fffffff)",
        "#define CUDART_INF __longlong_as_double(0x7ff0000000000000ll)",
        "#define CUDART_NAN __longlong_as_double(0xfff8000000000000ull)",
        "",
    ]
)

# What is NVRTC's own already, or of the host alone.
_EMPTY = """stdio.h stdlib.h string.h stddef.h stdarg.h stdbool.h time.h ctype.h cstdio cstdlib
    cstring cstddef ctime iostream device_launch_parameters.h device_functions.h
    math_functions.h cuda.h cuda_runtime.h cuda_runtime_api.h"""

IN_MEMORY: dict[str, str] = {
    PRELUDE: _CONSTANTS,
    "stdint.h": "",
    "cstdint": "",
    "inttypes.h": "",
    "math.h": "",
    "math_constants.h": _MATH_CONSTANTS,
    "cmath": "",
    "limits.h": _LIMITS,
    "climits": _LIMITS,
    "float.h": _FLOATS,
    "cfloat": _FLOATS,
    "assert.h": _ASSERT,
    "cassert": _ASSERT,
    **dict.fromkeys(_EMPTY.split(), ""),
}


_Names = list[tuple[str, bool]] | None


@lru_cache(maxsize=4096)
def _read(path: Path, _size: int, _changed: int) -> tuple[str, _Names]:
    """The digest of a file, and what it includes."""
    data = path.read_bytes()
    return hashlib.sha256(data).hexdigest(), includes(data.decode(errors="replace"))


def _found(name: str, folders: Iterable[Path]) -> Path | None:
    return next((path for folder in folders if (path := folder / name).is_file()), None)


def needs_folders(source: str) -> bool:
    """Whether a source names a header that is not in memory."""
    named = includes(source)
    return named is None or any(name not in IN_MEMORY for name, _ in named)


def contents(source: str, around: Path, folders: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Every header file that a source may read, and the digest of what it holds now.

    ``around`` is the folder of the source, where names in quotes are looked for first.
    Raises LookupError where a macro names one: nobody knows which without compiling.
    """
    seen: set[Path] = set()
    waiting: list[tuple[Path, _Names]] = [(around, includes(source))]
    while waiting:
        beside, names = waiting.pop()
        if names is None:
            raise LookupError("a macro names a header")
        for name, is_quoted in names:
            searched = (beside, *folders) if is_quoted else folders
            path = None if name in IN_MEMORY else _found(name, searched)
            if path is None or path in seen:
                continue
            seen.add(path)
            about = path.stat()
            digest, inner = _read(path, about.st_size, about.st_mtime_ns)
            waiting.append((path.parent, inner))
            yield str(path), digest
