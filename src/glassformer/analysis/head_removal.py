"""What each head is worth on a text: it is removed, the model runs, and its predictions change.

Where a head looks is a description. Whether the model depends on it is measured here: every head by
itself is replaced by its mean over the text (or by zero), and the change of all predictions is
counted. A head that another one can stand in for seems worth little; that is how ablation is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing import Ablate, Trace
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Stream
from glassformer.tracing.variants import Variants

_MOST_LOGITS = 1 << 26  # held at once
Report = Callable[[int, int], None]  # how many of how many heads are done


@dataclass(eq=False, frozen=True, kw_only=True)
class HeadEffects:
    """What removing each head by itself does to the predictions on one text."""

    heads: list[tuple[str, int]]  # site and number
    divergence: Float[Tensor, " N"]  # KL from the model's own predictions, in nats, mean over rows
    loss: Float[Tensor, " N"] | None  # how much worse the text's next tokens are predicted, in nats
    how: Literal["mean", "zero"]

    def of(self, site: str, head: int) -> float:
        """The divergence of one head."""
        if (site, head) not in self.heads:
            raise TraceError(f"There are {len(self.heads)} heads; got {site}, head {head}.")
        return float(self.divergence[self.heads.index((site, head))])

    def rank(self, site: str, head: int) -> int:
        """How many heads have at least its effect: 1 is the largest."""
        return int((self.divergence >= self.of(site, head)).sum())

    def top(self, n: int = 10) -> list[tuple[str, int, float]]:
        """The heads with the largest effects: site, head, divergence."""
        best = self.divergence.argsort(descending=True)[:n].tolist()
        return [(*self.heads[i], float(self.divergence[i])) for i in best]

    def __str__(self) -> str:
        lines = [f"{len(self.heads)} heads, each removed by {self.how} ablation; KL in nats:"]
        lines += [f"  {value:8.4f}  {site}.{head}" for site, head, value in self.top()]
        return "\n".join(lines)

    __repr__ = __str__


def head_effects(
    trace: Trace,
    *,
    how: Literal["mean", "zero"] = "mean",
    stack: str | None = None,
    batch: int = 16,
    report: Report | None = None,
) -> HeadEffects:
    """Remove every recorded head by itself, and measure how the predictions on the text change.

    The trace is of one sequence, recorded with residual=True, and its model must still exist. Heads
    of an encoder count by what the decoder writes. `stack` is the one whose predictions are read.

    >>> import torch
    >>> import glassformer as gf
    >>> model = gf.load("writer")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = model(torch.tensor([model.tokenizer.encode("The king and the queen and the king")]))
    >>> found = gf.head_effects(trace)
    >>> len(found.heads), bool((found.divergence >= 0).all())
    (20, True)
    """
    if how not in ("mean", "zero"):
        raise TraceError(f"how must be 'mean' or 'zero'; got {how!r}.")
    if batch < 1:
        raise TraceError(f"batch must be at least 1; got batch={batch}.")
    stream = trace.residual(stack)
    readout = stream.require_readout()
    sites = [trace[name] for name in trace.names]
    heads = [(site.name, h) for site in sites if site.heads is None for h in site.head_numbers]
    if not heads:
        raise TraceError("No attention was recorded whole; record it without heads=.")
    following = _find_following(trace, stream)
    own = _predict(readout, stream.end)[0]
    divergences, losses = [], []
    of = trace if how == "mean" else None
    n = max(_MOST_LOGITS // own.numel(), 1)
    with Variants(trace, stack=stream.name) as variants:
        for start in range(0, len(heads), batch):
            some = heads[start : start + batch]
            ends = variants.run([Ablate(site, head=h, how=how, of=of) for site, h in some])
            for few in ends.split(n):
                logs = _predict(readout, few)
                divergences.append((own.exp() * (own - logs)).sum(-1).mean(-1))
                if following is not None:
                    losses.append(_score(own[None], following) - _score(logs, following))
            if report is not None:
                report(start + len(some), len(heads))
    return HeadEffects(
        heads=heads,
        divergence=torch.cat(divergences).clamp(min=0).cpu(),
        loss=torch.cat(losses).cpu() if losses else None,
        how=how,
    )


def _predict(readout: Readout, states: Float[Tensor, "N L C"]) -> Float[Tensor, "N L V"]:
    return readout(states).double().log_softmax(-1)


def _find_following(trace: Trace, stream: Stream) -> Int[Tensor, " M"] | None:
    """The tokens after each position but the last, where the model predicts them."""
    text = trace.run.texts.get(stream.text)
    if stream.name != "decoder" or stream.rows is not None or text is None:
        return None
    tokens = text.tokens[0]
    if len(tokens) < 2 or bool((tokens < 0).any()):
        return None
    return tokens[1:].to(stream.start.device)


def _score(logs: Float[Tensor, "N L V"], following: Int[Tensor, " M"]) -> Float[Tensor, " N"]:
    """The mean log-probability of the next token."""
    rows = torch.arange(len(following), device=logs.device)
    return logs[:, rows, following].mean(-1)
