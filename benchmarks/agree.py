"""Whether two runs of the same comparison agree.

    python benchmarks/agree.py first.json second.json

prints each ratio whose intervals in the two runs have nothing in common, and their share. Exit
status 1 if there is one.
"""

import sys
from pathlib import Path

from gpukern import Comparison
from gpukern.bench.model.changes import agreement


def main(paths: list[str]) -> int:
    if len(paths) != 2:
        sys.exit(__doc__)
    found = agreement(*(Comparison.from_json(Path(path)) for path in paths))
    print(found)
    return 1 if found.apart else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
