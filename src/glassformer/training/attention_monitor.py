"""What attention does while a model trains: the entropy and the largest score of every head.

A head whose entropy falls towards 0 looks at one key whatever is asked; scores that grow without
limit come before a loss that diverges (Zhai et al. 2023, "Stabilizing Transformer Training by
Preventing Attention Entropy Collapse").
"""

from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.functional import attention_statistics
from glassformer.layers.attention import Core


class HeadReadings(NamedTuple):
    """What the heads of one attention layer did in one forward pass."""

    entropy: Float[Tensor, " H"]  # in nats, the mean over all queries that see a key
    largest: Float[Tensor, " H"]  # score


class AttentionMonitor:
    """Measure the first call of each attention layer while this is active; outputs are unchanged.

    >>> import torch
    >>> from glassformer.layers.attention import SelfAttention
    >>> layer = SelfAttention(12, 3)
    >>> with AttentionMonitor(layer) as monitor:
    ...     out = layer(torch.zeros(2, 5, 12))
    >>> monitor.readings["core"].largest
    tensor([0., 0., 0.])
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.readings: dict[str, HeadReadings] = {}
        self._hooks: list[Any] = []

    def __enter__(self) -> "AttentionMonitor":
        for name, module in self.model.named_modules():
            if isinstance(module, Core):
                measure = partial(self._measure, name)
                self._hooks.append(module.register_forward_pre_hook(measure, with_kwargs=True))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        while self._hooks:
            self._hooks.pop().remove()

    def _measure(
        self, name: str, module: nn.Module, operands: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        del module
        if name in self.readings:
            return
        q, k = operands[:2]
        scoring = {key: value for key, value in options.items() if key != "dropout"}
        found = attention_statistics(q, k, **scoring, distance=False)
        is_seeing = ~found.lse.isneginf()
        entropy = found.entropy.sum((0, 2)) / is_seeing.sum((0, 2)).clamp(min=1)
        self.readings[name] = HeadReadings(entropy, found.largest.amax(0))

    def summary(self) -> dict[str, float]:
        """The lowest entropy and the largest score of any head; nothing if none was measured."""
        if not self.readings:
            return {}
        return {
            "lowest_entropy": min(float(r.entropy.min()) for r in self.readings.values()),
            "largest_score": max(float(r.largest.max()) for r in self.readings.values()),
        }
