"""A process that runs kernels on the simulator.

``python -m gpukern.kernels.simulator DESCRIPTOR`` is asked over the descriptor, as
``gpukern.processes`` has it.
"""

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

from gpukern import _core
from gpukern.kernels.simulation import Job, Outcome, of_bytes, perform
from gpukern.processes import Server, serve


class Simulator(Server):
    """What may be asked of the process."""

    def run(
        self,
        code: bytes,
        symbol: str,
        name: str,
        parameters: Sequence[tuple[Any, ...]],
        variables: Mapping[str, int],
        job: Job,
    ) -> Outcome:
        """A call of a kernel; ``variables`` are the bytes of each."""
        printed = io.StringIO()
        try:
            image = _core.Image(code)
            kernel = of_bytes(image, symbol, name, parameters)
            held = {one: image.array(one, "uint8", (count,)) for one, count in variables.items()}
            with redirect_stdout(printed):
                results = perform(kernel, held, job)
        except _core.CudaError as error:
            return Outcome(printed=printed.getvalue(), fault=str(error))
        except (ValueError, MemoryError) as error:
            return Outcome(refused=f"{error} (on the simulator)")
        return Outcome(results, printed.getvalue())


if __name__ == "__main__":
    serve(Simulator)
