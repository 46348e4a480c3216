"""The first token that two runs choose differently, and the margin by which each chose."""

from dataclasses import dataclass

from glassformer.analysis.bisection.aligned_runs import AlignedRuns
from glassformer.tracing.best_tokens import BestTokens
from glassformer.tracing.stream import Stream


@dataclass(frozen=True, kw_only=True)
class ChangedToken:
    """After `position`, the first run prefers one token, the second another."""

    position: int  # of the token after which they part
    first: str  # what each prefers, as it reads
    second: str
    margin: float | None = None  # of the first run's token before the other's, in its own logits
    other_margin: float | None = None  # of the second run's token, in the second's
    is_written: bool = False  # whether the texts themselves part here, not only what is preferred
    closest: float | None = None  # the smallest margin of the first run up to here


def find_changed_token(runs: AlignedRuns) -> ChangedToken | None:
    """Where the texts part, or where the best token of a position changes; None: nowhere."""
    for text in ("tokens",):
        n = runs.common_length(text)
        if n is None:
            return None
        best = _find_best(runs, text)
        changed = None if best is None else _compare_best(runs, best, n)
        if changed is not None:
            return changed
        words = [run.texts[text] for run in (runs.first, runs.second)]
        if 0 < n < min(each.tokens.shape[1] for each in words):
            labels = [
                each.labels[runs.sequence][n]
                if each.labels
                else str(int(each.tokens[runs.sequence, n]))
                for each in words
            ]
            return ChangedToken(position=n - 1, first=labels[0], second=labels[1], is_written=True)
    return None


def _find_best(runs: AlignedRuns, text: str) -> tuple[Stream, Stream] | None:
    for name, a in runs.first.streams.items():
        b = runs.second.streams.get(name)
        if b is not None and a.text == text:
            return a, b
    return None


def _compare_best(runs: AlignedRuns, streams: tuple[Stream, Stream], n: int) -> ChangedToken | None:
    a, b = (stream.best_tokens() for stream in streams)
    if a is None or b is None:
        return None
    positions, at_a, at_b = runs.stream_rows(*streams)
    closest = None
    for position, i, j in zip(positions, at_a, at_b, strict=True):
        own, other = a.at(runs.sequence, i), b.at(runs.sequence, j)
        margin = own[0][1] - own[1][1] if len(own) > 1 else None
        if margin is not None:
            closest = margin if closest is None else min(closest, margin)
        if own[0][0] == other[0][0]:
            continue
        texts = runs.first.texts[streams[0].text], runs.second.texts[streams[1].text]
        is_written = position == n - 1 and n < min(t.tokens.shape[1] for t in texts)
        return ChangedToken(
            position=position,
            first=a.label(own[0][0]),
            second=_label(b, a, other[0][0]),
            margin=_margin(own, own[0][0], other[0][0]),
            other_margin=_margin(other, other[0][0], own[0][0]),
            is_written=is_written,
            closest=closest,
        )
    return None


def _label(own: BestTokens, other: BestTokens, token: int) -> str:
    label = own.label(token)
    return other.label(token) if label == str(token) else label


def _margin(best: list[tuple[int, float]], token: int, other: int) -> float | None:
    """By how much a token is ahead of another; None where the other is not among the best."""
    logits = dict(best)
    return logits[token] - logits[other] if other in logits else None
