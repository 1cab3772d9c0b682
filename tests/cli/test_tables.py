"""Tables in the terminal."""

import io

from rich.console import Console

from clearhead.cli.tables import emphasized_table
from clearhead.summary_table import text_table


def test_the_best_cell_of_each_row_is_bold():
    headings, rows = (
        ["", "a", "longer name"],
        [["loss", "3.0", "2.5"], ["copied", "0.0%", "0.0%"], ["right", "70%", "8%"]],
    )
    found = emphasized_table(headings, rows, [2, None, 1])
    assert found.plain == text_table(headings, rows)
    written = io.StringIO()
    Console(file=written, force_terminal=True, color_system="standard", width=80).print(found)
    bold = [part.split("\x1b[0m")[0].strip() for part in written.getvalue().split("\x1b[1m")[1:]]
    assert bold == ["2.5", "70%"]
