"""What was recorded of a model: runs, each with its sites and its texts."""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple
from weakref import ref

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.tracing.site import Site
from glassformer.tracing.stream import Stream


@dataclass(eq=False)
class TracedText:
    """The tokens of one text for every sequence, and how they read."""

    tokens: Int[Tensor, "B L"]
    labels: list[list[str]]  # one for each token; empty without a tokenizer
    # The token written after the last one, for each sequence; empty where none is known.
    following: list[str] = field(default_factory=list)


class ModelCall(NamedTuple):
    """How a model was called: enough to call it once more, while it exists."""

    model: ref
    args: tuple[Any, ...] | None  # None: a method of its own, as generation calls it
    options: dict[str, Any]


@dataclass(eq=False)
class Run:
    """One pass of a model over a text, its generation included."""

    sites: dict[str, Site] = field(default_factory=dict)
    texts: dict[str, TracedText] = field(default_factory=dict)  # "tokens", "source"
    refusals: dict[str, str] = field(
        default_factory=dict
    )  # sites that could not be recorded, and why
    streams: dict[str, Stream] = field(default_factory=dict)  # residual streams, by stack
    calls: list[ModelCall] = field(default_factory=list)  # how the model was called; not saved


class Trace:
    """Everything that was recorded; indexing finds a site of the last run by its name.

    ::

        trace["decoder.2.cross"].weights(head=3)
        for site in trace: ...
        trace.save("cat.trace"); trace.append("cat.trace"); Trace.load("cat.trace")
        trace.show(); trace.figure("cat.png"); trace.page("cat.html")

    >>> import glassformer as gf
    >>> model = gf.load("reader")
    >>> with gf.watch(model) as trace:
    ...     _ = gf.embed(model, ["The cat sat."])
    >>> len(trace.names), trace["encoder.0.self"].shape
    (5, (1, 4, 6, 6))
    """

    def __init__(
        self,
        runs: list[Run] | None = None,
        model: dict[str, Any] | None = None,
        *,
        assemble: Callable[[], None] | None = None,
    ) -> None:
        self.recorded = [] if runs is None else runs  # as they were last assembled
        self.model = {} if model is None else model
        self.assemble = assemble  # the recorder's, while the trace is still growing
        self.part: tuple[int, int] | None = None  # its rank of how many, where others hold the rest
        self.holds: Any = None  # a model that must exist as long as the trace, if its owner says so

    @property
    def runs(self) -> list[Run]:
        """The runs, with everything that has been recorded so far."""
        if self.assemble is not None:
            self.assemble()
        return self.recorded

    @property
    def run(self) -> Run:
        """The last run."""
        if not self.runs:
            raise TraceError(
                "A trace must hold a run to be looked at; nothing has passed through the model yet."
            )
        return self.runs[-1]

    def only(self, run: int) -> "Trace":
        """One run alone, counted from 0, or from the end: only(-1) is the last."""
        runs = self.runs
        if not -len(runs) <= run < len(runs):
            there = f"runs 0 … {len(runs) - 1}" if runs else "no runs"
            raise TraceError(f"This trace has {there}; got run={run}.")
        return Trace([runs[run]], self.model)

    @property
    def names(self) -> list[str]:
        """The sites of the last run, in the order in which they ran."""
        return list(self.run.sites)

    def __getitem__(self, name: str) -> Site:
        sites = self.run.sites
        if not isinstance(name, str):
            raise TraceError(
                f"A site is found by its name, one of {_enumerate(list(sites))}; got {name!r}."
            )
        if name in sites:
            return sites[name]
        if name in self.run.refusals:
            why = _escape(self.run.refusals[name])
            raise TraceError(f"{_escape(name)} could not be recorded: {why}.")
        if self.run.refusals and not sites:
            whole, why = next(iter(self.run.refusals.items()))
            raise TraceError(f"{_escape(whole)} could not be recorded: {_escape(why)}.")
        near = difflib.get_close_matches(name, sites, n=1)
        raise TraceError(
            f"A site must be one of {_enumerate(list(sites))}; got {name!r}."
            + (f" Did you mean {near[0]!r}?" if near else "")
        )

    def __iter__(self) -> Iterator[Site]:
        return iter(self.run.sites.values())

    def __len__(self) -> int:
        return len(self.run.sites) if self.runs else 0

    def residual(self, stack: str | None = None) -> Stream:
        """The residual stream of a stack (default: the last one), recorded with residual=True."""
        streams, refusals = self.run.streams, self.run.refusals
        if stack is None and streams:
            return list(streams.values())[-1]
        if stack in streams:
            return streams[stack]
        refused = [name for name in refusals if name.endswith(".stream")]
        for name in refused if stack is None else (f"{stack}.stream",):
            if name in refusals:
                raise TraceError(
                    f"The residual stream of {_escape(name.removesuffix('.stream'))} could not be "
                    f"recorded: {_escape(refusals[name])}."
                )
        if not streams:
            raise TraceError(
                "This trace holds no residual stream; record it by gf.watch(model, residual=True)."
            )
        raise TraceError(f"The streams of this run are {_enumerate(list(streams))}; got {stack!r}.")

    def logits(self, stack: str | None = None) -> Float[Tensor, "B L V"]:
        """The scores that the model gave, from the end of its residual stream, to the bit.

        Of a generated text all positions are read out, not only the last of each step.
        """
        stream = self.residual(stack)
        readout = stream.require_readout()
        return readout(stream.end)

    def labels(self, text: str = "tokens", *, sequence: int = 0) -> list[str]:
        """The labels of a text of the last run, or the token ids where there are none."""
        words = self.run.texts.get(text)
        if words is None:
            known = _enumerate(list(self.run.texts)) or "unknown"
            raise TraceError(f"The texts of this run are {known}; got {text!r}.")
        if words.labels:
            return words.labels[sequence]
        return [str(token) for token in words.tokens[sequence].tolist()]

    def save(self, path: str | Path) -> None:
        """Write one file, whole or not at all; of a sharded model, each rank one into a folder."""
        from glassformer.tracing.files import save_trace

        save_trace(self, Path(path))

    def append(self, path: str | Path) -> None:
        """Add the runs to a file of the same model, or create it; whole or not at all."""
        from glassformer.tracing.files import append_trace

        append_trace(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read a trace that `save` wrote, or all ranks together."""
        from glassformer.tracing.files import load_trace

        return load_trace(Path(path))

    def show(
        self,
        *,
        site: str | None = None,
        head: int | None = None,
        run: int | None = None,
        sequence: int = 0,
        pool: Literal["max", "mean"] = "max",
        scale: Literal["quantile", "row"] = "quantile",
        first_key: bool = True,
    ) -> None:
        """Print a picture of a run and one of its heads (default: the last, the most telling).

        `pool`, `scale` and `first_key` are those of `figure`.
        """
        how: Any = {"pool": pool, "scale": scale, "first_key": first_key}
        _views().show(self._select_run(run), site=site, head=head, sequence=sequence, **how)

    def figure(
        self,
        path: str | Path,
        *,
        kind: str = "head",
        site: str | None = None,
        head: int | None = None,
        run: int | None = None,
        sequence: int = 0,
        pool: Literal["max", "mean"] = "max",
        scale: Literal["quantile", "row"] = "quantile",
        first_key: bool = True,
    ) -> None:
        """Write a picture, PNG, SVG or PDF; `kind` is head, heads, alignment, entropy or flow.

        The flow, what each part adds to the residual stream, needs a trace with residual=True.
        Blocks of a long text show their largest weight, or with pool="mean" their mean. Colours
        reach up to the 99.5th percentile of a long text, or with scale="row" to the largest weight
        of each row. first_key=False leaves out the first key, on which many heads rest.
        """
        how: Any = {"pool": pool, "scale": scale, "first_key": first_key}
        _views().figure(
            self._select_run(run), path, kind=kind, site=site, head=head, sequence=sequence, **how
        )

    def page(self, path: str | Path, *, run: int | None = None) -> None:
        """Write one HTML file with every head of every run, or of one; it needs no network."""
        _views().page(self._select_run(run), path)

    def _repr_html_(self) -> str:
        """The page inside a notebook; where there can be none, a sentence and a list of sites."""
        return _views().inline(self)

    def _select_run(self, run: int | None) -> "Trace":
        return self if run is None else self.only(run)

    def __repr__(self) -> str:
        if not self.runs:
            return "Trace(nothing recorded yet)"
        sizes = {site.shape for site in self}
        shapes = ", ".join(" × ".join(map(str, size)) for size in sorted(sizes))
        return (
            f"Trace({len(self.runs)} run(s), {len(self)} sites: {_enumerate(self.names)}; {shapes})"
        )

    def rollout(self, stack: str, *, sequence: int = 0, most: int = 4096) -> Tensor:
        """How much of each input token reaches each place after every layer of a stack, (L, L).

        Attention averaged over heads, mixed half and half with the residual connection, multiplied
        through the layers (Abnar and Zuidema 2020). It holds matrices, hence only texts up to
        `most` tokens.
        """
        sites = [s for s in self if s.name.startswith(f"{stack}.") and s.queries == s.keys]
        if not sites:
            raise TraceError(f"rollout needs self-attention of {stack!r}; the trace has none.")
        if some := [s.name for s in sites if s.heads is not None]:
            raise TraceError(
                f"rollout averages all heads of a layer; of {some[0]} only some were recorded. "
                "Record it without heads=."
            )
        L = sites[0].shape[2]
        if most < L or any(s.shape[2:] != (L, L) for s in sites):
            raise TraceError(
                f"rollout multiplies whole matrices of one size, up to {most} tokens; got "
                f"{' and '.join(sorted({f'{s.shape[2]} × {s.shape[3]}' for s in sites}))}. "
                "Use a shorter text."
            )
        through = torch.eye(L, device=sites[0].q.device)
        for site in sites:
            mean = site.weights(sequence=sequence).float().mean(0)
            one = torch.eye(L, device=mean.device)
            through = (0.5 * mean + 0.5 * one) @ through.to(mean.device)  # wherever its layer is
        return through


def _views() -> Any:
    """The module that draws; it lies above this folder, and needs more than torch."""
    return import_module("glassformer.render.views")


def _enumerate(names: list[str], most: int = 6) -> str:
    names = [_escape(name) for name in names]
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])}, … {names[-1]}"


def _escape(text: str) -> str:
    """Escape what would control a terminal: names may be read from files."""
    return text if text.isprintable() else repr(text)[1:-1]
