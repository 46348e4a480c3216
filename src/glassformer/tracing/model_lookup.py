"""Which model is meant: the one that torch.compile, PEFT or a module of one's own wraps."""

from typing import Any

from torch import nn

from glassformer.errors import TraceError
from glassformer.models import Decoder, Encoder, EncoderDecoder


def find_model(given: Any) -> Any:
    """The outermost model of ours or of transformers; None for nn.MultiheadAttention alone."""
    if not isinstance(given, nn.Module):
        raise TraceError(f"watch takes a model, a torch.nn.Module; got {type(given).__name__}.")
    modules = list(given.modules())
    kinds: tuple[type, ...] = (Encoder, Decoder, EncoderDecoder, *_foreign_kinds(modules))
    outermost: list[nn.Module] = []
    inside: set[nn.Module] = set()
    for module in modules:  # parents come before their children
        if isinstance(module, kinds) and module not in inside:
            outermost.append(module)
            inside.update(module.modules())
    if len(outermost) > 1:
        raise TraceError(
            f"watch takes one model; {type(given).__name__} holds {len(outermost)}: "
            f"{', '.join(sorted(type(module).__name__ for module in outermost))}. Watch each by "
            "itself: contexts can be nested."
        )
    has_torch = any(isinstance(module, nn.MultiheadAttention) for module in modules)
    if outermost and not isinstance(outermost[0], kinds[3:]):
        return outermost[0]
    if outermost:
        return _with_attention(outermost[0], has_torch)
    if has_torch:
        return None
    raise TraceError(
        f"watch takes a model of glassformer or transformers, or a module with "
        f"nn.MultiheadAttention; {type(given).__name__} is none of these. Use record for operands "
        "of your own."
    )


def _foreign_kinds(modules: list[nn.Module]) -> tuple[type, ...]:
    """PreTrainedModel, if a part comes from transformers or is built on it."""
    parents = {parent for kind in {type(module) for module in modules} for parent in kind.__mro__}
    if not any(kind.__module__.partition(".")[0] == "transformers" for kind in parents):
        return ()
    from transformers import PreTrainedModel

    return (PreTrainedModel,)


def _with_attention(model: nn.Module, has_torch: bool) -> nn.Module | None:
    """A model of transformers; None where its only attention is PyTorch's module."""
    from glassformer.tracing.site_names import sounds_like_attention
    from glassformer.tracing.sources.transformers_interface import uses_interface

    kinds = {type(module) for module in model.modules()}
    if any(map(uses_interface, kinds)):
        return model
    if any(sounds_like_attention(k) and k is not nn.MultiheadAttention for k in kinds):
        return model
    if has_torch:
        return None
    raise TraceError(f"{type(model).__name__} has no attention: there is nothing to watch.")
