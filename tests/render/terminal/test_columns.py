from rich.text import Text

from glassformer.render.terminal.columns import Beside
from render.paper import lines

A, B, C = Text("aaaa\naaaa"), Text("bb"), Text("cccccc")


def test_all_in_a_row_where_they_fit():
    assert lines(Beside(A, B, C, gap=2), 16) == ["aaaa  bb  cccccc", "aaaa"]


def test_what_does_not_fit_goes_below():
    assert lines(Beside(A, B, C, gap=2), 15) == ["aaaa  bb", "aaaa", "", "cccccc"]
    assert lines(Beside(A, B, C, gap=2), 6) == ["aaaa", "aaaa", "", "bb", "", "cccccc"]
