"""Names that are defined once: what becomes local, what is numbered, and what is left alone."""

import pytest

from glassformer.errors import ConfigError
from glassformer.school.learn.cell_names import define_once, find_names, rename


def test_functions_and_comprehensions_keep_their_own_names():
    code = "x = 2\ndef f(x, y=x): return x\nys = [x for x in range(3)] + [x]\ng = lambda x: x\n"
    renamed = (
        "_x = 2\ndef f(x, y=x): return x\nys = [x for x in range(3)] + [_x]\ng = lambda x: x\n"
    )
    assert rename(code, {"x": "_x"}) == renamed


def test_attributes_keywords_and_texts_keep_theirs():
    code = 'f(x=x, y=a.x)\nprint("x", f"x {x:x} {x[0]!r:{x}} {{x}} {a.x}", "{x}")'
    renamed = 'f(x=_x, y=a.x)\nprint("x", f"x {_x:x} {_x[0]!r:{_x}} {{x}} {a.x}", "{x}")'
    assert rename(code, {"x": "_x"}) == renamed


def test_names_of_errors_and_functions_change_as_well():
    first = "try:\n    f()\nexcept ValueError as error:\n    print(error)\ndef show(): print(error)"
    assert define_once([first, "error = show = 1"]) == [
        first.replace("error", "_error")
        .replace("Value_error", "ValueError")
        .replace("show", "_show"),
        "_error = _show = 1",
    ]


def test_a_number_that_is_a_name_already_is_left_out():
    cells = ["x = 1", "print(x)", "x = x_2 = 2", "print(x, x_2)"]
    assert define_once(cells) == ["x = 1", "print(x)", "x_3 = x_2 = 2", "print(x_3, x_2)"]


def test_functions_read_what_their_cell_can_see():
    names = find_names("def f(x):\n    return scale * x + y\ny = f(3)")
    assert names.defined == {"f", "y"} and names.read == {"scale"}


@pytest.mark.plain
def test_a_cell_that_changes_what_it_reads_is_refused():
    with pytest.raises(ConfigError, match=r"must not read x and define it again.*'x \+= 1'"):
        define_once(["x = 1", "x += 1"])
