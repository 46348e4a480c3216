"""Our own folders: config.json, model.safetensors and the tokenizer, each with its hash.

    config.json    {"glassformer": 1, "config": …, "special": …, "tokenizer": …,
                    "files": {name: its sha256}, "sha256": that of all this}

The hashes make sure that a damaged file is refused and never used. Format 2 has quantized
weights ("weights": "int8" or "fp8"): each matrix is saved as it is, with its scales in NAME.scale.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from glassformer.errors import CheckpointError, ConfigError
from glassformer.functional.quantized import KINDS, QuantizedWeight
from glassformer.models.baselines import RecurrentConfig, read_config
from glassformer.models.checkpoints.assembly import (
    Saved,
    assemble_model,
    build_on_meta,
    check_names,
    check_tokens,
    describe_shapes,
)
from glassformer.models.checkpoints.tensors import WEIGHTS, TensorFiles
from glassformer.models.config import Config
from glassformer.models.quantization import list_matrices, weight_kind
from glassformer.parsing import read_json
from glassformer.paths import is_file_name
from glassformer.settings import quote
from glassformer.storage import atomic_file, atomic_folder, sha256, write_atomically
from glassformer.text import SpecialTokens, read_tokenizer

VERSION = 2  # written only where 1 cannot hold the model
SCALE = ".scale"


def save_own(model: Saved, folder: Path, *, overwrite: bool) -> None:
    """The model with its config and tokenizer, written whole or not at all."""
    tokenizer = model.tokenizer
    with atomic_folder(folder, overwrite=overwrite) as new:
        state, kind = {}, weight_kind(model)
        for name, tensor in model.state_dict().items():
            if isinstance(tensor, QuantizedWeight):
                state[name], state[name + SCALE] = tensor.numbers, tensor.scale
            else:
                state[name] = tensor.contiguous()
        save_file(state, new / WEIGHTS, metadata={"format": "pt"})
        for name, content in ({} if tokenizer is None else tokenizer.files()).items():
            (new / name).write_bytes(content)
        plain: dict[str, Any] = {
            "glassformer": VERSION if kind in KINDS else 1,
            **({"weights": kind} if kind in KINDS else {}),
            "config": model.config.as_dict(),
            "special": model.special.as_dict(),
            "tokenizer": None
            if tokenizer is None
            else {"kind": tokenizer.kind, "chat_template": tokenizer.chat_template},
            "files": {path.name: sha256(path) for path in sorted(new.iterdir())},
        }
        (new / "config.json").write_text(_describe(plain), encoding="utf-8")


def add_file(folder: Path, name: str, content: bytes) -> None:
    """Add a file to a saved model, or replace it, and its hash in config.json."""
    plain = read_json(folder / "config.json")
    read_own_config(folder, plain)
    with atomic_file(folder / name) as file:
        file.write_bytes(content)
    plain["files"] = dict(sorted({**plain["files"], name: sha256(folder / name)}.items()))
    write_atomically(folder / "config.json", _describe(plain))


def _describe(plain: dict[str, Any]) -> str:
    """The text of config.json, with the hash of all that it says."""
    return json.dumps(plain | {"sha256": _digest(plain)}, indent=2, ensure_ascii=False) + "\n"


def load_own(
    folder: Path,
    plain: dict[str, Any],
    *,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    allow_non_finite: bool = False,
) -> Saved:
    """The model of a folder that `save_own` wrote; `plain` is its config.json."""
    config, where = read_own_config(folder, plain), folder / "config.json"
    _check_files(folder, plain)
    special = SpecialTokens.from_dict(plain.get("special") or {}, f"special of {where}")
    template = _chat_template(plain.get("tokenizer"), where)
    files = TensorFiles.of_folder(folder)
    shapes = describe_shapes(config, len(files.names), str(folder / WEIGHTS))
    kind = _read_kind(plain, config, where)
    matrices = {*list_matrices(build_on_meta(config))} if kind is not None else set()
    expected = shapes.keys() | {name + SCALE for name in matrices}
    check_names(expected - files.names, files.names - expected, str(folder / WEIGHTS))
    dtype = dtype or files.common_dtype(shapes.keys() - matrices)

    def get(name: str) -> Tensor:
        if kind is None or name not in matrices:
            return files.get(name)
        return _get_quantized(files, name, kind, dtype)

    model = assemble_model(
        config,
        get,
        shapes,
        dtype=dtype,
        device=device,
        allow_non_finite=allow_non_finite,
    )
    model.special = check_tokens(special, config.vocab_size, str(where))
    if plain.get("tokenizer") is not None:
        tokenizer = read_tokenizer(folder)
        if tokenizer is None:
            raise CheckpointError(f"config.json speaks of a tokenizer; {folder} holds none.")
        tokenizer.chat_template, tokenizer.n_known = template, config.vocab_size
        model.tokenizer = tokenizer
    return model


def _read_kind(plain: dict[str, Any], config: Config | RecurrentConfig, where: Path) -> str | None:
    """What the matrices are quantized to; None for floats."""
    kind = plain.get("weights")
    if kind is not None and (kind not in (*KINDS,) or not isinstance(config, Config)):
        raise CheckpointError(
            f"weights in {where} must be {' or '.join(KINDS)}, and of a Transformer; it is "
            f"{quote(kind)}."
        )
    return kind


def _get_quantized(files: TensorFiles, name: str, kind: str, dtype: torch.dtype) -> QuantizedWeight:
    numbers, scale = files.get(name, kind=KINDS[kind]), files.get(name + SCALE)
    if numbers.ndim not in (2, 3) or scale.shape != numbers.shape[:-1]:
        raise CheckpointError(
            f"{name} must be {kind} matrices with a scale for each row; the file has "
            f"{tuple(numbers.shape)} and {tuple(scale.shape)}."
        )
    return QuantizedWeight(numbers, scale.float(), dtype)


def read_own_config(folder: Path, plain: dict[str, Any]) -> Config | RecurrentConfig:
    """The config in a config.json of ours, whose version and hash must be right."""
    where, version = folder / "config.json", plain["glassformer"]
    if not isinstance(version, int) or version > VERSION or version < 1:
        raise CheckpointError(
            f"{where} is of format {quote(version)}; this glassformer reads up to {VERSION}. "
            "Upgrade glassformer to load it."
        )
    if plain.get("sha256") != _digest(plain):
        raise CheckpointError(
            f"{where} is not as it was written: its hash does not fit. Restore it; to change a "
            "model's config, load it and save it anew."
        )
    config = plain.get("config")
    if not isinstance(config, dict):
        raise CheckpointError(f"{where} must hold the model's config; it holds {quote(config)}.")
    try:
        return read_config(config)
    except ConfigError as error:
        raise CheckpointError(f"{where} describes no model: {error}") from None


def _check_files(folder: Path, plain: dict[str, Any]) -> None:
    files = plain.get("files")
    if not isinstance(files, dict) or WEIGHTS not in files:
        raise CheckpointError(
            f"{folder / 'config.json'} must list the files of the model with their hashes; it has "
            f"{quote(files)}."
        )
    for name, expected in files.items():
        if not is_file_name(name):
            raise CheckpointError(
                f"{folder / 'config.json'} must name files beside it; it names {quote(name)}."
            )
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} must hold {name}, as config.json says; it does not.")
        if sha256(folder / name) != expected:
            raise CheckpointError(
                f"{folder / name} is damaged, or not the file that was saved with config.json: its "
                "hash does not fit. Copy or save the folder again."
            )


def _chat_template(tokenizer: Any, where: Path) -> str | None:
    template = tokenizer.get("chat_template") if isinstance(tokenizer, dict) else None
    if not isinstance(tokenizer, dict | None) or not isinstance(template, str | None):
        raise CheckpointError(
            f"tokenizer in {where} must be a table with a chat_template; it is {quote(tokenizer)}."
        )
    return template


def _digest(plain: dict[str, Any]) -> str:
    """The hash of everything but the hash itself, whatever the order and the spaces."""
    rest = {name: value for name, value in plain.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
