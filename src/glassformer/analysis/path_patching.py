"""Path patching: what one part tells another directly.

After Wang et al. 2022 and Goldowsky-Dill et al. 2023. An edge leads from a sender, a head or a
part, to a receiver: a later part, or the logits. All other parts are frozen at the corrupted run;
the receiver reads the stream with what the sender wrote in the clean run. What it then writes takes
the place of what it wrote, and everything above runs as it does. (In the original, edges also lead
through feed-forward networks; here these are parts of their own, and frozen.) An edge to the logits
has nothing above it: the end of the stream, with what the sender wrote in the clean run, is read.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.analysis.sweep_places import Cell, Edge, Places
from glassformer.analysis.writers import Writer
from glassformer.errors import InterventionError
from glassformer.tracing import Patch, Trace
from glassformer.tracing.interventions.probes import Put
from glassformer.tracing.reruns import find_layer
from glassformer.tracing.stream import Part
from glassformer.tracing.variants import Variants

LOGITS = "logits"


class Paths:
    """The edges of one text, run through `variants` of its corrupted form."""

    def __init__(self, variants: Variants, clean: Trace) -> None:
        self.variants, self.trace = variants, clean
        self.corrupted, self.clean = variants.stream, clean.residual(variants.stack)
        self.start = f"{variants.stack}.start"
        self.device = next(variants.model.parameters()).device
        self._written: dict[Writer, Tensor] = {}

    def list_places(
        self, senders: Sequence[str] | None = None, receivers: Sequence[str] | None = None
    ) -> Places:
        """Every edge, receiver by receiver; `senders` and `receivers` name some of them."""
        chosen = _choose("senders", self._list_senders(), senders, whole=self._list_parts())
        parts = {part.name: part.name for part in self.corrupted.parts} | {LOGITS: LOGITS}
        to = list(_choose("receivers", parts, receivers))
        cells = [
            Cell(Edge(sender, receiver), i, j)
            for j, receiver in enumerate(to)
            for i, sender in enumerate(chosen.values())
            if self._is_before(sender, receiver)
        ]
        if not cells:
            raise InterventionError(
                f"No edge leads from {', '.join(chosen)} to {', '.join(to)}: a receiver must come "
                "after its sender."
            )
        return Places(list(chosen), to, cells)

    def _list_parts(self) -> dict[str, Writer]:
        names = [self.start, *(part.name for part in self.corrupted.parts)]
        return {name: Writer(name) for name in names}

    def _list_senders(self) -> dict[str, Writer]:
        """The start, every head, and every part that has none."""
        found = [Writer(self.start)]
        for part in self.corrupted.parts:
            site = self.trace.run.sites.get(part.site or "")
            heads = [None] if site is None else range(site.n_heads)
            found += [Writer(part.name, h) for h in heads]
        return {sender.name: sender for sender in found}

    def _is_before(self, sender: Writer, receiver: str) -> bool:
        """Whether the receiver may read what the sender writes; parallel parts do not."""
        if receiver == LOGITS or sender.part == self.start:
            return True
        group, of = 0, dict[str, int]()
        for part in self.corrupted.parts:
            group += not part.is_joined
            of[part.name] = group
        return of[sender.part] < of[receiver]

    def run(self, edges: Sequence[Edge]) -> Float[Tensor, "N L C"]:
        """The end of the stream for each of these edges, which have one receiver."""
        (receiver,) = {edge.receiver for edge in edges}
        written = [(edge.sender.part, self._write(edge.sender)) for edge in edges]
        if receiver == LOGITS:
            return self._follow(written, None)[0]
        part = self.corrupted.part(receiver)
        state, beside = self._follow(written, part)
        frozen = [Put(name, value) for name, value in beside.items()]
        n, starts = len(edges), state
        if part.layer == 0:
            frozen, starts = [Put(self.start, state, "state"), *frozen], None
        read = self.variants.read(receiver, frozen, n, starts=starts)
        return self.variants.run_together([Put(receiver, read)], n)

    def _write(self, sender: Writer) -> Float[Tensor, "1 L C"]:
        """What the sender's part adds if the sender is what it was in the clean run."""
        if sender.head is None:
            is_start = sender.part == self.start
            value = self.clean.start if is_start else self.clean.part(sender.part).value
            return value.to(self.device)
        if sender not in self._written:  # all heads of a part in one pass through its block
            of = [s for s in self._list_senders().values() if s.part == sender.part]
            site = self.corrupted.part(sender.part).site
            assert site is not None
            patches = [
                Patch(site, self.trace, head=each.head, sequences=[i]) for i, each in enumerate(of)
            ]
            values = self.variants.read(sender.part, patches, len(of))
            self._written |= {each: values[i : i + 1] for i, each in enumerate(of)}
        return self._written[sender]

    def _follow(
        self, written: Sequence[tuple[str, Tensor]], stop: Part | None
    ) -> tuple[Float[Tensor, "N L C"], dict[str, Tensor]]:
        """The corrupted stream with what each sender writes: at the start of a block, or the end.

        Also what the parts of that block add, those that come before `stop`.
        """

        n = len(written)

        def take(name: str, value: Tensor) -> Tensor:
            value = value.to(self.device).expand(n, -1, -1)
            if not any(part == name for part, _ in written):
                return value
            rows = [new if part == name else value[:1] for part, new in written]
            return torch.cat(rows)

        x = take(self.start, self.corrupted.start)
        before = added = x
        beside: dict[str, Tensor] = {}
        for step in self.corrupted.steps:
            if stop is not None and find_layer(step) == stop.layer:
                if step is stop:
                    break
                if isinstance(step, Part):  # the block itself norms and scales its stream
                    beside[step.name] = take(step.name, step.value)
            elif isinstance(step, Part):
                value = take(step.name, step.value)
                before, added = (before, added + value) if step.is_joined else (x, value)
                x = before + added
            else:
                x = step(x)
        return x, beside


def _choose(
    what: str,
    known: dict[str, "Writer"] | dict[str, str],
    given: Sequence[str] | None,
    *,
    whole: dict[str, "Writer"] | None = None,
) -> dict:
    """Those of these names; without any, all."""
    if given is None:
        return dict(known)
    names = [given] if isinstance(given, str) else list(given)
    everything = {**known, **(whole or {})}
    wrong = [name for name in names if name not in everything]
    if wrong or not names:
        shown = ", ".join(list(everything)[:4])
        got = repr(wrong[0]) if names else "none"
        raise InterventionError(f"{what} must be among {shown} …; got {got}.")
    return {name: everything[name] for name in names}
