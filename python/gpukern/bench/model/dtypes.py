"""The dtypes of a case as NumPy's, bfloat16 included, which is ml_dtypes's."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpukern.catalogue import dtype_name

Array = npt.NDArray[Any]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of that name; bfloat16 is ml_dtypes's."""
    if name == "bfloat16":
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return found
    return np.dtype(name)


def itemsize(name: str) -> int:
    """Bytes of one element."""
    return 2 if name == "bfloat16" else np.dtype(name).itemsize


def widened(values: Array) -> Array:
    """In float64; by way of float32, from where NumPy itself converts, on all cores."""
    if dtype_name(values.dtype) == "bfloat16":
        values = values.astype(np.float32)
    return values.astype(np.float64)
