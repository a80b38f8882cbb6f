"""What a result has to be: an array of its own."""

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def strange(result: Any, array: Array, rows_first: bool) -> str:
    """What is wrong with the kind of a result, if anything is.

    ``array`` is what it was read as: an array of NumPy or of a class made from it, a scalar of
    NumPy, or what ``__array__`` of another object has returned. Where the order in memory is the
    work itself, it has to be ``rows_first``. Nothing of the result is called, which could do now
    what had to be done in the time.
    """
    kind = type(result)
    found = inspect.getattr_static(kind, "__array__", None)
    if not issubclass(kind, np.ndarray | np.generic) and found is None:
        return f"returns a {kind.__name__} in place of an array"
    if not array.flags.c_contiguous and (rows_first or not array.flags.f_contiguous):
        return f"returns an array that is not contiguous{', row by row' if rows_first else ''}"
    return ""


def borrowed(array: Array, inputs: Iterable[Array], earlier: Iterable[Array]) -> str:
    """Whose memory a result lies in, if not in its own: ``earlier`` results are held still."""
    if any(np.may_share_memory(array, one) for one in inputs):
        return "returns the memory of its input"
    if any(np.may_share_memory(array, one) for one in earlier):
        return "returns the memory of a result that is still held"
    return ""
