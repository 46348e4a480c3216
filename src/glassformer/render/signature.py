"""By what a figure or a page of ours is known again: only those are replaced without a question."""

from typing import Any

PAGE = b'<meta name="generator" content="glassformer">'
FIGURE = b"Drawn by glassformer"


def figure_metadata(kind: str) -> dict[str, Any]:
    """What matplotlib writes into a figure of this kind: png, svg or pdf."""
    return {"Software" if kind == "png" else "Creator": FIGURE.decode()}
