"""Numbers as a person reads them."""

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def seconds(value: float) -> str:
    """A time given in seconds: "3.09 ms"."""
    if value == 0:
        return "0"
    for scale, unit in _TIMES:
        if value >= scale * 0.9995:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{_three_digits(value / 1e-9)} ns"


def size(count: int) -> str:
    """A number of bytes: "64.0 MiB"."""
    for scale, unit in _SIZES:
        if count >= scale:
            return f"{_three_digits(count / scale)} {unit}"
    return f"{count} B"


def bandwidth(count: float, time: float) -> str:
    """Bytes moved in a time in seconds: "47.2 GB/s"."""
    return f"{_three_digits(count / time / 1e9)} GB/s"


def throughput(operations: float, time: float) -> str:
    """Operations done in a time in seconds: "51.0 TFLOP/s", or GFLOP/s when there are few."""
    rate = operations / time
    if rate >= 1e12:
        return f"{_three_digits(rate / 1e12)} TFLOP/s"
    return f"{_three_digits(rate / 1e9)} GFLOP/s"
