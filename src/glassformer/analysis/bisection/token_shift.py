"""Learned positions that are off by some places: seen where a text repeats itself."""

from glassformer.analysis.bisection.aligned_runs import AlignedRuns
from glassformer.analysis.bisection.kinds import EXPLAINED, Kind
from glassformer.analysis.bisection.stages import Stage

_MOST_PAIRS = 64


def find_token_shift(runs: AlignedRuns, stage: Stage) -> Kind | None:
    """The start of b has at position p the place of p + s.

    An embedding is token + place. Where the tokens at p and p′ are the same, and those at p + s and
    p′ + s, differences cancel the tokens: b[p] − b[p′] = a[p + s] − a[p′ + s].
    """
    text = runs.first.texts.get("tokens")
    if text is None or stage.a is None or stage.b is None:
        return None
    a, b, n = stage.a[0], stage.b[0], stage.a.shape[1]
    if stage.positions != list(range(n)):
        return None
    tokens = text.tokens[runs.sequence, :n].tolist()
    for by in (1, -1, 2, -2):
        rows = [p for p in range(n) if 0 <= p + by < n]
        pairs = [
            (p, r)
            for p in rows
            for r in rows
            if p < r and tokens[p] == tokens[r] and tokens[p + by] == tokens[r + by]
        ][:_MOST_PAIRS]
        if not pairs:
            continue
        p, r = (list(each) for each in zip(*pairs, strict=True))
        theirs = b[p] - b[r]
        ours = a[[i + by for i in p]] - a[[i + by for i in r]]
        whole = (theirs - (a[p] - a[r])).norm()
        left = float((theirs - ours).norm() / whole.clamp(min=1e-300))
        if left < EXPLAINED:
            return Kind(name="places", values={"by": by, "pairs": len(pairs)}, left=left)
    return None
