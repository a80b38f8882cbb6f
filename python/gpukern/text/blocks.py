"""What a ``with`` statement takes: it does something while the block lasts, and nothing else."""

import functools
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T_co = TypeVar("_T_co", covariant=True)


class Block(Generic[_T_co]):
    """Made by ``open_it`` at each entry, so that one object serves many, in any thread; also a
    decorator.

    One that nobody enters has done nothing, as where ``with`` was forgotten, and warns of it.
    ``call`` is how it was written: "device(1)".
    """

    def __init__(self, call: str, open_it: Callable[[], AbstractContextManager[_T_co]]) -> None:
        self._call = call
        self._open = open_it
        self._of_thread = threading.local()
        self._entered = False

    def __enter__(self) -> _T_co:
        self._entered = True
        block = self._open()
        value = block.__enter__()
        self._opened().append(block)
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        return self._opened().pop().__exit__(kind, error, trace)

    def _opened(self) -> list[AbstractContextManager[_T_co]]:
        """What this thread has entered and not left, the innermost last."""
        found: list[AbstractContextManager[_T_co]] = vars(self._of_thread).setdefault("open", [])
        return found

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """The function, run inside of the block."""
        self._entered = True

        @functools.wraps(function)
        def inside(*arguments: _P.args, **named: _P.kwargs) -> _R:
            with self._open():
                return function(*arguments, **named)

        return inside

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Say how to ask what the block gives, which is another object."""
            call = vars(self).get("_call", "")
            raise AttributeError(
                f"{call.partition('(')[0]}: gpukern.{call} has no attribute {name!r}; to ask "
                f"what the block gives, write 'with gpukern.{call} as given:' and given.{name}"
            )

    def __repr__(self) -> str:
        return f"<gpukern.{self._call}, for a with statement>"

    def __del__(self) -> None:
        if not getattr(self, "_entered", True):
            name = self._call.partition("(")[0]
            warnings.warn(
                f"{name}: gpukern.{self._call} alone does nothing; write "
                f"'with gpukern.{self._call}:' and indent the calls that it is for",
                RuntimeWarning,
                stacklevel=2,
            )
