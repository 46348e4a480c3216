"""What lenses are made from: texts cut into windows, and the states of a model that reads them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.analysis.affine_lens import AffineLens
from glassformer.errors import TraceError
from glassformer.text.tokenizer import Tokenizer
from glassformer.tracing.context import watch
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Stream

ProgressCallback = Callable[[float], None]
Batch = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]  # what a model is called with
LONGEST = 128  # tokens of a window
_ROOM = 1 << 30  # bytes of states that are kept, rather than computed again
_MOST_MEASURED = 1024  # positions by which lenses are compared
_MOST_ROWS = 256  # read out at once: a row of scores is as wide as the vocabulary


@dataclass(eq=False, frozen=True)
class States:
    """The states of all real positions of a batch at some borders, and at the end."""

    early: dict[str, Float[Tensor, "T C"]]
    end: Float[Tensor, "T C"]
    readout: Readout

    def select(self, rows: Tensor) -> "States":
        early = {name: x[rows.to(x.device)] for name, x in self.early.items()}
        return States(early, self.end[rows.to(self.end.device)], self.readout)


@dataclass(eq=False)
class LensSource:
    """A model, and the windows of text that it reads, one a batch."""

    model: nn.Module
    windows: list[Batch]
    layers: Collection[int] | None = None  # whose ends are borders of the lens; None: all
    borders: list[str] = field(default_factory=list)
    stack: str = ""
    known: dict[int, States] = field(default_factory=dict)  # by the window's id
    room: int = _ROOM  # bytes left for them

    def read(self, window: Batch) -> States:
        """Run the model on a window, unless its states are known, and gather them."""
        if id(window) in self.known:
            return self.known[id(window)]
        stream = self.watch(window)
        keep = find_real(window, stream)
        states = {name: x[keep] for name, x in stream.states()}
        end = states[stream.borders[-1]]
        found = States({n: states[n] for n in self.borders}, end, stream.require_readout())
        n_bytes = (1 + len(self.borders)) * end.nbytes
        if n_bytes <= self.room:
            self.known[id(window)] = found
            self.room -= n_bytes
        return found

    def watch(self, window: Batch) -> Stream:
        """The residual stream of the model that reads a window."""
        with evaluating(self.model), torch.no_grad(), watch(self.model, residual=True) as trace:
            call_model(self.model, window)
        stream = trace.residual()
        stream.require_readout()
        if not self.borders:
            self.stack, self.borders = stream.name, select_borders(stream, self.layers)
        return stream


def cut_windows(
    model: nn.Module, texts: Sequence[str | Batch], tokenizer: Any, length: int
) -> list[Batch]:
    """Texts as windows of at most `length` tokens, or what the model can read; batches as is."""
    if isinstance(texts, str):
        raise TraceError("texts must be a list of texts or batches; got a single text.")
    if length < 2:
        raise TraceError(f"length must be at least 2 tokens; got length={length}.")
    tokenizer = getattr(model, "tokenizer", None) if tokenizer is None else tokenizer
    config = getattr(model, "config", None)
    limits = (getattr(config, name, None) for name in ("max_len", "max_position_embeddings"))
    length = min([length, *(limit for limit in limits if isinstance(limit, int) and limit > 1)])
    windows: list[Batch] = []
    for text in texts:
        if not isinstance(text, str):
            windows.append(text)
            continue
        if tokenizer is None:
            raise TraceError("Reading texts needs a tokenizer; pass tokenizer=, or token batches.")
        tokens = torch.tensor(_encode(tokenizer, text), dtype=torch.long)
        windows += [part[None] for part in tokens.split(length) if len(part) > 1]
    return windows


def _encode(tokenizer: Any, text: str) -> list[int]:
    inner = getattr(tokenizer, "tokenizer", tokenizer)
    if isinstance(inner, Tokenizer):
        return inner.encode(text)
    return list(inner(text, verbose=False)["input_ids"])  # longer than the model is no mistake here


def call_model(model: nn.Module, batch: Batch) -> Any:
    """Run a model on a batch, moved to where the model is."""
    on = next(model.parameters()).device
    if isinstance(batch, Tensor):
        return model(batch.to(on))
    if isinstance(batch, Mapping):
        return model(**{name: each.to(on) for name, each in batch.items()})
    return model(*(each.to(on) for each in batch))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout; every module is afterwards in the mode that it was in."""
    training = [module for module in model.modules() if module.training]
    try:
        model.eval()
        yield
    finally:
        for module in training:
            module.training = True


