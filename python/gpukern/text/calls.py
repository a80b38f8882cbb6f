"""Wrong calls of the package's functions in Python, said as the extension in C says them."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import index
from typing import ParamSpec, SupportsIndex, TypeVar, cast

_P = ParamSpec("_P")
_R = TypeVar("_R")


def called_as(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Have a call whose arguments do not fit the function say so by ``name``, and how to call it.

    A call that fits costs nothing more.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
            try:
                return function(*arguments, **named)
            except TypeError:
                check_call(name, function, arguments, named)
                raise

        return call

    return decorate


def check_call(
    name: str,
    function: Callable[..., object],
    arguments: tuple[object, ...],
    named: dict[str, object],
) -> None:
    """That the arguments fit the function; a TypeError says how it is called."""
    import inspect

    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        shown = [
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in signature.parameters.values()
            if parameter.name != "self"
        ]
        usage = inspect.Signature(shown)
        raise TypeError(f"{name}: {error}; it is called as {name}{usage}") from None


@contextmanager
def blamed_on(name: str) -> Iterator[None]:
    """Put the name of the function that was called before what is wrong with its arguments."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def checked_index(name: str, value: object, what: str) -> int:
    """A whole number, as an int. ``what`` is it?"""
    try:
        whole = index(cast(SupportsIndex, value))
    except TypeError:
        whole = None
    if whole is None or isinstance(value, bool):
        raise TypeError(f"{name} is {what}, not {value!r}")
    return whole


def checked_count(name: str, value: object, least: int, what: str, below: int = 2**63) -> int:
    """A whole number from ``least`` on, as an int. ``what`` is it a number of?"""
    what = f"{what}, whole and from {least}"
    whole = checked_index(name, value, what)
    if not least <= whole < below:
        raise ValueError(f"{name} is {what}, not {value!r}")
    return whole


def checked_flag(name: str, value: object) -> bool:
    """True or False, or NumPy's."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} has to be True or False, not {value!r}")
    return bool(value)


def checked_text(name: str, value: object) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} has to be a text, not {value!r}")
    return value


def checked_texts(name: str, given: object) -> tuple[str, ...]:
    """A list or tuple of texts, of which none has a character of code 0."""
    if isinstance(given, str):
        raise TypeError(f"{name} has to be a list of texts; one is [{given!r}]")
    if not isinstance(given, list | tuple):
        raise TypeError(f"{name} has to be a list or tuple of texts, not {given!r}")
    for text in given:
        if not isinstance(text, str) or "\0" in text:
            raise TypeError(f"{name} have to be texts, and {text!r} is none")
    return tuple(given)
