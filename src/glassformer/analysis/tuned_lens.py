"""Training a tuned lens (Belrose et al. 2023): an affine map for each border.

It is trained so that the model's own readout of the mapped state predicts what the model predicts
at its end. Each map starts as a ridge regression of the last state on the early one, or as the
identity where that is better, and is then refined by Adam on the divergence itself.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.analysis.affine_lens import AffineLens, Fingerprint
from glassformer.analysis.lens_data import (
    LONGEST,
    Batch,
    LensSource,
    ProgressCallback,
    States,
    cut_windows,
    diverge,
    gather_states,
    join_states,
    measure_divergence,
    measure_lens,
    read_logs,
    sample_states,
)
from glassformer.analysis.ridge import Moments, solve_ridge
from glassformer.errors import TraceError

_ROUNDS = 4  # how often a map is held against the best one so far


def train_lens(
    model: nn.Module,
    texts: Sequence[str | Batch],
    *,
    tokenizer: Any = None,
    layers: Collection[int] | None = None,
    steps: int = 200,
    lr: float = 1e-3,
    positions: int = 256,
    length: int = LONGEST,
    seed: int = 0,
    progress: ProgressCallback = lambda _: None,
) -> AffineLens:
    """Train a tuned lens for a model of ours or of transformers; see `AffineLens`.

    ::

        texts       texts, cut into windows of at most `length` tokens, or what the model is
                    called with: tokens (B, L), a tuple, or a dictionary of tensors
        tokenizer   for texts; models of ours bring their own
        layers      map the ends of these blocks (default: the start, and all ends but the last)
        steps, lr   of Adam; 0 steps: the regression alone
        positions   that a step learns from

    A tenth of the windows, drawn at random, decides between maps, and another tenth only measures
    the result: `lens.plain` and `lens.mapped`. A step reads out `positions` at every border,
    forwards and backwards, which for a large vocabulary costs more than running the model.

    >>> import glassformer as gf
    >>> writer = gf.load("writer")
    >>> texts = [gf.generate(writer, "And", temperature=1.0, seed=i) for i in range(8)]
    >>> lens = gf.train_lens(writer, texts, layers=[0], steps=10, positions=64)
    >>> lens.mapped[0] < lens.plain[0]
    True
    """
    if steps < 0 or positions < 1 or not lr > 0:
        raise TraceError(
            f"Training a lens needs steps ≥ 0, positions ≥ 1 and lr > 0; got steps={steps}, "
            f"positions={positions}, lr={lr}."
        )
    generator = torch.Generator().manual_seed(seed)
    windows = cut_windows(model, texts, tokenizer, length)
    if len(windows) < 3:
        raise TraceError(
            "Training a lens needs at least three windows of text, to learn, to choose and to "
            f"measure; got {len(windows)} of at most {length} tokens."
        )
    order = torch.randperm(len(windows), generator=generator).tolist()
    n = max(1, len(windows) // 10)
    held, check, fit = (
        [windows[i] for i in part] for part in (order[:n], order[n : 2 * n], order[2 * n :])
    )
    source = LensSource(model, windows, layers)
    first = source.watch(windows[0])
    fingerprint = Fingerprint.of(first, first.require_readout())
    n_units, done = len(fit) + len(check) + steps, 0

    def advance() -> None:
        nonlocal done
        done += 1
        progress(done / n_units)

    checked = gather_states(source, check, generator)
    training = _Training(source, checked)
    training.start(fit, check, advance)
    training.refine(fit, steps, lr, positions, generator, advance)
    maps = training.best
    lens = AffineLens(
        kind="tuned",
        stack=source.stack,
        borders=list(source.borders),
        matrices=torch.stack([maps[name].matrix for name in source.borders]),
        biases=torch.stack([maps[name].bias for name in source.borders]),
        fingerprint=fingerprint,
        plain=[],
        mapped=[],
    )
    return measure_lens(lens, gather_states(source, held, generator))


@dataclass(eq=False)
class _Map:
    """A map, and how far its readings diverge from the end."""

    matrix: Tensor
    bias: Tensor
    divergence: float

    def __call__(self, x: Tensor) -> Tensor:
        A, b = self.matrix.to(x.device), self.bias.to(x.device)
        return (x.to(A.dtype) @ A.mT + b).to(x.dtype)


class _Training:
    """The maps of all borders, each by itself: the best one so far, and how it is refined."""

    def __init__(self, source: LensSource, checked: States) -> None:
        self.source, self.checked = source, checked
        C = checked.end.shape[-1]
        self.best = {name: _Map(torch.eye(C), torch.zeros(C), 0.0) for name in source.borders}
        with torch.no_grad():
            for name, value in measure_divergence(checked).items():
                self.best[name].divergence = value

    def offer(self, maps: dict[str, _Map]) -> None:
        """Keep each map that reads the checked positions better than the best one so far."""
        with torch.no_grad():
            found = measure_divergence(self.checked, lambda name, x: maps[name](x))
        for name, value in found.items():
            if value < self.best[name].divergence:
                self.best[name] = _Map(maps[name].matrix, maps[name].bias, value)

    def start(self, fit: list[Batch], check: list[Batch], advance: Callable[[], None]) -> None:
        """Regress the last state on that of each border."""
        C, on = self.checked.end.shape[-1], self.checked.end.device
        self.moments = {name: Moments(C, on) for name in self.source.borders}
        checks = {name: Moments(C, on) for name in self.source.borders}
        for windows, moments in ((fit, self.moments), (check, checks)):
            for window in windows:
                states = self.source.read(window)
                for name, x in states.early.items():
                    moments[name].add(x, states.end)
                advance()
        found = {}
        for name in self.source.borders:
            A, b = solve_ridge(self.moments[name], checks[name])
            found[name] = _Map(A.float().cpu(), b.float().cpu(), 0.0)
        self.offer(found)

    def refine(
        self,
        fit: list[Batch],
        steps: int,
        lr: float,
        positions: int,
        generator: torch.Generator,
        advance: Callable[[], None],
    ) -> None:
        """Descend on the divergence; features are scaled to unit size, so that one lr fits all."""
        if not steps:
            return
        on = self.checked.end.device
        changes = {name: _Change(self.best[name], self.moments[name], on) for name in self.best}
        parameters = [p for change in changes.values() for p in (change.matrix, change.bias)]
        adam = torch.optim.Adam(parameters, lr=lr, betas=(0.9, 0.99))
        warm = max(1, steps // 10)
        for step in range(steps):
            rate = min((step + 1) / warm, (steps - step) / (steps - warm + 1))
            adam.param_groups[0]["lr"] = lr * rate
            states = self._draw(fit, positions, generator)
            with torch.no_grad():
                end = read_logs(states.readout, states.end)
            for name, change in changes.items():
                loss = diverge(end, read_logs(states.readout, change(states.early[name]))).mean()
                both = change.matrix, change.bias
                change.matrix.grad, change.bias.grad = torch.autograd.grad(loss, both)
            adam.step()
            if (step + 1) % max(1, steps // _ROUNDS) == 0 or step + 1 == steps:
                self.offer({name: change.as_map() for name, change in changes.items()})
            advance()

    def _draw(self, fit: list[Batch], n: int, generator: torch.Generator) -> States:
        """Positions of windows drawn at random."""
        found: list[States] = []
        n_found = 0
        while n_found < n:
            window = fit[int(torch.randint(len(fit), (1,), generator=generator))]
            states = sample_states(self.source.read(window), n - n_found, generator)
            found.append(states)
            n_found += len(states.end)
        return join_states(found)


class _Change:
    """A map, and what is added to it: size · (M (x − mean) / spread + c)."""

    def __init__(self, start: _Map, moments: Moments, on: torch.device) -> None:
        self.start = _Map(start.matrix.to(on), start.bias.to(on), start.divergence)
        self.mean, self.spread, self.size = (
            each.float().to(on) for each in (moments.mean, moments.spread, moments.size)
        )
        C = len(self.mean)
        self.matrix = torch.zeros(C, C, device=on, requires_grad=True)
        self.bias = torch.zeros(C, device=on, requires_grad=True)

    def __call__(self, x: Tensor) -> Tensor:
        scaled = (x.float() - self.mean) / self.spread
        change = self.size * (scaled @ self.matrix.mT + self.bias)
        return (self.start(x.float()) + change).to(x.dtype)

    def as_map(self) -> _Map:
        added = (self.size[:, None] * self.matrix / self.spread).detach()
        bias = (self.size * self.bias).detach() - added @ self.mean
        return _Map((self.start.matrix + added).cpu(), (self.start.bias + bias).cpu(), 0.0)
