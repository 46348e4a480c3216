"""The Jacobian lens: what a state would make a model say, on average over texts.

J_l, the mean derivative of the last state by the state at border l, carries a vector to where the
model's own readout reads it (Gurnee et al. 2026, "Verbalizable Representations Form a Global
Workspace in Language Models"):

    lens_l(h) = readout(J_l h)        J_l = mean over texts and p of Σ_{p'} ∂h_end[p'] / ∂h_l[p]

Here p and p' are positions that are neither the last one nor among the first, which serve as
attention sinks; in a causal model only p' ≥ p contribute. Nothing is trained: the lens shows what a
state disposes the model to say, here or later, and may predict the end worse than the logit lens.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.affine_lens import AffineLens, Fingerprint
from glassformer.analysis.lens_data import (
    LONGEST,
    Batch,
    LensSource,
    ProgressCallback,
    call_model,
    cut_windows,
    evaluating,
    find_real,
    gather_states,
    measure_lens,
)
from glassformer.errors import TraceError
from glassformer.layers import Core
from glassformer.tracing.layout import Place
from glassformer.tracing.model_lookup import OURS, ModuleTree, find_model
from glassformer.tracing.stream_listener import find_blocks


def fit_jacobian_lens(
    model: nn.Module,
    texts: Sequence[str | Batch],
    *,
    tokenizer: Any = None,
    layers: Collection[int] | None = None,
    directions: int | None = None,
    chunk: int = 16,
    skip: int = 16,
    length: int = LONGEST,
    seed: int = 0,
    progress: ProgressCallback = lambda _: None,
) -> AffineLens:
    """Measure the Jacobian lens of a model of ours or of transformers; see `AffineLens`.

    ::

        texts        as for `train_lens`; every batch is one text, (1, L)
        layers       map the ends of these blocks (default: the start, and all ends but the last)
        directions   instead of all C directions of the last state, so many random ones for each
                     text: an unbiased estimate, noisy for few texts
        chunk        directions that one backward pass carries, each on a copy of the text
        skip         first positions of each text that are left out

    One forward and C / chunk backward passes of `chunk` copies for each text, in all the work of
    2 C forward passes: with C = 576, minutes for a text on a CPU. A hundred texts make a usable
    lens. If there are more than two texts, a tenth only measures it, otherwise all do.

    >>> import glassformer as gf
    >>> writer = gf.load("writer")
    >>> texts = ["And God said unto Moses, Go down, for thy people have corrupted themselves."]
    >>> lens = gf.fit_jacobian_lens(writer, texts, layers=[3], directions=4, skip=2)
    >>> lens.matrices.shape
    torch.Size([1, 256, 256])
    """
    if chunk < 1 or skip < 0 or (directions is not None and directions < 1):
        raise TraceError(
            f"A Jacobian lens needs chunk ≥ 1, skip ≥ 0 and directions ≥ 1; got chunk={chunk}, "
            f"skip={skip}, directions={directions}."
        )
    windows = [_require_one(each) for each in cut_windows(model, texts, tokenizer, length)]
    windows = [w for w in windows if not isinstance(w, Tensor) or w.shape[1] >= skip + 2]
    if not windows:
        raise TraceError(
            f"A Jacobian lens needs a text of at least {skip + 2} tokens: the first {skip} and the "
            "last are left out. Pass longer texts, or a smaller skip."
        )
    generator = torch.Generator().manual_seed(seed)
    n_held = len(windows) // 10 or int(len(windows) > 2)
    held, used = windows[:n_held] or windows, windows[n_held:]
    source = LensSource(model, windows, layers)
    first = source.watch(used[0])
    fingerprint = Fingerprint.of(first, first.require_readout())
    C = first.start.shape[-1]
    total = torch.zeros(len(source.borders), C, C, device=first.start.device)
    for i, window in enumerate(used):
        rows = _draw_directions(C, directions, generator)
        states = _run_blocks(source, window, min(chunk, len(rows)), skip)
        for start in range(0, len(rows), chunk):
            is_last = start + chunk >= len(rows)
            total += states.pull(rows[start : start + chunk], is_last=is_last).to(total.device)
            progress((i + start / len(rows)) / len(used))
    progress(1.0)
    lens = AffineLens(
        kind="jacobian",
        stack=source.stack,
        borders=list(source.borders),
        matrices=(total / len(used)).cpu(),
        biases=torch.zeros(len(source.borders), C),
        fingerprint=fingerprint,
        plain=[],
        mapped=[],
    )
    return measure_lens(lens, gather_states(source, held, generator))


def _require_one(window: Batch) -> Batch:
    tensors = [window] if isinstance(window, Tensor) else window
    tensors = tensors.values() if isinstance(tensors, Mapping) else tensors
    for each in tensors:
        if len(each) != 1:
            raise TraceError(f"A batch of a Jacobian lens must be one text; got {len(each)}.")
    return window


def _repeat(window: Batch, n: int) -> Batch:
    """A text n times, in one batch."""
    if isinstance(window, Mapping):
        return {name: each.repeat_interleave(n, 0) for name, each in window.items()}
    if isinstance(window, Tensor):
        return window.repeat_interleave(n, 0)
    return tuple(each.repeat_interleave(n, 0) for each in window)


def _draw_directions(C: int, n: int | None, generator: torch.Generator) -> Float[Tensor, "K C"]:
    """All directions, or some random ones, r with mean(r rᵀ) = 1."""
    if n is None or n >= C:
        return torch.eye(C)
    basis, _ = torch.linalg.qr(torch.randn(C, n, generator=generator))
    return basis.mT * (C / n) ** 0.5


class _BlockStates:
    """The states at borders and at the end, of n copies of a text, with what led from one to the
    other.
    """

    def __init__(self, early: list[Tensor], end: Tensor, positions: Tensor) -> None:
        self.early, self.end, self.positions = early, end, positions

    def pull(self, rows: Float[Tensor, "n C"], *, is_last: bool) -> Float[Tensor, "N C C"]:
        """The part of the Jacobian along some directions of the end."""
        seen = torch.zeros_like(self.end)
        seen[: len(rows), self.positions] = rows.to(seen)[:, None]
        grads = torch.autograd.grad(
            self.end, self.early, seen, retain_graph=not is_last, allow_unused=True
        )
        found = []
        for grad in grads:
            if grad is None:
                raise TraceError("The last state of this model does not follow from its borders.")
            mean = grad[: len(rows), self.positions.to(grad.device)].float().mean(1)
            found.append((rows.to(mean).mT @ mean).to(self.end.device))
        return torch.stack(found)


def _run_blocks(source: LensSource, window: Batch, n: int, skip: int) -> _BlockStates:
    """Run n copies of a text, and keep what the blocks return, with its history."""
    stream = source.watch(window)
    positions = find_real(window, stream)[0].nonzero()[:, 0][skip:-1]
    if not len(positions):
        raise TraceError(f"Every text must have at least {skip + 2} tokens; pass a smaller skip.")
    blocks = [b for b, stack in _find_blocks(source.model).items() if stack == source.stack]
    with evaluating(source.model), torch.enable_grad(), _keep_outputs(blocks) as kept:
        call_model(source.model, _repeat(window, n))
    names = [f"{stream.name}.start", *{p.layer: p.name for p in stream.parts}.values()]
    if len(kept) != len(names):
        raise TraceError(f"{len(names) - 1} blocks must run; {len(kept) - 1} did.")
    found = dict(zip(names, kept, strict=True))
    for name, x in stream.states():
        if name in found:
            _prove(name, found[name], x)
    return _BlockStates([found[name] for name in source.borders], kept[-1], positions)


def _prove(name: str, ours: Tensor, recorded: Tensor) -> None:
    """What a hook has seen must be the stream, and must not have been overwritten since."""
    apart = (ours.detach()[:1] - recorded).norm() / recorded.norm().clamp(min=1e-30)
    if not apart <= torch.finfo(recorded.dtype).eps ** 0.5:
        raise TraceError(
            f"Two runs of the model must agree; at {name} they differ by {apart:.2g}. "
            "Turn off what is random in it."
        )


@contextmanager
def _keep_outputs(blocks: list[nn.Module]) -> Iterator[list[Tensor]]:
    """The input of the first block, as a leaf, and what each call of a block returns."""
    kept: list[Tensor] = []

    def enter(_module: nn.Module, args: tuple, options: dict[str, Any]) -> Any:
        if kept:  # layers may share a module
            return None
        values = [*args, *options.values()]
        at = next(
            i for i, x in enumerate(values) if isinstance(x, Tensor) and x.is_floating_point()
        )
        values[at] = values[at].detach().requires_grad_()
        kept.append(values[at])
        rest = dict(zip(options, values[len(args) :], strict=True))
        return tuple(values[: len(args)]), rest

    def leave(_module: nn.Module, _args: tuple, out: Any) -> None:
        kept.append(out if isinstance(out, Tensor) else out[0])

    hooks = [blocks[0].register_forward_pre_hook(enter, with_kwargs=True)]
    hooks += [block.register_forward_hook(leave) for block in blocks]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def _find_blocks(model: nn.Module) -> dict[nn.Module, str]:
    """The blocks of a model, in order, and their stacks."""
    tree = ModuleTree(model)
    found = find_model(tree)
    assert found is not None  # otherwise its stream could not be watched
    tree = tree.of(found)
    if isinstance(found, OURS):
        places: dict[nn.Module, Place] = {
            module: Place(path, path.split(".")[0], None, False)
            for module, path in tree.paths.items()
            if isinstance(module, Core)
        }
        return find_blocks(tree, places)
    from glassformer.tracing.sources.transformers_layout import TransformersLayout

    return find_blocks(tree, TransformersLayout.of(tree).places)
