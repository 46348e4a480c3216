"""A drawing as text, one arrow per line, read as a graph.

q, k -> scores          # several sources or targets
scores → scale → mask   # a chain of arrows
mask <- scale           # read from right to left
"""

import re
from collections.abc import Iterator
from itertools import pairwise, product

_FORWARD, _BACKWARD = r"[-–—=]+>|→|⟶|⇒", r"<[-–—=]+|←|⟵|⇐"
_ARROW = re.compile(f"({_FORWARD}|{_BACKWARD})")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_SEPARATOR = re.compile(r"[,，、+&]")
BETWEEN = " -> "


def read_drawing(text: str) -> dict[str, str]:
    """Every arrow of a drawing, and every line that is none, with what it is.

    >>> read_drawing("Q, K -> scores  # dot products")
    {'q -> scores': 'arrow', 'k -> scores': 'arrow'}
    """
    found: dict[str, str] = {}
    for raw in text.splitlines():
        line = _BULLET.sub("", raw.split("#", 1)[0]).strip().rstrip(";.。…")
        if line:
            arrows = list(_read_line(line))
            found |= dict.fromkeys(arrows, "arrow") or {line: "line"}
    return found


def _read_line(line: str) -> Iterator[str]:
    """The arrows of one line; none if it cannot be read."""
    sides, arrows = _ARROW.split(line)[::2], _ARROW.split(line)[1::2]
    nodes = [[_read_node(node) for node in _SEPARATOR.split(side)] for side in sides]
    if not all(node.replace("_", "").isalnum() for side in nodes for node in side):
        return
    for (left, right), arrow in zip(pairwise(nodes), arrows, strict=True):
        ends = (right, left) if re.fullmatch(_BACKWARD, arrow) else (left, right)
        yield from (f"{start}{BETWEEN}{end}" for start, end in product(*ends))


def _read_node(text: str) -> str:
    """A node's name as it is compared: Self-Attention is self_attention, Add1 is add_1."""
    joined = re.sub(r"[\s_-]+", "_", text.strip(" \t[]()").lower())
    return re.sub(r"(?<=[a-z])(?=\d)", "_", joined)
