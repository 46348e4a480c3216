"""Formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from typing import Any

from glassformer.school.learn.mathml import display_mathml, inline_mathml


def _write_inline(writer: Any, node: Any) -> None:
    writer.body.append(inline_mathml(node.astext()))
    raise _skip()


def _write_block(writer: Any, node: Any) -> None:
    writer.body.append(f'<div class="formula">{display_mathml(node.astext())}</div>')
    raise _skip()


def _skip() -> Exception:
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_write_inline, None), (_write_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
