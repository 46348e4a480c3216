"""A drawing of a mask: rows are queries, columns are keys."""

from rich.text import Text

from glassformer.functional import Mask
from glassformer.functional.drawing import ALLOWED, HIDDEN, SOME


def draw_mask(
    mask: Mask, n_queries: int, n_keys: int, *, sequence: int = 0, most: int = 48
) -> Text:
    """■ may attend, · may not; beyond `most` rows or columns a mark covers several, ▣ if mixed.

    >>> from glassformer import Causal
    >>> print(draw_mask(Causal(), 2, 3))
    ■ ■ ·
    ■ ■ ■
    """
    drawing = mask.draw(n_queries, n_keys, batch=sequence, most=most)
    # The mask's own drawing may end with a remark in English; the caller prints it in the reader's
    # language.
    marks = Text("\n".join(drawing.splitlines()[: min(n_queries, most)]))
    marks.no_wrap, marks.overflow = True, "crop"
    marks.highlight_regex(ALLOWED, "bold cyan")
    marks.highlight_regex(SOME, "cyan")
    marks.highlight_regex(HIDDEN, "dim")
    return marks
