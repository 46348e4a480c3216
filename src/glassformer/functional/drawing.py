"""Boolean matrices as text and back, with marks of equal width in any font."""

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError

ALLOWED, SOME, HIDDEN = "■", "▣", "·"


def draw_cells(cells: Bool[Tensor, "L S"], *, most: int = 48) -> str:
    """Rows of ■ and ·; beyond `most` rows, each mark covers a patch, ▣ if it is mixed."""
    L, S = cells.shape
    if not cells.numel():
        return f"({L} queries × {S} keys: nothing to draw)"
    share = _pool_rows(_pool_rows(cells.float(), most).T, most).T
    marks = [
        " ".join(ALLOWED if s == 1 else HIDDEN if s == 0 else SOME for s in row)
        for row in share.tolist()
    ]
    if max(L, S) > most:
        rows, cols = share.shape
        marks.append(f"({L} queries × {S} keys, one mark for about {L // rows} × {S // cols})")
    return "\n".join(marks)


def read_cells(drawing: str) -> Bool[Tensor, "L S"]:
    """Parse a drawing: rows are lines, or separated by slashes."""
    known = {ALLOWED: True, "x": True, "1": True, HIDDEN: False, ".": False, "0": False}
    lines = ["".join(line.split()) for line in drawing.replace("/", "\n").splitlines()]
    lines = [line for line in lines if line]
    strange = sorted({mark for line in lines for mark in line} - known.keys())
    if strange or len({len(line) for line in lines}) > 1:
        raise ConfigError(
            "A drawn mask has rows of equal length, of ■ x 1 (may attend) and · . 0 (may not); got "
            f"rows of {[len(line) for line in lines]} marks{f' with {strange}' if strange else ''}."
        )
    return torch.tensor([[known[mark] for mark in line] for line in lines], dtype=torch.bool)


def _pool_rows(share: Tensor, most: int) -> Tensor:
    # Means of nearly equal groups of rows; a mean is 0 or 1 only if every cell in it is.
    if len(share) <= most:
        return share
    return torch.stack([group.mean(0) for group in share.tensor_split(most)])
