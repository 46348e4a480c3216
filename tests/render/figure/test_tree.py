"""Trees as figures: real text, every size, and what is left out is said."""

import pytest

from glassformer.languages import Language
from glassformer.render.tree import Node, Tree

pytest.importorskip("matplotlib")
from glassformer.render.figure.tree import write_tree

ENGLISH = Language("en")


def grown(levels: int, branches: int, name: str = "node") -> Node:
    below = tuple(grown(levels - 1, branches, name) for _ in range(branches if levels else 0))
    rest = (Node(name="rest", value=0.0, is_rest=True),) if below else ()
    value = -1.5 if levels % 2 else 2.0
    return Node(
        name=f"{name} {levels}", value=value, unit="score" * (levels == 0), children=below + rest
    )


def svg(tmp_path, root: Node, language: Language = ENGLISH) -> str:
    tree = Tree(root=root, title="title", caption="caption", verdict="verdict")
    write_tree(tree, tmp_path / "a.svg", language)
    return (tmp_path / "a.svg").read_text("utf-8")


def test_every_node_is_text_with_its_number(tmp_path) -> None:
    text = svg(tmp_path, grown(2, 2))
    assert text.count(">node 0<") == 4 and text.count(">node 1<") == 2
    assert text.count(">−1.5<") == 2 and ">+2<" in text and ">rest<" in text
    assert "verdict caption" in text and "levels are drawn" not in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_deepest_levels_are_left_out_with_a_sentence(tmp_path, language) -> None:
    text = svg(tmp_path, grown(4, 5, "字$x$" * 20), Language(language))
    assert ("Only the first 2 levels" in text) == (language == "en")
    assert text.count(">rest<") == 6


def test_a_root_alone(tmp_path) -> None:
    assert ">alone<" in svg(tmp_path, Node(name="alone", value=None))
