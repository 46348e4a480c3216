"""Why a model wrote a token: from its logit down to heads, tokens, and what wrote q, k and v there.

Every edge is an exact product of recorded numbers, with what is frozen stated, and what is left out
is shown as the rest. Direct contributions are not causes, so a verdict follows: the named parts
alone are kept, or alone removed, the model runs, and the numbers say how much they carry.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any, Literal, TypeVar

from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.attribution import Share, name_frozen, split_sources
from glassformer.analysis.drawings import drawing_module
from glassformer.analysis.lens import label_tokens, name_positions
from glassformer.analysis.looks import LookReader, SiteLooks, Split
from glassformer.analysis.token_direction import choose_row, find_direction
from glassformer.analysis.verdicts import Verdict, judge
from glassformer.analysis.vocabulary import resolve_token
from glassformer.analysis.writers import Writer, Writers
from glassformer.errors import GlassformerError, TraceError
from glassformer.tracing import Trace
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Part, Stream

T = TypeVar("T")
_LEAST = 0.02  # of what is split: smaller terms are left to the rest
Kind = Literal["writer", "look", "value", "score", "query", "key"]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A node of the tree: what it adds to the number above it, and what that is a sum of.

    - writer: a head or another part, by what it adds to the stream
    - look: a token that the head above takes something from
    - value: the same number, by what wrote the value at that token
    - score: how far the score of that look is above the mean of the keys that the query may see
    - query: what a writer of the query adds to that score; key: what it adds by one of the keys
    """

    kind: Kind
    name: str
    value: float
    part: str = ""  # of a writer
    head: int | None = None
    position: int | None = None  # of a token
    weight: float | None = None  # of a look: the attention weight
    reasons: tuple["Reason", ...] = ()  # the largest
    rest: float = 0.0  # all others, if there are any
    note: str = ""  # why it cannot be split

    def walk(self) -> Iterator["Reason"]:
        """This node and all below it."""
        yield self
        for each in self.reasons:
            yield from each.walk()


@dataclass(frozen=True, kw_only=True)
class Why:
    """The chain of one prediction."""

    token: str
    against: str
    position: str
    logit: float  # of the token less that of the other
    reasons: list[Reason]
    rest: float  # what all others add: heads, feed-forwards, embedding, biases
    remainder: float  # rounding
    frozen: list[str]
    named: list[str]  # the heads and feed-forwards of this stack in the whole tree
    verdict: Verdict | None
    without_verdict: str = ""  # why there is none

    def figure(self, path: str | Path) -> None:
        """Write the tree, PNG, SVG or PDF: edges as wide as what they carry, and the verdict."""
        drawing_module().why_figure(self, path)

    def page(self, path: str | Path) -> None:
        """Write one HTML file with the tree as a graph to click down."""
        drawing_module().why_page(self, path)

    def __str__(self) -> str:
        lines = [f"{self.token} − {self.against} after {self.position}: {self.logit:+.3f}"]
        for reason in self.reasons:
            lines += _print_reason(reason, "  ")
        lines.append(f"  {self.rest:+8.3f}  everything else")
        found = self.verdict
        if found is None:
            lines.append(f"  not tested: {self.without_verdict}")
        else:
            lines += [f"  {line}" for line in _print_verdict(found)]
        return "\n".join(lines)

    __repr__ = __str__


def _print_verdict(found: Verdict) -> Iterator[str]:
    if not found.is_telling:
        yield f"not tested: with every part removed the difference is still {found.none:+.3f}"
        return
    yield (
        f"kept alone these {found.n_parts} parts carry {found.carried:.0%} of the difference, "
        f"without them {found.needed:.0%} of it is lost"
    )
    if n := len(found.random_kept):
        yield f"of {n} random sets, {found.as_close} come as close, {found.as_needed} cost as much"
    enough = "enough by themselves" if found.is_enough else "not enough by themselves"
    yield f"{enough}, {'needed' if found.is_needed else 'not shown to be needed'}"


def _print_reason(reason: Reason, indent: str) -> Iterator[str]:
    said = {
        "writer": reason.name,
        "look": f"{reason.name} ({reason.position})",
        "value": "the value there, written by",
        "score": "score above the mean, query written by",
        "query": f"{reason.name}, key written by",
        "key": reason.name,
    }[reason.kind]
    yield f"{indent}{reason.value:+8.3f}  {said}"
    for each in reason.reasons:
        yield from _print_reason(each, indent + "    ")
    if reason.reasons and reason.kind != "look":
        yield f"{indent}    {reason.rest:+8.3f}  others"
    if reason.note:
        yield f"{indent}    not split: {reason.note}"


