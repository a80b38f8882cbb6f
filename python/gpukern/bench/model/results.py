"""All that a comparison has found, and how it becomes JSON and comes back."""

import json
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

from gpukern.bench.model.intervals import MARGIN
from gpukern.bench.model.row import BROKEN, WRONG, Row

SCHEMA = 3
# Those that can still be read: 2 had no raw samples, and figures of one process.
_READABLE = (2, 3)


@dataclass
class Results:
    """What was measured: ``rows``, the seed of the inputs, and the machine.

    ``mode``, ``protocol`` and ``baseline`` are what was asked for. Ratios within ``margin`` of 1
    are shown as "same".
    """

    seed: int
    machine: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    interrupted: bool = False
    mode: str = "both"
    protocol: str = "default"
    baseline: str | None = None
    margin: float = MARGIN

    @property
    def wrong(self) -> list[Row]:
        """The rows whose result was wrong."""
        return [row for row in self.rows if row.status == WRONG]

    @property
    def broken(self) -> list[Row]:
        """The rows of contenders that failed in place of giving a result."""
        return [row for row in self.rows if row.status == BROKEN]

    @property
    def simulated(self) -> bool:
        """Whether gpukern ran on the CPU simulator."""
        return bool(self.machine["backend"] == "sim")

    def only(self, op: str | None = None, dtype: str | None = None) -> Self:
        """The rows of one operation, of one dtype, or of both."""
        kept = [r for r in self.rows if op in (None, r.op) and dtype in (None, r.dtype)]
        return replace(self, rows=kept)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A plain dictionary a row, for pandas.DataFrame."""
        return [row.flat() for row in self.rows]

    def to_json(self, path: str | PathLike[str] | None = None) -> str:
        """The whole comparison as JSON text, also written to ``path`` if there is one."""
        whole = {
            "schema": SCHEMA,
            "seed": self.seed,
            "interrupted": self.interrupted,
            "mode": self.mode,
            "protocol": self.protocol,
            "baseline": self.baseline,
            "margin": self.margin,
            "machine": self.machine,
            "rows": [row.to_json() for row in self.rows],
        }
        text = json.dumps(whole, indent=1, allow_nan=False) + "\n"
        if path is not None:
            Path(path).write_text(text)
        return text

    @classmethod
    def from_json(cls, source: str | PathLike[str]) -> Self:
        """What ``to_json`` has written: a path, or the text itself.

        Raises TypeError for what is neither, OSError for a file that cannot be read, and ValueError
        for what is no comparison, or one of another schema.
        """
        if not isinstance(source, str | PathLike):
            raise TypeError(f"from_json: source has to be a path or a JSON text, not {source!r}")
        text = str(source)
        try:
            whole = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text())
        except ValueError as error:
            raise ValueError(f"from_json: source is no JSON: {error}") from None
        if not isinstance(whole, dict) or whole.get("schema") not in _READABLE:
            raise ValueError(f"from_json: source is no comparison of schema {SCHEMA}")
        try:
            rows = [Row.from_json(row) for row in whole.pop("rows")]
            del whole["schema"]
            return cls(rows=rows, **whole)
        except (KeyError, TypeError, AttributeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise ValueError(f"from_json: source is a broken comparison: {problem}") from None
