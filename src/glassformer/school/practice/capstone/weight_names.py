"""The library's weights under the names that exercises give to their parameters."""

from torch import Tensor

from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.config import Config


def name_weights(model: EncoderDecoder | Decoder, config: Config) -> dict[str, Tensor]:
    """The weights under the names that the exercises give to their parameters."""
    named: dict[str, Tensor] = {"embedding.weight": model.embedding.weight.detach()}
    if not model.head.output.tied:
        named["head.weight"] = model.head.weight.detach()
    stacks = {"decoder": model.decoder}
    if isinstance(model, EncoderDecoder):
        stacks["encoder"] = model.encoder
    for side, stack in stacks.items():
        for name, tensor in stack.final_norm.state_dict().items():
            named[f"{side}.final_norm.{name}"] = tensor
        for i, block in enumerate(stack.blocks):
            for name, tensor in block.state_dict().items():
                named |= _name_parameter(f"{side}.{i}.", name, tensor, config)
    return named


def _name_parameter(prefix: str, name: str, tensor: Tensor, config: Config) -> dict[str, Tensor]:
    """A fused projection under the names of the matrices that it joins."""
    site, _, kind = name.rpartition(".")
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    part, _, layer = site.rpartition(".")
    match layer:
        case "qkv":
            layers, widths = ("q_proj", "k_proj", "v_proj"), [q, kv, kv]
        case "kv":
            layers, widths = ("k_proj", "v_proj"), [kv, kv]
        case "q":
            layers, widths = ("q_proj",), [q]
        case "out":
            layers, widths = ("out_proj",), [len(tensor)]
        case "up" if config.gated:
            layers, widths = ("gate", "up"), [config.hidden_dim] * 2
        case _:
            return {prefix + name: tensor}
    pieces = tensor.split(widths)
    return {f"{prefix}{part}.{each}.{kind}": p for each, p in zip(layers, pieces, strict=True)}
