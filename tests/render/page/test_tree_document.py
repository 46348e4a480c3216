"""The page of a tree."""

import pytest

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.page.tree_document import MOST_NODES, tree_html
from glassformer.render.tree import Node, Tree
from render.page_numbers import page_data

ENGLISH = Language("en")


def test_a_tree_in_both_languages() -> None:
    child = Node(name="</script>", value=-0.5, unit="score", is_rest=True)
    root = Node(name="root", value=None, note="note", children=(child,))

    def draw(language: Language) -> Tree:
        return Tree(root=root, title=language.code, caption="c", verdict="v")

    data = page_data(tree_html(draw, Language("zh")))
    assert data["kind"] == "tree" and data["language"] == "zh"
    assert {code: tree["title"] for code, tree in data["trees"].items()} == {"en": "en", "zh": "zh"}
    (below,) = data["trees"]["en"]["root"]["children"]
    assert below["name"] == "</script>" and below["value"] == -0.5 and below["is_rest"]


def test_too_many_nodes_are_refused() -> None:
    leaves = (Node(name="a", value=1.0),) * MOST_NODES
    tree = Tree(root=Node(name="root", value=1.0, children=leaves), title="t")
    with pytest.raises(TraceError, match=r"up to 20,000 nodes; got 20,001\. Ask for fewer levels"):
        tree_html(lambda _: tree, ENGLISH)
