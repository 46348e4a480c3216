"""Nine shapes to fill in."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, blanks


def cases(_draw: Draw) -> Iterator[Case]:
    yield from blanks("source_mask", "context", digits=0)
    yield from blanks("encoder_scores", "decoder_scores", digits=0)
    yield from blanks("cross_q", "cross_k", "cross_scores", digits=0)
    yield from blanks("hidden", "logits", digits=0)
