"""Direct logit attribution: what each part of a model adds to the score of a token.

The score is linear in the residual stream once norms are frozen at the values that they had. So
every part, every head, every source token and every neuron has an exact share, and the shares add
up.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.drawings import drawing_module
from glassformer.analysis.lens import label_tokens, name_positions
from glassformer.analysis.lens_data import Batch
from glassformer.analysis.neurons import read_neurons
from glassformer.analysis.token_direction import choose_row, find_direction
from glassformer.analysis.writers import Writers, compare, pull_to_inputs, read_values
from glassformer.errors import TraceError
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Part, Stream
from glassformer.tracing.trace import Trace

By = Literal["part", "head", "source", "neuron"]


@dataclass(frozen=True, slots=True)
class Share:
    """What one part, head, look or neuron adds to a score."""

    name: str  # decoder.3.self, decoder.3.self.2 (head 2), decoder.3.self.2 ← cat, decoder.3.mlp.17
    value: float
    part: str
    head: int | None = None
    source: int | None = None
    neuron: int | None = None


@dataclass(eq=False, frozen=True, kw_only=True)
class Attribution:
    """The shares of a score, and how far their sum is from what the model computed."""

    token: str
    against: str | None
    position: str
    shares: list[Share]
    logit: float  # the model's; of a difference of tokens, the difference
    frozen: list[str]  # what was held at the value that it had
    positions: list[str] = field(default_factory=list)  # the labels of the tokens read
    model: dict[str, Any] = field(default_factory=dict)  # what the trace says of it

    @property
    def remainder(self) -> float:
        """The logit less the sum of the shares; `attribute` refuses more than rounding."""
        return self.logit - sum(share.value for share in self.shares)

    def top(self, n: int = 10) -> list[Share]:
        """The n largest shares, for or against."""
        return sorted(self.shares, key=lambda share: -abs(share.value))[:n]

    def figure(
        self, path: str | Path, *, top: int = 24, order: Literal["size", "layer"] = "size"
    ) -> None:
        """Write the `top` contributions as bars, by size or in the order of layers."""
        drawing_module().attribution_figure(self, path, top=top, order=order)

    def page(
        self, path: str | Path, *, top: int = 200, order: Literal["size", "layer"] = "size"
    ) -> None:
        """Write one HTML file with the `top` contributions and their numbers."""
        drawing_module().attribution_page(self, path, top=top, order=order)

    def __str__(self) -> str:
        asked = self.token if self.against is None else f"{self.token} − {self.against}"
        lines = [f"{asked} at {self.position}: {self.logit:+.3f}"]
        lines += [f"  {share.value:+8.3f}  {share.name}" for share in self.top()]
        left = len(self.shares) - 10
        if left > 0:
            rest = sum(s.value for s in self.shares) - sum(s.value for s in self.top())
            lines.append(f"  {rest:+8.3f}  {left} others")
        lines.append(f"  {self.remainder:+8.1e}  remainder")
        return "\n".join(lines)


def attribute(
    trace: Trace,
    token: int | str,
    *,
    against: int | str | None = None,
    by: By = "part",
    position: int | None = None,
    stack: str | None = None,
    sequence: int = 0,
    model: nn.Module | None = None,
    inputs: Batch | None = None,
) -> Attribution:
    """What each part adds to the score of a token at a position, or to a difference of two.

    `by` splits attention further, "head" into heads, "source" into what each head takes from each
    token; or "neuron" the feed-forward networks into neurons. Norms on the way are frozen. Where a
    model caps its scores, the score before the cap is split; where a dense layer and a nonlinearity
    precede the unembedding, as in masked language models, the slopes of the nonlinearity are frozen
    as well. `frozen` says what was. Of a classifier, `token` is the label of a class; by default,
    `position` is the one that it reads.

    Neurons are not kept in a trace: the `model` reads the recorded tokens once more, or what
    `inputs` says it was called with, such as {"input_ids": …, "attention_mask": …} for a padded
    batch. Activations of another run do not add up, and are refused.

    >>> import glassformer as gf
    >>> model = gf.load("translator")
    >>> with gf.watch(model, residual=True) as trace:
    ...     _ = gf.translate(model, "The cat sat.", to="fr", beams=1)
    >>> found = gf.attribute(trace, "</s>", by="head")
    >>> found.top(1)[0].part, abs(found.remainder) < 1e-4
    ('decoder.2.mlp', True)
    """
    if by not in ("part", "head", "source", "neuron"):
        raise TraceError(f"by must be 'part', 'head', 'source' or 'neuron'; got {by!r}.")
    if by == "neuron" and model is None:
        raise TraceError("Neurons are not kept in a trace: pass the model= that was recorded.")
    stream = trace.residual(stack)
    readout = stream.require_readout()
    positions = name_positions(trace, stream, sequence)
    row = choose_row(stream, readout, position, sequence)
    asked = [token] if against is None else [token, against]
    seen = find_direction(stream, readout, asked, sequence=sequence, row=row)
    shares = [Share(name, value, name) for name, value in seen.constants.items()]
    parts = {part.name: part for part in stream.parts}
    if by == "neuron" and model is not None:
        neurons = read_neurons(model, trace, stream, inputs=inputs, sequence=sequence, row=row)
    else:
        neurons = {}
    writers = Writers(trace, stream, [row], sequence=sequence)
    measured = writers.measure(seen.direction[None], by_head=by in ("head", "source"))
    for writer, value in measured.items():
        name = writer.part
        if name in neurons:
            along = writers.along(name, seen.direction[None])
            shares += _split_neurons(parts[name], neurons[name], row, sequence, along)
        elif by == "source" and writer.head is not None:
            part, head = parts[name], writer.head
            of_head = writers.see_head(part, head, 0, seen.direction[None])
            shares += split_sources(writers, part, head, 0, of_head)
        else:
            shares.append(Share(writer.name, float(value), name, writer.head))
    labels = label_tokens(readout, seen.tokens)
    found = Attribution(
        token=labels[0],
        against=labels[1] if against is not None else None,
        position=positions[row],
        shares=shares,
        logit=seen.logit,
        frozen=[*seen.frozen, *name_frozen(stream, by)],
        positions=positions,
        model=trace.model,
    )
    size = sum(abs(share.value) for share in shares)
    if abs(found.remainder) > torch.finfo(stream.start.dtype).eps ** 0.5 * max(size, 1e-30):
        raise TraceError(
            f"The shares must add up to the score, {found.logit:.4g}; they miss it by "
            f"{found.remainder:.2g}, which is more than rounding. Please report this model."
        )
    return found


def split_sources(
    writers: Writers, part: Part, head: int, index: int, seen: Float[Tensor, " E"]
) -> list[Share]:
    """What one head takes from each token, at one of the positions; `seen` measures its output."""
    assert part.site is not None
    trace, site = writers.trace, writers.trace[part.site]
    number = site.head_numbers.index(head)
    values = read_values(site, writers.sequence)[number] @ seen
    values = values * writers.weights(site, index)[number]
    labels = _name_keys(trace, site, writers.sequence)
    return [
        Share(f"{part.name}.{head} ← {label}", value, part.name, head, j)
        for j, (label, value) in enumerate(zip(labels, values.tolist(), strict=True))
    ]


def _split_neurons(
    part: Part, neurons: Float[Tensor, " F"], row: int, sequence: int, along: Float[Tensor, "1 C"]
) -> list[Share]:
    """The share of each neuron: its activation times what its row of the matrix weighs."""
    writing = part.writing
    assert writing is not None
    seen, constant, written = pull_to_inputs(writing, neurons[None], along)
    apart = compare(written, part.value[sequence, [row]].double().cpu())
    if apart > torch.finfo(part.value.dtype).eps ** 0.5:
        raise TraceError(
            f"The neurons of {part.name} must write what was recorded; they miss it by "
            f"{100 * apart:.2g} %. Pass inputs=, what the model was called with."
        )
    bias = f"{part.name}.bias"
    shares = [] if not constant else [Share(bias, float(constant), bias)]
    shares += [
        Share(f"{part.name}.{i}", share, part.name, neuron=i)
        for i, share in enumerate((neurons * seen[0]).tolist())
    ]
    return shares


def _name_keys(trace: Trace, site: Site, sequence: int) -> list[str]:
    if site.keys in trace.run.texts:
        return trace.labels(site.keys, sequence=sequence)
    return [str(j) for j in range(site.shape[3])]


def name_frozen(stream: Stream, by: By) -> list[str]:
    """What shares hold at the value that it had, between the parts and the end of the stream."""
    frozen = []
    if any(not isinstance(step, Part) for step in stream.steps):
        frozen.append("the sizes that the norms of the stream divide by")
    if by in ("head", "source"):
        frozen.append("attention weights")
    if by == "neuron":
        frozen.append("the activations of neurons")
    has_norms = any(part.writing is not None and part.writing.then for part in stream.parts)
    if by != "part" and has_norms:
        frozen.append("the sizes that the norms of the parts divide by")
    return frozen
