"""Fine-tuning a model by low-rank adapters (LoRA): added, trained alone, merged, saved apart."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from glassformer.errors import CheckpointError, ConfigError
from glassformer.functional.quantized import QuantizedWeight
from glassformer.layers.lora import LoRALinear
from glassformer.paths import user_path
from glassformer.settings import (
    Count,
    Positive,
    Share,
    check_bounds,
    quote,
    read_settings,
    summarize_error,
)
from glassformer.storage import atomic_file

M = TypeVar("M", bound=nn.Module)
_MARK = "glassformer.lora"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoRA:
    """Which matrices have adapters, and of which rank; `alpha` / `rank` scales what they add."""

    rank: Count = 8
    alpha: Positive = 16.0
    targets: tuple[str, ...] = ("qkv",)
    dropout: Share = 0.0

    def __post_init__(self) -> None:
        check_bounds(self, "lora.")


def add_lora(
    model: M,
    *,
    rank: int = 8,
    alpha: float = 16.0,
    targets: Sequence[str] = ("qkv",),
    dropout: float = 0.0,
) -> M:
    """Add an adapter to each linear layer with one of these names; nothing else is trained.

    The model itself is changed, and returned. Names are the last part of a layer's path, such as
    qkv, out, up and down.

    >>> import glassformer as gf
    >>> model = gf.add_lora(gf.load("writer"), rank=4, targets=["qkv", "out"])
    >>> sum(p.numel() for p in model.parameters() if p.requires_grad) < 200_000
    True
    """
    settings = LoRA(rank=rank, alpha=alpha, targets=tuple(targets), dropout=dropout)
    if list_adapters(model):
        raise ConfigError("The model has LoRA adapters already; merge or remove them first.")
    layers = {path: part for path, part in model.named_modules() if type(part) is nn.Linear}
    names = {path.rpartition(".")[2] for path in layers}
    unknown = [name for name in settings.targets if name not in names]
    if unknown or not settings.targets:
        raise ConfigError(
            f"targets must be among the linear layers {', '.join(sorted(names))}; got "
            f"{quote(unknown[0] if unknown else ())}."
        )
    model.requires_grad_(False)
    for path, layer in layers.items():
        if path.rpartition(".")[2] in settings.targets:
            _replace(model, path, LoRALinear(layer, rank=rank, alpha=alpha, dropout=dropout))
    return model


def list_adapters(model: nn.Module) -> dict[str, LoRALinear]:
    """The layers that have adapters, by path."""
    return {path: part for path, part in model.named_modules() if isinstance(part, LoRALinear)}


def merge_lora(model: M, *, keep: bool = False) -> M:
    """Add the adapters to their matrices: the same model, as fast as without them.

    With `keep`, `unmerge_lora` can take them out again; without it the layers are plain ones again,
    and the model is saved, quantized and decoded as any other.

    >>> import glassformer as gf
    >>> model = gf.merge_lora(gf.add_lora(gf.load("writer")))
    >>> type(model.decoder.blocks[0].attention.qkv).__name__
    'Linear'
    """
    for path, layer in _require_adapters(model).items():
        if isinstance(layer.weight, QuantizedWeight):
            raise ConfigError(
                f"Adapters cannot be merged into {layer.weight.kind} weights; {path} has some. Add "
                "the saved adapters to the float model."
            )
        layer.merge()
        if not keep:
            _replace(model, path, layer.as_linear())
    if not keep:
        model.requires_grad_(True)
    return model


def unmerge_lora(model: M) -> M:
    """Take merged adapters out of their matrices, up to rounding."""
    for layer in _require_adapters(model).values():
        layer.unmerge()
    return model


def save_lora(
    model: nn.Module, path: str | Path, *, weights: dict[str, Tensor] | None = None
) -> None:
    """Write what was trained, the adapters and any other weights, to one safetensors file.

    `weights` are the model's own, unless others of the same names are given.

    >>> import tempfile
    >>> import glassformer as gf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gf.save_lora(gf.add_lora(gf.load("writer")), f"{folder}/adapter.safetensors")
    """
    adapters = _require_adapters(model)
    first = next(iter(adapters.values()))
    settings = LoRA(
        rank=first.rank,
        alpha=first.scale * first.rank,
        targets=tuple(dict.fromkeys(each.rpartition(".")[2] for each in adapters)),
        dropout=first.dropout,
    )
    tensors = {
        name: (parameter if weights is None else weights[name]).detach().contiguous()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    mark = {"format": "pt", _MARK: json.dumps(asdict(settings))}
    with atomic_file(user_path(path), mark=_MARK.encode()) as new:
        save_file(tensors, new, metadata=mark)


def load_lora(model: M, path: str | Path) -> M:
    """Add the adapters of a file that `save_lora` wrote to the model that they were trained on.

    >>> import tempfile
    >>> import glassformer as gf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gf.save_lora(gf.add_lora(gf.load("writer"), rank=4), f"{folder}/adapter.safetensors")
    ...     model = gf.load_lora(gf.load("writer"), f"{folder}/adapter.safetensors")
    >>> model.decoder.blocks[0].attention.qkv.rank
    4
    """
    path = user_path(path)
    settings, tensors = _read_file(path)
    add_lora(
        model,
        rank=settings.rank,
        alpha=settings.alpha,
        targets=settings.targets,
        dropout=settings.dropout,
    )
    places = dict(model.named_parameters())
    expected = {name for name in places if name.endswith((".lora_a", ".lora_b"))}
    problem = next(iter(sorted(expected - tensors.keys())), None)
    if problem is None:
        wrong = (n for n, t in tensors.items() if n not in places or places[n].shape != t.shape)
        problem = next(wrong, None)
    if problem is not None:
        remove_lora(model)
        raise CheckpointError(
            f"The adapters in {path} must be those of this model; {problem} does not fit. Load the "
            "model that they were trained on."
        )
    with torch.no_grad():
        for name, tensor in tensors.items():
            places[name].copy_(tensor)
            places[name].requires_grad_(True)
    return model


def remove_lora(model: M) -> M:
    """Take all adapters off, merged or not: the layers are as they were before `add_lora`."""
    for path, layer in _require_adapters(model).items():
        layer.unmerge()
        _replace(model, path, layer.as_linear())
    model.requires_grad_(True)
    return model


def fold_adapters(model: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a model as those of one without adapters: each is added to its matrix."""
    folded = {n: t for n, t in weights.items() if not n.endswith((".lora_a", ".lora_b"))}
    for path, layer in list_adapters(model).items():
        if not layer.is_merged:
            narrow, wide = weights[f"{path}.lora_a"], weights[f"{path}.lora_b"]
            folded[f"{path}.weight"] = folded[f"{path}.weight"] + layer.scale * (wide @ narrow)
    return folded


def _read_file(path: Path) -> tuple[LoRA, dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt", device="cpu") as opened:
            described = (opened.metadata() or {}).get(_MARK)
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} must be a file that save_lora wrote; it cannot be read "
            f"({summarize_error(error)})."
        ) from None
    if described is None:
        raise CheckpointError(
            f"{path} must be a file that save_lora wrote; it does not say which adapters it holds."
        )
    try:
        return read_settings(LoRA, json.loads(described), str(path)), tensors
    except (ConfigError, ValueError) as error:
        raise CheckpointError(f"{path} describes no adapters: {error}") from None


def _require_adapters(model: nn.Module) -> dict[str, LoRALinear]:
    adapters = list_adapters(model)
    if not adapters:
        raise ConfigError("The model has no LoRA adapters; add_lora or load_lora adds some.")
    return adapters


def _replace(model: nn.Module, path: str, layer: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    layer.train(model.training)
    setattr(model.get_submodule(parent), name, layer)
