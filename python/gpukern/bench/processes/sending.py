"""Contenders as they are sent to other processes."""

import pickle
from collections.abc import Callable
from typing import Any

from gpukern.bench.blocks import Entrants


def pickled(entrants: Entrants) -> bytes:
    """As a process takes them. Raises ValueError for functions that cannot be sent."""
    try:
        import cloudpickle  # type: ignore[import-untyped, unused-ignore]

        dump: Callable[[Any], bytes] = cloudpickle.dumps
    except ImportError:
        if any(not isinstance(peer.offer, str) for peer, _ in entrants):
            raise ValueError(
                "functions go to processes of their own by cloudpickle, which is not installed: "
                "pip install cloudpickle"
            ) from None
        dump = pickle.dumps
    try:
        return dump(entrants)
    except Exception as error:
        names = ", ".join(peer.name for peer, _ in entrants)
        raise ValueError(f"cannot be sent to a process of its own: {names}: {error}") from None
