from glassformer.render.terminal.legend import draw_legend
from render.paper import lines


def test_names_stay_whole_and_meanings_wrap_in_either_language():
    entries = [("weight", "how much is taken"), ("权重", "每个键取走多少")]
    assert lines(draw_legend(entries), 16) == [
        "weight  how much",
        "        is taken",
        "权重    每个键取",
        "        走多少",
    ]


def test_names_are_not_markup():
    assert lines(draw_legend([("[--json]", "numbers")], gap=1)) == ["[--json] numbers"]
