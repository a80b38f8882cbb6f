"""Student's t distribution: what a few processes say of all others.

A standard library knows the normal distribution alone, and few degrees of freedom are far from it.
"""

import math
from functools import cache

_STEPS = 400


@cache
def probability_beyond(t: float, freedom: float) -> float:
    """How probable it is that chance alone gives ``t`` or more, on either side.

    The density over the angle ``atan(t / sqrt(freedom))`` is a power of its cosine, which Simpson's
    rule integrates to ten digits.
    """
    angle = math.atan(abs(t) / math.sqrt(freedom))
    width = (math.pi / 2 - angle) / _STEPS

    def height(step: int) -> float:
        return math.pow(max(math.cos(angle + step * width), 0.0), freedom - 1)

    heights = [height(step) * (1 if step in (0, _STEPS) else 2 + 2 * (step % 2))
               for step in range(_STEPS + 1)]  # fmt: skip
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    return min(1.0, 2 * math.exp(log_scale) / math.sqrt(math.pi) * sum(heights) * width / 3)


@cache
def quantile(confidence: float, freedom: float) -> float:
    """The t that is not exceeded, on either side, with that confidence."""
    low, high = 0.0, 1.0
    while probability_beyond(high, freedom) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        beyond = probability_beyond(middle, freedom) > 1 - confidence
        low, high = (middle, high) if beyond else (low, middle)
    return high
