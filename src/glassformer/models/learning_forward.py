"""Another way for a module to compute while it learns, which changes nothing for whoever uses it.

Training in 8 bits, products by oneDNN and recomputed activations replace `forward`. In evaluation
such a module computes as ever, so what works from its weights alone need not call it.
"""

from functools import partial
from typing import Any

from torch import nn


def replace_while_learning(module: nn.Module, forward: partial[Any]) -> None:
    """Compute by `forward`, which must do what the module's own does where nothing learns."""
    # The mark is the object itself: whoever wraps it, and copies its attributes, is not marked.
    forward.while_learning = forward  # type: ignore[attr-defined]
    module.forward = forward  # type: ignore[method-assign]


def has_own_forward(module: nn.Module) -> bool:
    """Whether this object computes something else than its class, also in evaluation.

    >>> layer = nn.Linear(2, 3)
    >>> replace_while_learning(layer, partial(nn.Linear.forward, layer))
    >>> has_own_forward(layer)
    False
    >>> layer.forward = abs
    >>> has_own_forward(layer)
    True
    """
    own = vars(module).get("forward")
    return own is not None and getattr(own, "while_learning", None) is not own
