"""A model put together from saved tensors, each checked against what the config says."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.models.baselines import RecurrentConfig, RecurrentLanguage, RecurrentTranslator
from glassformer.models.config import Config
from glassformer.models.decoder import Decoder
from glassformer.models.encoder import Encoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.presets import build

Model = Encoder | Decoder | EncoderDecoder
Saved = Model | RecurrentLanguage | RecurrentTranslator


def assembled(
    config: Config | RecurrentConfig,
    get: Callable[[str], Tensor],
    *,
    dtype: torch.dtype,
    device: torch.device | str | None,
) -> Any:
    """The model of a config, ready to use; `get` gives the tensor for each name of ours.

    It is built without memory and filled one tensor at a time.
    """
    model = empty(config)
    state = {}
    for name, place in model.state_dict().items():
        tensor = get(name)
        if tensor.shape != place.shape:
            raise CheckpointError(
                f"{name} must have shape {tuple(place.shape)} by the config; the saved tensor has "
                f"{tuple(tensor.shape)}. The config belongs to other weights."
            )
        state[name] = tensor.to(device=device, dtype=dtype).contiguous()
    model.load_state_dict(state, assign=True)
    return model.eval()


def empty(config: Config | RecurrentConfig) -> Any:
    """A model without memory: its names and shapes alone."""
    return build(config, device="meta")


def check_names(
    missing: Iterable[str], unexpected: Iterable[str], where: str, *, hint: str = ""
) -> None:
    """Every tensor must be there, and none that nobody asked for."""
    for names, problem in ((sorted(missing), "lacks"), (sorted(unexpected), "has, unexpectedly,")):
        if names:
            shown = ", ".join(names[:3])
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise CheckpointError(
                f"The weights must be those that config.json describes; {where} {problem} "
                f"{shown}{more}.{hint}"
            )
