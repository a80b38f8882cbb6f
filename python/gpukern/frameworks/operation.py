"""What a framework has to know of an operation: what it takes and gives, and how it is run."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

Backward = Callable[..., Any]


class Shaped(NamedTuple):
    """An array as it is known before there is one: its shape, and its dtype by name. Lengths may be
    symbols of a framework's."""

    shape: tuple[Any, ...]
    dtype: str

    @property
    def size(self) -> Any:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)


class Argument(NamedTuple):
    """An argument: an array, where ``number`` is None, or else a number of that type."""

    name: str
    number: type[int] | type[float] | type[bool] | None


class Operation(ABC):
    """An operation that changes none of its arguments and gives new arrays.

    ``arguments`` are in the order of a call, ``results`` says how many arrays it gives. Where it
    ``broadcasts``, arrays are broadcast together, element by element, and a further axis in front
    of all of them is a batch. ``packed``: arrays have to be contiguous. ``backward`` is the user's
    own: of the results' gradients and the arguments it makes the gradients of the arrays.
    """

    name: str
    arguments: tuple[Argument, ...]
    results: int
    broadcasts: bool
    packed: bool
    backward: Backward | None

    @abstractmethod
    def shaped(self, values: Sequence[Any]) -> tuple[Shaped, ...]:
        """The results of a call, whose arrays are given as Shaped.

        Raises TypeError and ValueError where there is no such call.
        """

    def differentiated(self, xp: Any) -> Backward | None:
        """What gives its gradients, by the functions of the framework; None: it has none."""
        del xp
        return self.backward

    @abstractmethod
    def run(self, values: Sequence[Any], outs: Sequence[Any], stream: Any) -> None:
        """The call, on arrays that gpukern takes, into arrays that are as ``shaped`` has said."""


def broadcast(who: str, shapes: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The shape that all of them have together, by NumPy's rules; lengths may be symbols."""
    first = shapes[0] if shapes else ()
    if all(shape == first for shape in shapes):
        return first
    lengths: list[Any] = [1] * max(map(len, shapes))
    for shape in shapes:
        for axis, length in enumerate(reversed(shape), 1):
            if lengths[-axis] == 1:
                lengths[-axis] = length
            elif length not in (1, lengths[-axis]):
                raise ValueError(
                    f"{who}: operands could not be broadcast together with shapes "
                    f"{' '.join(map(str, shapes))}"
                )
    return tuple(lengths)


def axes_of(given: Any) -> tuple[int, ...]:
    """One axis or several; None is no word of any, as is nothing."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, tuple | list) else (int(given),)


def reduced(who: str, shape: tuple[Any, ...], given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The shape without the axes that are given, all of them where none are."""
    ndim, axes = len(shape), axes_of(given.get("axis"))
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise ValueError(f"{who}: axis {axis} is none of an array of {ndim} axes")
    gone = {axis % ndim for axis in axes} if axes else set(range(ndim))
    if given.get("keepdims", False):
        return tuple(1 if axis in gone else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in gone)


def check_among(what: str, who: str, given: Iterable[str], known: Sequence[str]) -> None:
    """That nothing is named that there is not."""
    strange = [one for one in given if one not in known]
    if strange:
        among = f"to be among {', '.join(known)}" if known else "to be nothing"
        raise TypeError(f"{who}: {what} {among}, and {strange[0]!r} is none")


def gradients(
    operation: Operation, backward: Backward, cotangents: Sequence[Any], values: Sequence[Any]
) -> list[Any | None]:
    """What ``backward`` gives for each array among the values; None where it gives none."""
    arrays = [one.name for one in operation.arguments if one.number is None]
    given = backward(*cotangents, *values)
    found = list(given) if isinstance(given, tuple | list) else [given]
    if len(found) != len(arrays):
        raise ValueError(
            f"{operation.name}: backward has to give {len(arrays)} gradient"
            f"{'s' * (len(arrays) != 1)}, of {', '.join(arrays)}, with None for one that has none, "
            f"and gave {len(found)}"
        )
    return found
