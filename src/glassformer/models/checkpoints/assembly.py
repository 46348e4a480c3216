"""A model put together from saved tensors, each checked against what the config says."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.functional.quantized import find_numbers
from glassformer.models.baselines import RecurrentConfig, RecurrentLanguage, RecurrentTranslator
from glassformer.models.config import Config
from glassformer.models.decoder import Decoder
from glassformer.models.encoder import Encoder
from glassformer.models.encoder_decoder import EncoderDecoder
from glassformer.models.presets import build
from glassformer.models.quantization import assign_state
from glassformer.models.vision import VisionEncoder
from glassformer.text.special_tokens import ONE, SEVERAL, SpecialTokens

Model = Encoder | Decoder | EncoderDecoder  # of text
Saved = Model | VisionEncoder | RecurrentLanguage | RecurrentTranslator


Shapes = dict[str, tuple[int, ...]]
_AT_ONCE = 1 << 24  # numbers checked at once: their flags take as many bytes


def describe_shapes(config: Config | RecurrentConfig, n_tensors: int, where: str) -> Shapes:
    """The names and shapes of a config's tensors, found on the meta device.

    Nothing is built for a config with more layers than the file has tensors.
    """
    n_layers = config.n_layers
    if isinstance(config, Config) and config.family == "encoder_decoder":
        n_layers += config.decoder_layers
    if n_layers > n_tensors:
        raise CheckpointError(
            f"A model of {n_layers} layers must have at least as many tensors; {where} has "
            f"{n_tensors}. The config belongs to other weights."
        )
    try:
        return {
            name: tuple(place.shape) for name, place in build_on_meta(config).state_dict().items()
        }
    except (RuntimeError, OverflowError):
        raise CheckpointError(
            f"The config in {where} describes tensors that no memory could hold."
        ) from None


def assemble_model(
    config: Config | RecurrentConfig,
    get: Callable[[str], Tensor],
    shapes: Shapes,
    *,
    dtype: torch.dtype,
    device: torch.device | str | None,
    allow_non_finite: bool = False,
) -> Any:
    """The model of a config, ready to use; `get` gives the tensor for each name of ours.

    It is built without memory and filled one tensor at a time.
    """
    state = {}
    for name, shape in shapes.items():
        tensor = get(name)
        if tensor.shape != shape:
            raise CheckpointError(
                f"{name} must have shape {shape} by the config; the saved tensor has "
                f"{tuple(tensor.shape)}. The config belongs to other weights."
            )
        if not allow_non_finite:
            numbers, scale = find_numbers(tensor)
            if numbers.dtype != torch.int8:
                check_finite(name, numbers)
            if scale is not None:
                check_finite(name, scale)
        state[name] = tensor.to(device=device, dtype=dtype).contiguous()
    if isinstance(config, Config) and config.positions.kind == "rotary":
        _check_rotation(config)
    model = build_on_meta(config)
    assign_state(model, state)
    return model.eval()


def check_finite(name: str, tensor: Tensor) -> None:
    """Refuse NaN and infinity; −∞ may be in the bias of the logits, where it forbids a token."""
    flat = tensor.reshape(-1) if tensor.is_contiguous() else tensor.T.reshape(-1)
    for part in flat.split(_AT_ONCE):
        wrong = ~torch.isfinite(part.float() if part.dtype.itemsize == 1 else part)
        if name == "head.bias":
            wrong &= part != -torch.inf
        if bool(wrong.any()):
            raise CheckpointError(
                f"{name} must hold finite numbers; the saved tensor has "
                f"{float(part[wrong][0])}. The file is damaged, or its training diverged; "
                "load(…, allow_non_finite=True) loads it anyway."
            )


def check_tokens(special: SpecialTokens, vocab_size: int, where: str) -> SpecialTokens:
    """The special tokens that the model has; some foreign configs say −1 for none."""

    def is_known(token: int | None) -> bool:
        return token is not None and 0 <= token < vocab_size

    roles = {n: v if is_known(v) else None for n, v in asdict(special).items() if n in ONE}
    several = {n: getattr(special, n) for n in SEVERAL}
    lost = [token for tokens in several.values() for token in tokens if not is_known(token)]
    if lost:
        raise CheckpointError(
            f"Special tokens must be below vocab_size={vocab_size}; {where} names {lost[0]}."
        )
    return SpecialTokens(**roles, **several)


def build_on_meta(config: Config | RecurrentConfig) -> Any:
    """Build a model on the meta device: names and shapes, without memory."""
    return build(config, device="meta")


def _check_rotation(config: Config) -> None:
    try:
        places = torch.tensor([0.0, 1.0, 1e6])
        tables = [config.rotary(local=local).tables(places)[0] for local in (False, True)]
        fits = all(bool(torch.isfinite(cos).all()) for cos in tables)
    except (ArithmeticError, ValueError, TypeError):
        fits = False
    if not fits:
        raise CheckpointError(
            f"The config must describe finite angles; {config.positions} gives others."
        )


def check_names(
    missing: Iterable[str], unexpected: Iterable[str], where: str, *, hint: str = ""
) -> None:
    """Check that all expected tensors are there, and no others."""
    for names, problem in ((sorted(missing), "lacks"), (sorted(unexpected), "has, unexpectedly,")):
        if names:
            shown = ", ".join(names[:3])
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise CheckpointError(
                f"The weights must be those that config.json describes; {where} {problem} "
                f"{shown}{more}.{hint}"
            )
