"""Two GPUs in one process: a thread for each, against one alone.

    python benchmarks/two_gpus.py results/two-gpus.json

Each round times one thread on each GPU alone and then both at once, in random order; the share is
how much work two threads do in the time in which one does its own. NumPy to NumPy it is bound by
the memory of the host, which both read and write; on the GPUs' own arrays, by nothing they share.
"""

import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpukern as gk
from gpukern.text.units import seconds

ROUNDS = 15
CALLS = 8  # of a thread in a round
CALLS_THERE = 40  # the same on arrays of the GPU's own

Work = Callable[[], Any]


def inputs(size: int, seed: int) -> list[Any]:
    """Two pairs of operands, which calls take in turn: what a cache holds is not what is timed."""
    rng = np.random.default_rng(seed)
    return [rng.random((size, size), np.float32) for _ in range(4)]


def work_on(device: int, op: str, size: int, there: bool) -> Work:
    """What a thread does, with NumPy arrays or with those of its GPU."""
    operands = inputs(size, device)
    calls = CALLS_THERE if there else CALLS
    call = getattr(gk, op)
    with gk.device(device):
        a, b, c, d = [gk.to_device(one) for one in operands] if there else operands

    def work() -> None:
        with gk.device(device):
            for _ in range(calls // 2):
                call(a, b)
                last = call(c, d)
            if there:
                gk.synchronize()
            del last

    work()
    return work


def timed(works: list[Work]) -> float:
    """Seconds that the threads take side by side."""
    barrier = threading.Barrier(len(works) + 1)

    def run(work: Work) -> None:
        barrier.wait()
        work()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def measure(op: str, size: int, there: bool) -> dict[str, Any]:
    """Seconds of a call, and how many times as much two threads do."""
    works = [work_on(device, op, size, there) for device in range(2)]
    rounds = []
    for _ in range(ROUNDS):
        ways = {"0": works[:1], "1": works[1:], "both": works}
        rounds.append({name: timed(ways[name]) for name in random.sample(list(ways), 3)})
    gains = sorted((each["0"] + each["1"]) / each["both"] for each in rounds)
    return {
        "op": op,
        "size": size,
        "arrays": "device" if there else "NumPy",
        "alone": statistics.median(each["0"] for each in rounds)
        / (CALLS_THERE if there else CALLS),
        "gain": statistics.median(gains),
        "least": gains[0],
        "most": gains[-1],
        "rounds": rounds,
    }


WORKS = (
    *(("add", 4096, False), ("matmul", 4096, False), ("add", 8192, False)),
    *(("add", 8192, True), ("matmul", 4096, True)),
)


def main(arguments: list[str]) -> int:
    """The exit status: 1 where two threads do less than 1.9 times the work of one."""
    names = [device.name for device in gk.device_info()]
    if len(names) < 2:
        sys.exit("two_gpus.py needs two GPUs")
    found = [measure(*work) for work in WORKS]
    print(f"{names[0]} and {names[1]}")
    for each in found:
        print(
            f"{each['op']} {each['size']}, {each['arrays']} arrays: "
            f"{seconds(each['alone'])} a call alone, two threads {each['gain']:.2f}x "
            f"({each['least']:.2f} to {each['most']:.2f})"
        )
    if arguments:
        Path(arguments[0]).write_text(json.dumps({"gpus": names[:2], "found": found}) + "\n")
    return int(any(each["gain"] < 1.9 for each in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
