"""The tokens that a model puts first at every position, with their logits: small enough to save."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.tracing.readout import Readout

N_BEST = 8  # kept for each position
_MOST_CELLS = 1 << 24  # of logits held at once


@dataclass(eq=False, frozen=True, kw_only=True)
class BestTokens:
    """The best tokens at each position, the first first; `labels` says how they read."""

    tokens: Int[Tensor, "B L k"]
    logits: Float[Tensor, "B L k"]
    labels: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, readout: Readout, end: Float[Tensor, "B L C"]) -> "BestTokens":
        """Read out the end of a stream, some rows at a time."""
        B, L, _ = end.shape
        n_tokens = readout(end[:1, :1]).shape[-1] if L and B else 1
        step = max(1, _MOST_CELLS // (B * n_tokens))
        found = [
            readout(end[:, start : start + step]).float().topk(min(N_BEST, n_tokens), dim=-1)
            for start in range(0, L, step)
        ]
        tokens = torch.cat([each.indices for each in found], dim=1).cpu()
        logits = torch.cat([each.values for each in found], dim=1).cpu()
        return cls(tokens=tokens, logits=logits, labels=_label(readout, tokens))

    def at(self, sequence: int, row: int) -> list[tuple[int, float]]:
        """The best tokens of one position and their logits."""
        tokens, logits = (t[sequence, row].tolist() for t in (self.tokens, self.logits))
        return list(zip(tokens, logits, strict=True))

    def label(self, token: int) -> str:
        """How a token reads, or its number where that is not known."""
        return self.labels.get(token, str(token))


def _label(readout: Readout, tokens: Tensor) -> dict[int, str]:
    from glassformer.tracing.text_labels import label_rows  # which needs streams itself

    distinct = tokens.unique()
    if readout.tokenizer is None or not len(distinct):
        return {}
    rows = label_rows(readout.tokenizer, distinct[:, None])
    return {int(token): row[0] for token, row in zip(distinct, rows, strict=True)}
