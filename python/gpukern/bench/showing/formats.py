"""Tables and remarks for the terminal, as Markdown, and as HTML for notebooks; rows as CSV."""

import csv
import io
from collections.abc import Iterator
from html import escape as html_escape
from typing import TYPE_CHECKING, Any

from gpukern.bench.model.results import Results
from gpukern.bench.showing.fitting import Fitted
from gpukern.bench.showing.remarks import faults, remarks
from gpukern.bench.showing.sheets import Cell, Column, sheets

if TYPE_CHECKING:
    from rich.console import RenderableType


def renderables(comparison: Results, wide: bool = False) -> Iterator["RenderableType"]:
    """Tables, then remarks on what is missing, broken or wrong; ``wide`` shows all columns."""
    yield from tables(comparison, wide)
    yield from notes(comparison)


def tables(comparison: Results, wide: bool = False) -> Iterator["RenderableType"]:
    """The tables, for a console of any width; ``wide`` shows all columns."""
    for sheet in sheets(comparison):
        yield Fitted(sheet, wide)


def notes(comparison: Results, only_faults: bool = False) -> Iterator["RenderableType"]:
    """The remarks, a paragraph each, or those on what is broken or wrong alone."""
    from rich.text import Text

    for line in faults(comparison) if only_faults else remarks(comparison):
        yield Text(line.text, style=line.style)


def markdown(comparison: Results) -> str:
    """Tables and remarks as Markdown."""
    parts = []
    for sheet in sheets(comparison):
        marks = [":--" if column.left else "--:" for column in sheet.columns]
        lines = [sheet.head, marks]
        for block in sheet.blocks:
            lines += [[_bold(cell) for cell in line] for line in block]
        rows = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts.append(f"**{sheet.title.splitlines()[0]}**\n\n{rows}")
    parts += [f"- {line.text}" for line in remarks(comparison)]
    return "\n\n".join(parts).replace("\n\n- ", "\n- ").replace("|\n- ", "|\n\n- ") + "\n"


def _bold(cell: Cell) -> str:
    text = cell.text.replace("|", "\\|")
    return f"**{text}**" if cell.style.startswith("bold") and text else text


_CSS = {
    "bold green": "color:#1a7f37;font-weight:bold",
    "bold red": "color:#cf222e;font-weight:bold",
    "red": "color:#cf222e",
    "yellow": "color:#9a6700",
    "dim": "opacity:.6",
}


def html(comparison: Results) -> str:
    """Tables and remarks as HTML without any script."""
    parts = []
    for sheet in sheets(comparison):
        title = "<br>".join(html_escape(line) for line in sheet.title.splitlines())
        heads = (f"<th style='white-space:nowrap'>{html_escape(name)}</th>" for name in sheet.head)
        body = "".join(
            f"<tr>{''.join(map(_html_cell, line, sheet.columns))}</tr>"
            for block in sheet.blocks
            for line in block
        )
        parts.append(
            "<div style='overflow-x:auto'>"
            f"<table><caption style='text-align:left'><b>{title}</b></caption>"
            f"<thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table></div>"
        )
    for line in remarks(comparison):
        parts.append(f"<div style='{_CSS.get(line.style, '')}'>{html_escape(line.text)}</div>")
    return "\n".join(parts)


def _html_cell(cell: Cell, column: Column) -> str:
    align = "left" if column.left else "right"
    style = f"text-align:{align};white-space:nowrap;{_CSS.get(cell.style, '')}"
    return f"<td style='{style}'>{html_escape(cell.text)}</td>"


def comma_separated(comparison: Results) -> str:
    """A line for each row with all that is known of it, under a line of names."""
    rows = comparison.to_dicts()
    names = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)
    return stream.getvalue()


def _csv_cell(value: Any) -> Any:
    """Shapes as "512x511 512x511", flags one behind the other."""
    if not isinstance(value, tuple):
        return value
    if any(isinstance(one, tuple) for one in value):
        return " ".join("x".join(map(str, shape)) for shape in value)
    return "; ".join(value)
