"""pycuda.autoprimaryctx: what autoinit is, since every context here is the primary one."""

from gpukern.pycuda.autoinit import context as context
from gpukern.pycuda.autoinit import device as device
