"""Tables and remarks for the terminal, as Markdown, and as HTML for notebooks."""

from collections.abc import Iterator
from html import escape as html_escape
from typing import TYPE_CHECKING

from gpukern.bench.model.results import Results
from gpukern.bench.showing.remarks import remarks
from gpukern.bench.showing.sheets import Cell, Sheet, sheets

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


def renderables(comparison: Results) -> Iterator["RenderableType"]:
    """Tables, then remarks on what is missing, broken or wrong."""
    from rich.text import Text

    for sheet in sheets(comparison):
        yield _table(sheet)
    for line in remarks(comparison):
        yield Text(line.text, style=line.style)


def _table(sheet: Sheet) -> "Table":
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(title=escape(sheet.title), title_justify="left", title_style="bold", padding=0)
    for index, name in enumerate(sheet.head):
        left = index < sheet.left
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    for block in sheet.blocks:
        for index, line in enumerate(block):
            cells = [Text(cell.text, style=cell.style) for cell in line]
            table.add_row(*cells, end_section=index == len(block) - 1)
    return table


def markdown(comparison: Results) -> str:
    """Tables and remarks as Markdown."""
    parts = []
    for sheet in sheets(comparison):
        marks = [":--"] * sheet.left + ["--:"] * (len(sheet.head) - sheet.left)
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
        head = "".join(f"<th>{html_escape(name)}</th>" for name in sheet.head)
        body = "".join(
            f"<tr>{''.join(_html_cell(cell, i < sheet.left) for i, cell in enumerate(line))}</tr>"
            for block in sheet.blocks
            for line in block
        )
        parts.append(
            f"<table><caption style='text-align:left'><b>{title}</b></caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )
    for line in remarks(comparison):
        parts.append(f"<div style='{_CSS.get(line.style, '')}'>{html_escape(line.text)}</div>")
    return "\n".join(parts)


def _html_cell(cell: Cell, left: bool) -> str:
    align = "left" if left else "right"
    style = f"text-align:{align};white-space:nowrap;{_CSS.get(cell.style, '')}"
    return f"<td style='{style}'>{html_escape(cell.text)}</td>"
