"""Residuals and norms: what reaches the first layer of a deep stack, and whether it learns."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from glassformer.fromscratch import post_norm, pre_norm
from glassformer.functional import Causal
from glassformer.layers import FeedForward, LearnedPositions, SelfAttention
from glassformer.render.chart import Axis, Chart, Lines, Mark, Series
from glassformer.school.lab.experiment import Check, Experiment, Numbers, Verdict
from glassformer.school.lab.panels import choose_steps, pick_steps
from glassformer.school.lab.progress import ProgressCallback, iterate_with_progress
from glassformer.school.lab.texts import ExperimentTexts
from glassformer.school.lab.toy_training import Batch, mean_loss, train_toy, warmup_cosine
from glassformer.training.loss import IGNORED

Arrangement = Callable[[Tensor, Callable[[Tensor], Tensor], nn.Module], Tensor]

ARRANGEMENTS: dict[str, Arrangement] = {
    "plain": lambda x, sublayer, _: sublayer(x),
    "norm": lambda x, sublayer, norm: norm(sublayer(x)),
    "residual": lambda x, sublayer, _: x + sublayer(x),
    "post": post_norm,
    "pre": pre_norm,
}


class _Size(NamedTuple):
    depth: int
    steps: int


_SIZES = {"quick": _Size(6, 60), "full": _Size(12, 300)}
_DIM, _HEADS, _VOCABULARY, _LENGTH, _BATCH = 32, 4, 12, 16, 16


class Deep(nn.Module):
    """Layers of attention and feed-forward, joined in one of five ways."""

    def __init__(self, way: str, depth: int) -> None:
        super().__init__()
        self.around = ARRANGEMENTS[way]
        self.embedding = nn.Embedding(_VOCABULARY, _DIM)
        self.positions = LearnedPositions(_LENGTH, _DIM)
        self.parts = nn.ModuleList(
            part
            for _ in range(depth)
            for part in (SelfAttention(_DIM, _HEADS), FeedForward(_DIM, 2 * _DIM))
        )
        self.norms = nn.ModuleList(nn.LayerNorm(_DIM) for _ in self.parts)
        # One norm behind everything, in all five: logits start alike whatever came before.
        self.final = nn.LayerNorm(_DIM)
        self.out = nn.Linear(_DIM, _VOCABULARY)
        self.hidden: list[Tensor] = []

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        self.hidden = [x]
        for part, norm in zip(self.parts, self.norms, strict=True):

            def sublayer(y: Tensor, part: nn.Module = part) -> Tensor:
                return part(y, mask=Causal()) if isinstance(part, SelfAttention) else part(y)

            x = self.around(x, sublayer, norm)
            self.hidden.append(x)
        return self.out(self.final(x))


def draw_previous(generator: torch.Generator) -> Batch:
    """Each place asks for the token before it."""
    tokens = torch.randint(0, _VOCABULARY, (_BATCH, _LENGTH), generator=generator)
    targets = torch.full_like(tokens, IGNORED)
    targets[:, 1:] = tokens[:, :-1]
    return tokens, targets


def measure(size: str, seed: int, progress: ProgressCallback) -> Numbers:
    """Gradients by depth before training, and the loss while training."""
    depth, steps = _SIZES[size]
    gradients: dict[str, list[float]] = {way: [] for way in ARRANGEMENTS}
    losses: dict[str, list[float]] = {way: [] for way in ARRANGEMENTS}
    numbers: Numbers = {"depth": depth, "steps": steps, "gradients": gradients, "losses": losses}
    for way, own in iterate_with_progress(tuple(ARRANGEMENTS), progress, numbers):
        torch.manual_seed(seed)  # all five start from the same weights
        model = Deep(way, depth)
        tokens, targets = draw_previous(torch.Generator().manual_seed(seed))
        loss = mean_loss(model(tokens), targets)
        sizes = torch.autograd.grad(loss, model.hidden)
        # Behind each block of two sublayers; the last is where the gradient comes from.
        gradients[way] = [float(g.norm()) for g in sizes[::2]]
        train_toy(
            model,
            draw_previous,
            steps=steps,
            schedule=warmup_cosine(2e-3, steps),
            seed=seed,
            progress=own,
            losses=losses[way],
        )
    return numbers


def judge(numbers: Numbers) -> Verdict:
    depth, gradients = numbers["depth"], numbers["gradients"]
    left = {way: values[0] / values[-1] for way, values in gradients.items()}
    last = {way: _final_loss(values) for way, values in numbers["losses"].items()}
    guess = float(torch.tensor(float(_VOCABULARY)).log())
    return Verdict.of(
        # Each plain block weakens the gradient several times; six of them a hundredfold and more.
        # With a way around it, nothing should be lost: within a factor of five either way.
        Check(
            "gradient",
            left["plain"] < 1e-2
            and all(0.2 < left[way] < 5 for way in ("residual", "post", "pre")),
            {"depth": depth, **left},
        ),
        # The loss of guessing is log 12; what is 5 % below has begun to learn.
        Check(
            "stuck",
            last["plain"] > 0.97 * guess and last["norm"] > 0.97 * guess,
            {"plain": last["plain"], "norm": last["norm"], "guess": guess},
        ),
        Check(
            "learns",
            max(last["residual"], last["post"], last["pre"]) < 0.95 * guess,
            {way: last[way] for way in ("residual", "post", "pre")},
        ),
        # Small stacks with warm-up train either way; pre-norm should not be behind.
        Check(
            "pre",
            last["pre"] < last["post"] + 0.1,
            {"pre": last["pre"], "post": last["post"]},
        ),
    )


def _final_loss(losses: list[float]) -> float:
    some = losses[-max(1, len(losses) // 10) :]
    return sum(some) / len(some)


def draw(numbers: Numbers, texts: ExperimentTexts) -> Chart:
    depth, steps = numbers["depth"], numbers["steps"]
    points = choose_steps(steps)
    return Chart(
        (
            Lines(
                title=texts("gradients"),
                x=Axis(label=texts("depth")),
                y=Axis(label=texts("size"), log=True),
                places=tuple(float(i) for i in range(depth + 1)),
                series=tuple(
                    Series(name=texts(way), values=tuple(numbers["gradients"][way]))
                    for way in ARRANGEMENTS
                ),
            ),
            Lines(
                title=texts("learning"),
                x=Axis(label=texts("step")),
                y=Axis(label=texts("loss"), least=0.0),
                places=tuple(float(i) for i in points),
                series=tuple(
                    Series(
                        name=texts(way),
                        values=pick_steps(numbers["losses"][way], points),
                    )
                    for way in ARRANGEMENTS
                ),
                marks=(
                    Mark(name=texts("guessing"), at=float(torch.tensor(float(_VOCABULARY)).log())),
                ),
            ),
        )
    )


EXPERIMENT = Experiment(
    name="residual",
    look_at=(
        "fromscratch/residual.py:pre_norm",
        "fromscratch/residual.py:post_norm",
        "layers/block.py:Block",
    ),
    measure=measure,
    judge=judge,
    draw=draw,
    n_seeds=3,
)
