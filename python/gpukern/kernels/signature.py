"""What a kernel takes, as the compiler knows it: no parser of C++ is needed for it.

A variable template is put behind the user's source. An instance of it is asked for by a name
expression, and what its symbol is made of are numbers that templates have worked out of the
kernel's type: of each parameter its kind, size and alignment, and those of what it points to.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Of gk_made_of, in csrc/ops/user_kernel.h.
BYTES, SIGNED, UNSIGNED, BOOL, FLOAT, BFLOAT, CHAR, POINTER, ANYTHING, UNKNOWN = range(10)

_NUMBERS = 7

_SCALARS = {
    "char": CHAR,
    "signed char": CHAR,
    "unsigned char": CHAR,
    "short": SIGNED,
    "unsigned short": UNSIGNED,
    "int": SIGNED,
    "unsigned": UNSIGNED,
    "long": SIGNED,
    "unsigned long": UNSIGNED,
    "long long": SIGNED,
    "unsigned long long": UNSIGNED,
    "bool": BOOL,
    "float": FLOAT,
    "double": FLOAT,
    "__half": FLOAT,
    "__nv_bfloat16": BFLOAT,
}
_VECTORS = {
    "char": "signed char",
    "uchar": "unsigned char",
    "short": "short",
    "ushort": "unsigned short",
    "int": "int",
    "uint": "unsigned",
    "long": "long",
    "ulong": "unsigned long",
    "longlong": "long long",
    "ulonglong": "unsigned long long",
    "float": "float",
    "double": "double",
}


def _specializations() -> str:
    lines = [
        f"template <> struct scalar<{name}> {{\n"
        f"    using type = {name}; enum {{ made_of = {kind} }};\n}};"
        for name, kind in _SCALARS.items()
    ]
    lines += [
        f"template <> struct scalar<::{vector}{lanes}> : scalar<{name}> {{}};"
        for vector, name in _VECTORS.items()
        for lanes in (1, 2, 3, 4)
        if not (lanes == 4 and vector in ("long", "ulong", "longlong", "ulonglong", "double"))
    ]
    lines += [
        "template <> struct scalar<::__half2> : scalar<__half> {};",
        "template <> struct scalar<::__nv_bfloat162> : scalar<__nv_bfloat16> {};",
    ]
    return "\n".join(lines)


# Names are long where a source may have a macro of a short one: -DN=16, #define T float.
# Long vectors of four are of several kinds since CUDA 13, and deprecated: they go by their size.
TABLE = f"""
#line 1 "what gpukern adds"
struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;
namespace gk_signature {{
using number = unsigned long long;
template <class gk_T> struct bare {{ using type = gk_T; }};
template <class gk_T> struct bare<const gk_T> {{ using type = gk_T; }};
template <class gk_T> struct bare<volatile gk_T> {{ using type = gk_T; }};
template <class gk_T> struct bare<const volatile gk_T> {{ using type = gk_T; }};
template <class gk_T> struct is_const {{ static constexpr number value = 0; }};
template <class gk_T> struct is_const<const gk_T> {{ static constexpr number value = 1; }};
template <class gk_T> struct is_const<const volatile gk_T> {{ static constexpr number value = 1; }};
template <class gk_T, class = number> struct room {{
    static constexpr number bytes = 0, alignment = 1;
}};
template <class gk_T> struct room<gk_T, decltype(sizeof(gk_T) * number(1))> {{
    static constexpr number bytes = sizeof(gk_T), alignment = alignof(gk_T);
}};
template <> struct room<void, number> {{ static constexpr number bytes = 0, alignment = 1; }};
template <class gk_T> struct scalar {{
    using type = gk_T; enum {{ made_of = __is_enum(gk_T) ? {SIGNED} : {BYTES} }};
}};
template <> struct scalar<void> {{ using type = void; enum {{ made_of = {ANYTHING} }}; }};
template <class gk_T> struct scalar<gk_T *> {{
    using type = gk_T *; enum {{ made_of = {POINTER} }};
}};
{_specializations()}
template <number...> struct list {{}};
template <class gk_A, class gk_B> struct joined;
template <number... gk_A, number... gk_B> struct joined<list<gk_A...>, list<gk_B...>> {{
    using type = list<gk_A..., gk_B...>;
}};
/* A vector by value is a structure. */
template <class gk_T> struct one {{
    using type = list<(sizeof(gk_T) == room<typename scalar<gk_T>::type>::bytes
                       ? number(scalar<gk_T>::made_of) : number({BYTES})),
                      sizeof(gk_T), 0, 0, 0, 0, alignof(gk_T)>;
}};
template <class gk_T> struct one<gk_T *> {{
    using to = typename bare<gk_T>::type;
    using type = list<{POINTER}, sizeof(gk_T *), is_const<gk_T>::value,
                      number(scalar<to>::made_of), room<typename scalar<to>::type>::bytes,
                      room<to>::bytes, room<to>::alignment>;
}};
template <class gk_R, class... gk_A> struct one<gk_R (*)(gk_A...)> {{
    using type = list<{BYTES}, sizeof(void *), 0, 0, 0, 0, sizeof(void *)>;
}};
template <class... gk_P> struct all {{ using type = list<>; }};
template <class gk_P, class... gk_Q> struct all<gk_P, gk_Q...> {{
    using type = typename joined<typename one<gk_P>::type, typename all<gk_Q...>::type>::type;
}};
template <class gk_F> struct table;
template <class... gk_P> struct table<void(gk_P...)> {{
    using type = typename all<gk_P...>::type;
}};
#if __cplusplus >= 201703L
template <class... gk_P> struct table<void(gk_P...) noexcept> {{
    using type = typename all<gk_P...>::type;
}};
#endif
template <class gk_T> struct variable {{
    using bottom = typename bare<gk_T>::type;
    using type = list<number(scalar<bottom>::made_of), room<typename scalar<bottom>::type>::bytes,
                      sizeof(gk_T)>;
}};
template <class gk_T, decltype(sizeof(0)) gk_N> struct variable<gk_T[gk_N]> {{
    using type = typename joined<typename variable<gk_T>::type, list<gk_N>>::type;
}};
template <class gk_T> __constant__ char of;
}}
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter as the source spells it, and what the compiler says of it.

    ``bytes`` is the size of the argument. Of a pointer, ``points_to`` is the kind of its scalars,
    ``scalar_bytes`` their size, ``pointee_bytes`` and ``alignment`` are of what it points to.
    """

    text: str
    made_of: int
    bytes: int
    readonly: int
    points_to: int
    scalar_bytes: int
    pointee_bytes: int
    alignment: int

    def numbers(self) -> tuple[str, int, int, int, int, int, int, int]:
        """As the extension takes it."""
        return (
            self.text,
            self.made_of,
            self.bytes,
            self.readonly,
            self.points_to,
            self.scalar_bytes,
            self.pointee_bytes,
            self.alignment,
        )


def expression(kernel: str) -> str:
    """What is asked of the compiler to learn what a kernel takes."""
    return f"&gk_signature::of<typename gk_signature::table<decltype({kernel})>::type>"


def variable_expression(name: str) -> str:
    """The same of a variable."""
    return f"&gk_signature::of<typename gk_signature::variable<decltype({name})>::type>"


def numbers_in(symbol: str) -> tuple[int, ...]:
    """What the symbol of such an expression tells."""
    return tuple(int(number) for number in re.findall(r"L[a-z](\d+)E", symbol))


def host_table(kernels: Sequence[str], variables: Sequence[str]) -> str:
    """What a host compiler is given behind the source: kernels, variables, and what they are.

    What the rows tell is numbered, the variables behind the kernels.
    """
    told = [f"table<decltype({kernel})>" for kernel in kernels]
    told += [f"variable<decltype({name})>" for name in variables]
    rows = [
        f"template struct gk_signature_row<{number}, typename gk_signature::{one}::type>;"
        for number, one in enumerate(told)
    ]
    bodies = [
        f'{{"{kernel}", gk_sim_call<&{kernel}>::run, gk_sim_call<&{kernel}>::sizes}},'
        for kernel in kernels
    ]
    return "\n".join(
        [
            TABLE,
            "template <int I, class T> struct gk_signature_row {",
            "    static char of __attribute__((used));",
            "};",
            "template <int I, class T> char gk_signature_row<I, T>::of;",
            *rows,
            'extern "C" GK_SIM_SHARED const gk_sim_body gk_sim_module_bodies[] = {',
            *bodies,
            "{nullptr, nullptr, nullptr}};",
            'extern "C" GK_SIM_SHARED const gk_sim_variable gk_sim_module_variables[] = {',
            *(f'{{"{name}", (const void *)&{name}, sizeof({name})}},' for name in variables),
            "{nullptr, nullptr, 0}};",
            "",
        ]
    )


_DTYPES = {
    (SIGNED, 2): "int16",
    (SIGNED, 4): "int32",
    (SIGNED, 8): "int64",
    (UNSIGNED, 2): "uint16",
    (UNSIGNED, 4): "uint32",
    (UNSIGNED, 8): "uint64",
    (CHAR, 1): "int8",
    (BOOL, 1): "bool",
    (FLOAT, 2): "float16",
    (FLOAT, 4): "float32",
    (FLOAT, 8): "float64",
    (BFLOAT, 2): "bfloat16",
    (POINTER, 8): "uint64",
}


def dtype_of(parameter: Parameter) -> str:
    """Of the array that a parameter points to: bytes, where no dtype is like it."""
    return _DTYPES.get((parameter.points_to, parameter.scalar_bytes), "uint8")


def variable(numbers: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """The dtype and the shape of a variable: bytes, where no dtype is like it. Lanes of a vector
    are its last axis."""
    made_of, scalar, whole, *lengths = numbers
    shape = tuple(reversed(lengths))
    dtype = _DTYPES.get((made_of, scalar))
    if dtype is None:
        return "uint8", (*shape, whole)
    return dtype, shape if whole == scalar else (*shape, whole // scalar)


def pointee_dtype(parameter: Parameter) -> str | None:
    """The dtype of an array that it points to; None where none is like it."""
    if parameter.made_of != POINTER or parameter.points_to == POINTER:
        return None
    if parameter.points_to == CHAR:
        is_unsigned = re.search(r"\bunsigned\b|\buint8_t\b|\buchar", parameter.text)
        return "uint8" if is_unsigned else "int8"
    return _DTYPES.get((parameter.points_to, parameter.scalar_bytes))


_TYPES = {
    (SIGNED, 2): "short",
    (SIGNED, 4): "int",
    (SIGNED, 8): "long long",
    (UNSIGNED, 2): "unsigned short",
    (UNSIGNED, 4): "unsigned",
    (UNSIGNED, 8): "unsigned long long",
    (CHAR, 1): "char",
    (BOOL, 1): "bool",
    (FLOAT, 2): "__half",
    (FLOAT, 4): "float",
    (FLOAT, 8): "double",
    (BFLOAT, 2): "__nv_bfloat16",
    (POINTER, 8): "void *",
    (ANYTHING, 0): "void",
}


def _spelled(made_of: int, size: int, whole: int) -> str:
    name = _TYPES.get((made_of, size)) or f"struct of {whole} bytes"
    return f"{name}[{whole // size}]" if size and whole > size else name


def _text(number: int, row: tuple[int, ...]) -> str:
    """Of a parameter that the source does not show."""
    made_of, size, readonly, points_to, scalar, pointee, _ = row
    if made_of == POINTER:
        const = "const " if readonly else ""
        return f"argument {number} ({const}{_spelled(points_to, scalar, pointee)} *)"
    if made_of == UNKNOWN:
        return f"argument {number} ({size} bytes)"
    return f"argument {number} ({_spelled(made_of, size, size)})"


def parameters(numbers: tuple[int, ...], written: tuple[str, ...]) -> tuple[Parameter, ...]:
    """What a kernel takes, by the source's own words where it has as many of them."""
    rows = [numbers[i : i + _NUMBERS] for i in range(0, len(numbers), _NUMBERS)]
    if len(written) == len(rows):
        return tuple(Parameter(text, *row) for text, row in zip(written, rows, strict=True))
    return tuple(Parameter(_text(i, row), *row) for i, row in enumerate(rows, 1))


def of_sizes(sizes: list[int]) -> tuple[Parameter, ...]:
    """What is known of a kernel that was not compiled here."""
    rows = [(UNKNOWN, size, 0, UNKNOWN, 0, 0, 1) for size in sizes]
    return tuple(Parameter(_text(i, row), *row) for i, row in enumerate(rows, 1))