def why(
    trace: Trace,
    token: int | str | None = None,
    *,
    against: int | str | None = None,
    position: int | None = None,
    top: int = 8,
    branches: int = 3,
    depth: int = 2,
    how: Literal["mean", "zero"] = "mean",
    reference: Trace | None = None,
    draws: int = 10,
    judged: bool = True,
    stack: str | None = None,
    sequence: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Why:
    """Why a model prefers one token to another: what wrote it, from which tokens, and a verdict.

    Without `token`, the most probable one at `position`, the last or what a classifier reads;
    without `against`, the most probable other one. The `top` heads and feed-forwards are named by
    the size of what they add to the difference.
    Below each, the largest `branches`, `depth` levels in all: 1 is these parts, 2 the tokens that
    heads take something from, 3 what wrote the value there, and the query and the key that opened
    the look; 4 the tokens that those heads read, and so on.

    The verdict runs the model with the named parts of this stack kept alone, and with them removed,
    by mean or zero ablation at all positions but the first; it needs a trace of one sequence, and
    the model. Means are those of this text, which may know the answer, or of `reference`, a trace
    of another. `draws` random sets of as many parts are removed and kept for comparison. With
    judged=False there is no verdict, and the model does not run. `progress` receives the share of
    the tree that is done.

    >>> import torch
    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = model(torch.tensor([model.tokenizer.encode("The cat sat on the")]))
    >>> found = gf.why(trace, top=4)
    >>> len(found.reasons), found.verdict is not None
    (4, True)
    """
    if how not in ("mean", "zero"):
        raise TraceError(f"how must be 'mean' or 'zero'; got {how!r}.")
    if draws < 0:
        raise TraceError(f"draws must be at least 0; got draws={draws}.")
    if min(top, branches, depth) < 1:
        raise TraceError(
            f"top, branches and depth must be at least 1; got top={top}, branches={branches}, "
            f"depth={depth}."
        )
    stream = trace.residual(stack)
    readout = stream.require_readout()
    row = choose_row(stream, readout, position, sequence)
    asked = _choose_tokens(stream, readout, token, against, row, sequence)
    positions = name_positions(trace, stream, sequence)
    seen = find_direction(stream, readout, list(asked), sequence=sequence, row=row)
    split = Split.of(
        seen.logit,
        Writers(trace, stream, [row], sequence=sequence),
        seen.direction[None],
        0,
        fsum(seen.constants.values()),
        "The difference of the logits",
    )
    tree = _Tree(trace, sequence, branches, progress or (lambda _: None))
    kinds = {part.name: part.kind for part in stream.parts}
    parts = {w: v for w, v in split.shares.items() if _is_named(w, kinds)}
    chosen = sorted(parts, key=lambda writer: -abs(parts[writer]))[:top]
    reasons = tuple(
        reason
        for i, writer in enumerate(chosen)
        for reason in tree.expand_part(split, writer, depth, i / len(chosen))
    )
    named = dict.fromkeys(
        Writer(each.part, each.head)
        for reason in reasons
        for each in reason.walk()
        if each.kind in ("writer", "query", "key") and kinds.get(each.part) is not None
    )
    verdict, reason = None, "" if judged else "no verdict was asked for"
    try:
        if judged:
            verdict = judge(
                trace, stream, list(named), asked, row, how, draws=draws, reference=reference
            )
    except GlassformerError as error:
        reason = str(error).rstrip(".")
    labels = label_tokens(readout, seen.tokens)
    total = fsum(split.shares.values()) + split.constant
    return Why(
        token=labels[0],
        against=labels[1],
        position=positions[row],
        logit=seen.logit,
        reasons=list(reasons),
        rest=total - fsum(each.value for each in reasons),
        remainder=seen.logit - total,
        frozen=[*seen.frozen, *tree.name_frozen(stream, depth)],
        named=[writer.name for writer in named],
        verdict=verdict,
        without_verdict=reason,
    )


def _choose_tokens(
    stream: Stream,
    readout: Readout,
    token: int | str | None,
    against: int | str | None,
    row: int,
    sequence: int,
) -> tuple[int, int]:
    """The tokens asked for; where one is not given, the most probable that is left."""
    logits = readout(stream.end[sequence : sequence + 1, [row]])[0, 0]
    best = logits.topk(2).indices.tolist()
    chosen = [
        None if each is None else resolve_token(each, len(logits), readout.vocabulary)
        for each in (token, against)
    ]
    for i, each in enumerate(chosen):
        if each is None:
            chosen[i] = next(j for j in best if j not in chosen)
    first, second = chosen
    assert first is not None and second is not None
    return first, second


def _is_named(writer: Writer, kinds: dict[str, str]) -> bool:
    """Whether it can be removed by itself: a head, or a feed-forward network."""
    return writer.head is not None or kinds.get(writer.part) in ("mlp", "mixer")


def _largest(shares: dict[T, float], n: int) -> list[T]:
    """The n largest that count for something; at least one."""
    ranked = sorted(shares, key=lambda each: -abs(shares[each]))
    least = _LEAST * fsum(map(abs, shares.values()))
    return [each for i, each in enumerate(ranked[:n]) if not i or abs(shares[each]) >= least]


class _Tree:
    """Expands numbers into what they are sums of."""

    def __init__(
        self, trace: Trace, sequence: int, branches: int, progress: Callable[[float], None]
    ) -> None:
        self.trace, self.sequence, self.branches = trace, sequence, branches
        self.progress, self.share = progress, 0.0
        self.reader: LookReader | None = None
        self.frozen: set[str] = set()

    def expand_part(
        self, split: Split, writer: Writer, depth: int, share: float
    ) -> tuple[Reason, ...]:
        """One of the named parts, after this share of all of them."""
        self.share = share
        return self.expand(split, [writer], depth)

    def expand(
        self, split: Split, writers: list[Writer], depth: int, kind: Kind = "writer"
    ) -> tuple[Reason, ...]:
        """The reasons that these writers are of a number, each with what is below it."""
        return tuple(
            Reason(
                kind=kind,
                name=writer.name,
                value=split.shares[writer],
                part=writer.part,
                head=writer.head,
                **self._expand_head(split, writer, depth),
            )
            for writer in writers
        )

    def _expand_head(self, split: Split, writer: Writer, depth: int) -> dict[str, Any]:
        """The tokens that a head takes most from, and what all others give."""
        if writer.head is None or depth < 2:
            return {}
        writers, part = split.writers, split.writers.parts[writer.part]
        seen = writers.see_head(part, writer.head, split.index, split.along)
        looks = split_sources(writers, part, writer.head, split.index, seen)
        shares = {i: look.value for i, look in enumerate(looks)}
        chosen = [looks[i] for i in _largest(shares, self.branches)]
        return {
            "reasons": tuple(self._expand_look(split, part, look, seen, depth) for look in chosen),
            "rest": split.shares[writer] - fsum(look.value for look in chosen),
        }

    def _expand_look(
        self, split: Split, part: Part, look: Share, seen: Float[Tensor, " E"], depth: int
    ) -> Reason:
        self.progress(self.share)  # often: whoever waits may give up
        assert part.site is not None and look.source is not None and look.head is not None
        site, rows = self.trace[part.site], split.writers.rows
        row = split.index if rows is None else rows[split.index]
        number = site.head_numbers.index(look.head)
        found = Reason(
            kind="look",
            name=look.name.partition(" ← ")[2],
            value=look.value,
            position=look.source,
            weight=float(split.writers.weights(site, split.index)[number, look.source]),
        )
        if depth < 3:
            return found
        try:
            self.reader = self.reader or LookReader(self.trace, sequence=self.sequence)
            looks = self.reader.open(site.name)
            self.frozen.update(looks.frozen)
            value = looks.split_value(look.head, row, look.source, seen)
            below = [
                self._as_reason("value", value, depth - 2),
                self._explain_score(looks, look.head, row, look.source, depth - 2),
            ]
            return replace(found, reasons=tuple(below))
        except GlassformerError as error:
            return replace(found, note=str(error).rstrip("."))

    def _explain_score(self, looks: SiteLooks, head: int, row: int, key: int, depth: int) -> Reason:
        """The score above the mean: by writers of the query, and each of these by those of keys."""
        by_query = looks.split_query(head, row, key)
        queries = []
        for writer in _largest(by_query.shares, self.branches):
            by_key = looks.split_key(head, row, key, looks.read_query(head, row, writer))
            node = self._as_reason("query", by_key, depth, name=writer.name)
            queries.append(replace(node, part=writer.part, head=writer.head))
        return Reason(
            kind="score",
            name="",
            value=by_query.value,
            reasons=tuple(queries),
            rest=by_query.value - fsum(each.value for each in queries),
        )

    def _as_reason(self, kind: Kind, split: Split, depth: int, name: str = "") -> Reason:
        below: Kind = "key" if kind == "query" else "writer"
        reasons = self.expand(split, _largest(split.shares, self.branches), depth, below)
        rest = split.value - fsum(each.value for each in reasons)
        return Reason(kind=kind, name=name, value=split.value, reasons=reasons, rest=rest)

    def name_frozen(self, stream: Stream, depth: int) -> list[str]:
        """What is held at the value that it had, beside what the readout holds."""
        names = name_frozen(stream, "part" if depth == 1 else "source")
        if depth > 2:
            names.append("the sizes that the norms before attention divide by")
        return [*names, *sorted(self.frozen)]
