"""A tree of numbers as a figure: levels from left to right, edges as wide as their numbers."""

from pathlib import Path
from typing import Any

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.render.figure.cells import NEGATIVE, POSITIVE, REST
from glassformer.render.figure.files import figure_style, save_figure
from glassformer.render.figure.fonts import make_drawable
from glassformer.render.numbers import format_brief
from glassformer.render.paragraph import join_sentences, wrap_text
from glassformer.render.tree import Node, Tree, largest_by_unit

_LEVEL, _ROW = 3.3, 0.25  # inches
_TEXT = 0.62  # share of a level that the text of a node takes
_WIDEST = 11.0  # points of an edge
_MOST_NODES = 90  # beyond, the deepest levels are left out
_MOST_NAME, _MOST_LEAF = 23, 34  # characters of a node with edges to its right, and without
_MOST_CAPTION = 180  # cells of a caption line


def write_tree(tree: Tree, path: str | Path, language: Language) -> None:
    """Write the tree with its verdict and its caption, atomically."""
    depth = _fitting_depth(tree.root)
    rows = _count_rows(tree.root, depth)
    with figure_style(ConfigError):
        from matplotlib.figure import Figure  # without pyplot, which would keep a reference

        width = _LEVEL * (depth + 1)
        figure = Figure(figsize=(width, max(2.0, _ROW * rows + 1.6)), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(0, depth + 1)
        axes.set_ylim(rows - 0.4, -0.6)
        _draw_node(axes, tree.root, 0, 0, depth, largest_by_unit(tree.root))
        cells = int(width / 0.1)
        figure.suptitle(_wrap(tree.title, cells), fontsize=11)
        sentences = [tree.verdict, tree.caption]
        if depth < max(level for level, _ in tree.root.walk()):
            sentences.append(language.say("chart.tree.pruned", n=depth))
        text = _wrap(join_sentences(sentences, language), min(int(cells * 1.3), _MOST_CAPTION))
        figure.supxlabel(text, fontsize=8, color="#555555", x=0.01, ha="left")
        save_figure(figure, Path(path), ConfigError, dpi=140)


def _fitting_depth(root: Node) -> int:
    """The number of levels below the root that can be drawn, at least one."""
    levels = [level for level, _ in root.walk()]
    depth = max(levels)
    while depth > 1 and sum(level <= depth for level in levels) > _MOST_NODES:
        depth -= 1
    return depth


def _count_rows(node: Node, depth: int) -> int:
    if not depth or not node.children:
        return 1
    return sum(_count_rows(child, depth - 1) for child in node.children)


def _draw_node(
    axes: Any, node: Node, level: int, row: int, depth: int, largest: dict[str, float]
) -> float:
    """Draw a node and all below it from a row on; returns the row of its middle."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    middles = []
    if level < depth:
        for child in node.children:
            middles.append(_draw_node(axes, child, level + 1, row, depth, largest))
            row += _count_rows(child, depth - level - 1)
    y = (middles[0] + middles[-1]) / 2 if middles else float(row)
    x = level + _TEXT
    for child, below in zip(node.children, middles, strict=False):
        bend = level + (1 + _TEXT) / 2
        points = [(x, y), (bend, y), (bend, below), (level + 0.98, below)]
        curve = Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
        share = abs(float(child.value or 0.0)) / (largest[child.unit] or 1.0)
        points_wide = 0.6 + _WIDEST * share
        # Matplotlib multiplies dashes by the width of a line.
        dashes = {"ls": (0, (5 / points_wide, 2 / points_wide))} if child.unit else {}
        look = {"ec": _colour(child), "lw": points_wide, "alpha": 0.55, **dashes}
        axes.add_patch(PathPatch(curve, fc="none", capstyle="butt", **look))
    value = "–" if node.value is None else format_brief(node.value)
    name = make_drawable([node.name], most=_MOST_NAME if middles else _MOST_LEAF)[0]
    plus = "+" if (node.value or 0.0) > 0 else ""
    colours = ("#666666", "#666666") if node.is_rest else (_colour(node), "#1d2125")
    place = {"fontsize": 8, "va": "center"}
    axes.text(level + 0.175, y, f"{plus}{value}", ha="right", color=colours[0], **place)
    axes.text(level + 0.19, y, name, color=colours[1], **place)
    return y


def _colour(node: Node) -> str:
    if node.is_rest:
        return REST
    return POSITIVE if (node.value or 0.0) >= 0 else NEGATIVE


def _wrap(text: str, cells: int) -> str:
    return "\n".join(make_drawable([line], most=400)[0] for line in wrap_text(text, cells))
