"""Nine shapes to fill in."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, filled_in


def cases(_draw: Draw) -> Iterator[Case]:
    yield from filled_in("source_mask", "context", digits=0)
    yield from filled_in("encoder_scores", "decoder_scores", digits=0)
    yield from filled_in("cross_q", "cross_k", "cross_scores", digits=0)
    yield from filled_in("hidden", "logits", digits=0)
