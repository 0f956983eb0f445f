"""The live view of a sweep: a row for each trial that runs, and the totals; it fits the window that it is given."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ablate.cli.lines import clean, totals_line
from ablate.sweep.standing import Row, Standing

BAR = 16
"""Columns of a progress bar."""
ROOMY = 110
"""Columns from which on a window has room for bars and identities."""
NAME = 10
"""Columns that an arm's name keeps in any window."""
IDENTITY = 8
"""Characters of a trial's identity: enough for ``ablate show``."""
BESIDE = 3
"""Lines that are kept free for the totals, and for the line that the cursor stands in."""


def drawing(standing: Standing, console: Console) -> Group:
    """The view for this window: where there are more rows than lines, the first of them, and how many more run."""
    room = max(1, console.height - BESIDE)
    rows = standing.rows if len(standing.rows) <= room else standing.rows[: room - 1]
    parts: list[RenderableType] = [_table(rows, console.width)] if rows else []
    if hidden := len(standing.rows) - len(rows):
        parts.append(Text(f"and {hidden} more", style="dim"))
    return Group(*parts, Text(totals_line(standing), no_wrap=True, overflow="ellipsis"))


def _table(rows: tuple[Row, ...], width: int) -> Table:
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column), default=0) for column in zip(*cells, strict=True)]
    roomy = width >= ROOMY
    beside = sum(widths) + (IDENTITY + BAR + 4 if roomy else 0) + 2 * len(widths)
    table = Table.grid(padding=(0, 2))
    if roomy:
        table.add_column(width=IDENTITY, no_wrap=True, style="dim")
    # In a narrow window it is the arm's name that gives way.
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(NAME, width - beside), style="bold")
    table.add_column(no_wrap=True, min_width=widths[0])
    if roomy:
        table.add_column(width=BAR)
    for least in widths[1:]:
        table.add_column(no_wrap=True, justify="right", min_width=least)
    for row, (seed, *numbers) in zip(rows, cells, strict=True):
        bar = [ProgressBar(total=row.steps or 1, completed=row.step, width=BAR)] if roomy else []
        trial = [row.trial[:IDENTITY]] if roomy else []
        table.add_row(*trial, Text(clean(row.arm)), seed, *bar, *numbers)
    return table


def _cells(row: Row) -> tuple[str, str, str, str]:
    """Seed, steps, loss and speed; each as wide as it is in most trials, so that columns keep their places."""
    return (
        f"seed {row.seed}" + (f" (attempt {row.attempt})" if row.attempt > 1 else ""),
        (f"{row.step}/{row.steps}" if row.steps else "starting").rjust(9),
        ("" if row.loss is None else f"loss {row.loss:.4f}").rjust(11),
        ("" if row.tokens_per_second is None else f"{row.tokens_per_second:,.0f} tok/s").rjust(12),
    )
