"""Whether runs of the same comparison agree.

    for i in 1 2 3 4 5; do gpukern compare --save $i.json; done
    python benchmarks/agree.py 1.json 2.json 3.json 4.json 5.json

Of each pair of runs: the share of figures whose intervals have nothing in common, and the rows that
``--against`` would call slower or faster. Then by how much processes differ, which the intervals of
runs with few processes are widened by (SCATTER in bench/model/intervals.py). Exit status 1 where
more intervals are apart than their confidence allows, or where a row is called slower or faster.
"""

import json
import math
import statistics
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

from gpukern import Comparison
from gpukern.bench.model.changes import agreement, changes
from gpukern.bench.model.intervals import CONFIDENCE

FIGURES = ("on_device", "warm", "end_to_end", "device_ratio", "end_to_end_ratio")


def main(paths: list[str]) -> int:
    if len(paths) < 2:
        sys.exit(__doc__)
    runs = [Comparison.from_json(Path(path)) for path in paths]
    pairs = list(combinations(runs, 2))
    failed = False
    for name in FIGURES:
        found = [agreement(*pair, names=[name]) for pair in pairs]
        compared = sum(one.compared for one in found)
        apart = sum(len(one.apart) for one in found)
        share = apart / compared if compared else 0.0
        failed |= share > 1 - CONFIDENCE
        print(f"{name:18} {apart:4} of {compared:5} pairs of intervals are apart, {share:.2%}")
    called = [one for pair in pairs for one in changes(*pair) if one.verdict != "same"]
    for one in called:
        who = f"{one.row.op} {one.row.size} {one.row.label}, {one.name}"
        print(f"{one.verdict}: {who}: {one.factor:.3f} times as long")
    print(f"{len(called)} rows of {len(pairs)} pairs of runs are called slower or faster")
    for name, each in sorted(scatter(paths).items()):
        each.sort()
        half, most = each[len(each) // 2], each[int(0.9 * len(each))]
        print(f"{name:18} between processes: median {half:.4f}, of nine in ten under {most:.4f}")
    return 1 if failed or called else 0


def scatter(paths: list[str]) -> dict[str, list[float]]:
    """By figure, the standard deviations of the logarithms of the processes' medians, by row."""
    found: dict[str, list[float]] = {}
    values: dict[tuple[Any, ...], list[float]] = {}
    for path in paths:
        for row in json.loads(Path(path).read_text())["rows"]:
            for name, blocks in row["samples"].items():
                key = (name, row["op"], row["size"], row["dtype"], row["contender"], row["variant"])
                medians = [statistics.median(each.values()) for each in blocks if each]
                values.setdefault(key, []).extend(math.log(one) for one in medians if one > 0)
    for (name, *_), logs in values.items():
        if len(logs) > 2:
            found.setdefault(name, []).append(statistics.stdev(logs))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