def select_borders(stream: Stream, layers: Collection[int] | None) -> list[str]:
    """The start and the ends of the blocks but the last; with `layers`, the ends of these."""
    ends = {part.layer: part.name for part in stream.parts}
    last = max(ends)
    if layers is None:
        return [f"{stream.name}.start", *(name for n, name in ends.items() if n != last)]
    wrong = sorted(n for n in layers if n not in ends or n == last)
    if wrong or not layers:
        got = f"layer {wrong[0]}" if wrong else "none"
        raise TraceError(f"A lens maps the ends of layers 0 … {last - 1}; got {got}.")
    return [name for n, name in ends.items() if n in layers]


def find_real(window: Batch, stream: Stream) -> Bool[Tensor, "B L"]:
    """Which positions are no padding."""
    B, L, _ = stream.start.shape
    name = "attention_mask"
    if isinstance(window, Mapping):
        is_both = any(each.startswith("decoder_") for each in window)
        mask = window.get(f"decoder_{name}" if is_both else name)
        if mask is not None and mask.shape == (B, L):
            return mask.bool().to(stream.start.device)
    return torch.ones(B, L, dtype=torch.bool, device=stream.start.device)


def gather_states(source: LensSource, windows: list[Batch], generator: torch.Generator) -> States:
    """The states of some positions of these windows."""
    n = -(-_MOST_MEASURED // len(windows))
    return join_states([sample_states(source.read(w), n, generator) for w in windows])


def sample_states(states: States, n: int, generator: torch.Generator) -> States:
    """At most n positions, drawn at random."""
    return states.select(torch.randperm(len(states.end), generator=generator)[:n])


def join_states(parts: list[States]) -> States:
    """All their positions."""
    early = {name: torch.cat([each.early[name] for each in parts]) for name in parts[0].early}
    return States(early, torch.cat([each.end for each in parts]), parts[0].readout)


def measure_lens(lens: AffineLens, states: States) -> AffineLens:
    """The lens with its divergences, and those of the logit lens, over these positions."""
    n = len(states.end)
    with torch.no_grad():
        plain, mapped = measure_divergence(states), measure_divergence(states, lens.map)
    return replace(
        lens,
        plain=[plain[name] / n for name in lens.borders],
        mapped=[mapped[name] / n for name in lens.borders],
    )


def measure_divergence(
    states: States, mapped: Callable[[str, Tensor], Tensor] | None = None
) -> dict[str, float]:
    """The sum over positions of Σ p_end log(p_end / p), for each border, in nats."""
    total = dict.fromkeys(states.early, 0.0)
    for rows in torch.arange(len(states.end)).split(_MOST_ROWS):
        some = states.select(rows)
        end = read_logs(some.readout, some.end)
        for name, x in some.early.items():
            logs = read_logs(some.readout, x if mapped is None else mapped(name, x))
            total[name] += float(diverge(end, logs).sum())
    return total


def read_logs(readout: Readout, x: Float[Tensor, "T C"]) -> Float[Tensor, "T V"]:
    """Log-probabilities, to be differentiated by x."""
    return readout.scores(x[None])[0].float().log_softmax(-1)


def diverge(end: Float[Tensor, "T V"], logs: Float[Tensor, "T V"]) -> Float[Tensor, " T"]:
    """The Kullback–Leibler divergence of each row, in nats."""
    return (end.exp() * (end - logs)).nan_to_num(0.0).sum(-1)
