"""How to recognise a figure or page written by glassformer: only those may be overwritten."""

from typing import Any

PAGE = b'<meta name="generator" content="glassformer">'
FIGURE = b"Drawn by glassformer"


def figure_metadata(kind: str) -> dict[str, Any]:
    """The metadata that matplotlib writes into a figure: png, svg or pdf."""
    return {"Software" if kind == "png" else "Creator": FIGURE.decode()}
