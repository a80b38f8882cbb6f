"""A table on a terminal: as many columns as there is room for, and no name broken in two."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpukern.bench.showing.sheets import Cell, Sheet

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

# Where there is no room for all, names are cut to this, and to no less than that.
_LONGEST = 24
_SHORTEST = 9


@dataclass(frozen=True)
class Fitted:
    """A table for a rich console of any width, with a line under it that says what is left out.

    ``wide`` leaves nothing out, however wide it becomes.
    """

    sheet: Sheet
    wide: bool = False

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        room = options.max_width
        shown, left_out, cut = (self.sheet, [], False) if self.wide else fit(self.sheet, room)
        yield Text(self.sheet.title, style="bold")
        table = _table(shown)
        yield from console.render(table, options.update(width=max(room, _total(_widths(shown)))))
        said = [f"no room for: {', '.join(left_out)}"] if left_out else []
        said += ["names are cut short"] if cut else []
        if said:
            yield Text(f"{'; '.join(said)} (--wide shows all)", style="dim")
        yield Text()


def fit(sheet: Sheet, room: int) -> tuple[Sheet, list[str], bool]:
    """The columns that there is room for, the most important first, the heads of the others, and
    whether names had to be cut short."""
    if _total(_widths(sheet)) <= room:
        return sheet, [], False
    usual = _cut(sheet, [_LONGEST if column.left else room for column in sheet.columns])
    widths = _widths(usual)
    kept: list[int] = []
    for place in sorted({column.place for column in sheet.columns}):
        group = [index for index, column in enumerate(sheet.columns) if column.place == place]
        if place == 0 or _total([widths[index] for index in (*kept, *group)]) <= room:
            kept += group
    left_out = [head for index, head in enumerate(sheet.head) if index not in kept]
    chosen = usual.only(sorted(kept))
    shown = _cut(chosen, _narrowed(chosen, room))
    return shown, left_out, _names(shown) != _names(sheet)


def _names(sheet: Sheet) -> Sheet:
    return sheet.only(index for index, column in enumerate(sheet.columns) if column.left)


def _widths(sheet: Sheet) -> list[int]:
    from rich.cells import cell_len

    lines = [line for block in sheet.blocks for line in block]
    return [
        max(cell_len(text) for text in (head, *(line[index].text for line in lines)))
        for index, head in enumerate(sheet.head)
    ]


def _total(widths: Sequence[int]) -> int:
    """The width of a table whose columns are one line apart."""
    return sum(widths) + len(widths) + 1


def _narrowed(sheet: Sheet, room: int) -> list[int]:
    """The widths of the columns, with those of names less until the table fits if it can."""
    widths = _widths(sheet)
    names = [index for index, column in enumerate(sheet.columns) if column.left]
    while _total(widths) > room:
        longest = max(names, key=lambda index: widths[index])
        if widths[longest] <= _SHORTEST:
            break
        widths[longest] -= 1
    return widths


def _cut(sheet: Sheet, widths: Sequence[int]) -> Sheet:
    """With what is longer than a column is wide cut short."""
    blocks = tuple(
        tuple(
            tuple(_cut_cell(cell, width) for cell, width in zip(line, widths, strict=True))
            for line in block
        )
        for block in sheet.blocks
    )
    return replace(sheet, blocks=blocks)


def _cut_cell(cell: Cell, width: int) -> Cell:
    from rich.cells import cell_len, set_cell_size

    if cell_len(cell.text) <= width:
        return cell
    return replace(cell, text=set_cell_size(cell.text, width - 1).rstrip() + "…")


def _table(sheet: Sheet) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(padding=0)
    for column in sheet.columns:
        table.add_column(column.head, justify="left" if column.left else "right", no_wrap=True)
    for block in sheet.blocks:
        for index, line in enumerate(block):
            cells = [Text(cell.text, style=cell.style) for cell in line]
            table.add_row(*cells, end_section=index == len(block) - 1)
    return table
