"""How a command says what is wrong with it, and what it does not say."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def one_sentence() -> Iterator[None]:
    """What is wrong with the command, or keeps it from beginning, as its error."""
    from gpukern._core import CudaError

    try:
        yield
    except (TypeError, ValueError, CudaError) as error:
        raise click.UsageError(str(error)) from None


@contextmanager
def quiet_simulator() -> Iterator[None]:
    """The commands say themselves that the simulator is at work."""
    from gpukern._core import SimulatorWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulatorWarning)
        yield
