"""pycuda.autoinit: the first device is this thread's from here on."""

import atexit
from contextlib import suppress

from gpukern._core import CudaError
from gpukern.pycuda.contexts import init
from gpukern.pycuda.streams import synchronize
from gpukern.pycuda.tools import make_default_context

init()
context = make_default_context()
device = context.get_device()


def _finish() -> None:
    """Wait for what kernels still print."""
    context.detach()
    with suppress(CudaError):  # what went wrong is said by the call that waited for it
        synchronize()


atexit.register(_finish)
