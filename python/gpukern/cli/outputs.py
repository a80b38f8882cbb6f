"""Where the result of a comparison goes besides the terminal."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from gpukern.bench.comparison import Comparison

# As the name of a file: standard output.
STDOUT = "-"


@dataclass(frozen=True)
class Outputs:
    """Where the result goes besides the terminal, and what it is held against."""

    json: str | None = None
    csv: str | None = None
    save: str | None = None
    plot: str | None = None
    markdown: str | None = None
    into: str | None = None
    against: str | None = None
    threshold: float = 0.02
    wide: bool = False

    @property
    def tables(self) -> bool:
        """Whether tables go to standard output, and no data."""
        return STDOUT not in (self.json, self.csv, self.markdown)

    @property
    def kept(self) -> bool:
        """Whether the figures are to last: another run is held against them, or a page has them."""
        return any(path is not None for path in (self.save, self.against, self.into))

    def check(self) -> None:
        """Raise UsageError for what could not be written once all is measured."""
        asked = {"--json": self.json, "--csv": self.csv, "--markdown": self.markdown}
        to_stdout = [name for name, path in asked.items() if path == STDOUT]
        if len(to_stdout) > 1:
            raise click.UsageError(f"{' and '.join(to_stdout)} cannot both go to standard output")
        if self.into is not None and not _MARKS.search(Path(self.into).read_text()):
            raise click.UsageError(f"{self.into} has no {_BEGIN} and end")
        if self.plot is not None:
            _check_plot(Path(self.plot))


_BEGIN = "<!-- measured: begin -->"
_MARKS = re.compile(rf"({_BEGIN}\n).*?(<!-- measured: end -->)", re.DOTALL)


def _check_plot(path: Path) -> None:
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise click.UsageError("--plot needs matplotlib: pip install matplotlib") from None
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix and path.suffix[1:].lower() not in known:
        raise click.UsageError(f"--plot {path}: matplotlib writes {', '.join(sorted(known))}")


def write(result: "Comparison", outputs: Outputs) -> Iterator[str]:
    """Write what was asked for; the files, by name."""
    texts = (
        (outputs.json, result.to_json),
        (outputs.save, result.to_json),
        (outputs.csv, result.to_csv),
        (outputs.markdown, result.to_markdown),
    )
    for path, text in texts:
        if path == STDOUT:
            click.echo(text(), nl=False)
        elif path is not None:
            Path(path).write_text(text())
            yield path
    if outputs.into is not None:
        _put_into(Path(outputs.into), result.to_markdown())
        yield outputs.into
    if outputs.plot is not None:
        from gpukern.bench.showing import plots

        yield from map(str, plots.save(result, outputs.plot))


def _put_into(path: Path, tables: str) -> None:
    """Replace what stands between the marks."""
    path.write_text(_MARKS.sub(lambda found: f"{found[1]}{tables}{found[2]}", path.read_text()))
