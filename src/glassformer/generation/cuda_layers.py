"""The layers of a decoder for many rows on a GPU: large batches, and prompts (cuda_prompts.py).

What differs between these is given: how heads attend, and the kernel of the norms.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from glassformer.generation.products import multiply
from glassformer.layers.feed_forward import ACTIVATIONS
from glassformer.models.decoder_weights import AttentionWeights, DecoderWeights, Norm

Attend = Callable[[int, Tensor, AttentionWeights], Tensor]  # of a layer, from its heads


def run_layers(
    weights: DecoderWeights,
    x: Float[Tensor, "N C"],
    attend: Attend,
    attend_context: Callable[[int, Tensor], Tensor],
    normalize: Callable[[Tensor, Tensor | None, Norm], Tensor],
) -> Float[Tensor, "N C"]:
    """All layers and the last norm. `normalize` adds its second argument to x before the norm."""
    config, stack = weights.config, weights.stack
    is_pre = config.norms.place == "pre"
    if stack.embedding_norm is not None:
        x = normalize(x, None, stack.embedding_norm)
    update: Tensor | None = None
    for i, (attention, cross, feed_forward) in enumerate(stack.layers):
        h = normalize(x, update, attention.norm) if is_pre else x
        update = multiply(attend(i, multiply(h, attention.qkv), attention), attention.out)
        if not is_pre:
            x = normalize(x, update, attention.norm)
        if cross is not None:
            h = normalize(x, update, cross.norm) if is_pre else x
            update = multiply(attend_context(i, multiply(h, cross.q)), cross.out)
            if not is_pre:
                x = normalize(x, update, cross.norm)
        h = normalize(x, update, feed_forward.norm) if is_pre else x
        hidden = multiply(h, feed_forward.up)
        if config.gated:
            gate, up = hidden.chunk(2, dim=-1)
            hidden = ACTIVATIONS[config.activation](gate) * up
        else:
            hidden = ACTIVATIONS[config.activation](hidden)
        update = multiply(hidden, feed_forward.down)
        if not is_pre:
            x, update = normalize(x, update, feed_forward.norm), None
    if stack.final_norm is not None:
        return normalize(x, update, stack.final_norm)
    return x if update is None else x + update
