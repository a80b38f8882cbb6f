"""Calls one behind another on a stream of their own: in a CUDA graph that is replayed, or queued.

Everybody has the same stream. With calls one behind another the figures hold what a program sees:
what lies between two kernels, and what starts under the end of the one ahead.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

import gpukern as gk
from gpukern import _core

Call = Callable[[], object]


class Lane:
    """The stream that everybody's calls are on."""

    def __init__(self) -> None:
        self.stream = gk.Stream()

    def entered(self, library: str) -> AbstractContextManager[object]:
        """The stream as the library's current one; ours is given it with each call."""
        if library in ("PyTorch", "torch.compile"):
            import torch

            return torch.cuda.stream(torch.cuda.ExternalStream(self.stream.cuda_stream))
        if library == "CuPy":
            import cupy

            return cupy.cuda.Stream.from_external(self.stream)
        return nullcontext()

    def captured(self, library: str, call: Call, calls: int) -> "_core.Graph | None":
        """So many calls as a graph; None where something in them cannot be captured."""
        with self.entered(library):
            for _ in range(3):  # memory that it keeps is there then
                call()
            self.stream.synchronize()
            self.stream.begin_capture()
            try:
                for _ in range(calls):
                    call()
            except Exception:
                self._abandon()
                return None
            return self.stream.end_capture()

    def _abandon(self) -> None:
        with suppress(gk.CudaError):  # which says what the call has said
            self.stream.end_capture()

    def replayed(self, graph: "_core.Graph", calls: int) -> float:
        """Seconds a call; a replay before has the host be ahead of the device."""
        before, after = _core.Event(), _core.Event()
        graph.launch(self.stream)
        before.record(self.stream)
        graph.launch(self.stream)
        after.record(self.stream)
        after.synchronize()
        return after.seconds_since(before) / calls

    def queued(self, library: str, call: Call, graph: "_core.Graph", calls: int) -> float:
        """Seconds a call of as many on the stream, behind replays that outlast the queueing."""
        each = self.replayed(graph, calls) * calls
        ahead = 2
        while True:
            before, after = _core.Event(), _core.Event()
            for _ in range(ahead):
                graph.launch(self.stream)
            begin = time.perf_counter()
            before.record(self.stream)
            with self.entered(library):
                for _ in range(calls):
                    call()
            after.record(self.stream)
            spent = time.perf_counter() - begin
            after.synchronize()
            if spent < (ahead - 1) * each:
                return after.seconds_since(before) / calls
            ahead *= 2
