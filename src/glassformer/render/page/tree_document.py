"""A tree of numbers as a single HTML file: a graph to click down."""

from collections.abc import Callable
from pathlib import Path

from glassformer.errors import TraceError
from glassformer.languages import CODES, Language
from glassformer.render.page.template import check_page, fill_template, write_html
from glassformer.render.page.texts import TREE_KEYS, page_texts
from glassformer.render.tree import Tree

MOST_NODES = 20_000


def draw_tree_page(
    draw: Callable[[Language], Tree], path: str | Path, *, language: Language
) -> None:
    """Write the page atomically; it opens in this language, and the reader can switch."""
    check_page(Path(path))
    write_html(tree_html(draw, language), Path(path))


def tree_html(draw: Callable[[Language], Tree], language: Language) -> str:
    """The page as text; `draw` makes the tree in each language."""
    trees = {code: draw(Language(code)) for code in CODES}
    n_nodes = sum(1 for _ in trees[language.code].root.walk())
    if n_nodes > MOST_NODES:
        raise TraceError(
            f"A page shows trees of up to {MOST_NODES:,} nodes; got {n_nodes:,}. "
            "Ask for fewer levels (depth) or branches."
        )
    data = {
        "kind": "tree",
        "language": language.code,
        "languages": page_texts(TREE_KEYS),
        "trees": {code: tree.as_dict() for code, tree in trees.items()},
    }
    return fill_template(f"{trees[language.code].title} · glassformer", data)
