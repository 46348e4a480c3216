"""How a folder of sentence-transformers makes one vector of a text."""

from pathlib import Path

from glassformer.errors import CheckpointError
from glassformer.models.config import Pooling
from glassformer.parsing import read_json


def read_pooling(folder: Path, default: Pooling) -> Pooling:
    """The pooling in `1_Pooling/config.json`, where that is there."""
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return default
    values = read_json(path)
    chosen = sorted(n for n, on in values.items() if n.startswith("pooling_mode_") and on is True)
    known: dict[str, Pooling] = {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_cls_token": "first",
    }
    if len(chosen) != 1 or chosen[0] not in known:
        raise CheckpointError(
            f"Texts must be pooled by the mean of their tokens or by the first; {path} says "
            f"{', '.join(chosen) or 'nothing'}."
        )
    return known[chosen[0]]
