"""Our own folders: config.json, model.safetensors and the tokenizer, each with its hash.

    config.json    {"glassformer": 1, "config": …, "special": …, "tokenizer": …,
                    "files": {name: its sha256}, "sha256": that of all this}

The hashes make sure that a damaged file is refused and never used.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from glassformer.errors import CheckpointError, ConfigError
from glassformer.models.baselines import RecurrentConfig, read_config
from glassformer.models.checkpoints.assembly import Saved, assembled, check_names, empty
from glassformer.models.checkpoints.tensors import WEIGHTS, TensorFiles
from glassformer.models.config import Config
from glassformer.storage import sha256, whole_folder
from glassformer.text import SpecialTokens, read_tokenizer

VERSION = 1


def save_own(model: Saved, folder: Path, *, overwrite: bool) -> None:
    """The model with its config and tokenizer, written whole or not at all."""
    tokenizer = model.tokenizer
    with whole_folder(folder, overwrite=overwrite) as new:
        save_file(
            {name: tensor.contiguous() for name, tensor in model.state_dict().items()},
            new / WEIGHTS,
            metadata={"format": "pt"},
        )
        for name, content in ({} if tokenizer is None else tokenizer.files()).items():
            (new / name).write_bytes(content)
        described: dict[str, Any] = {
            "glassformer": VERSION,
            "config": model.config.as_dict(),
            "special": model.special.as_dict(),
            "tokenizer": None
            if tokenizer is None
            else {"kind": tokenizer.kind, "chat_template": tokenizer.chat_template},
            "files": {path.name: sha256(path) for path in sorted(new.iterdir())},
        }
        described["sha256"] = _digest(described)
        (new / "config.json").write_text(
            json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def load_own(
    folder: Path,
    described: dict[str, Any],
    *,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
) -> Saved:
    """The model of a folder that `save_own` wrote; `described` is its config.json."""
    config = read_own_config(folder, described)
    _check_files(folder, described)
    files = TensorFiles.of_folder(folder)
    names = set(empty(config).state_dict())
    check_names(names - files.names, files.names - names, str(folder / WEIGHTS))
    model = assembled(config, files.get, dtype=dtype or files.dtype, device=device)
    model.special = SpecialTokens.from_dict(described.get("special") or {})
    if described.get("tokenizer") is not None:
        tokenizer = read_tokenizer(folder)
        if tokenizer is None:
            raise CheckpointError(f"config.json speaks of a tokenizer; {folder} holds none.")
        tokenizer.chat_template = described["tokenizer"].get("chat_template")
        model.tokenizer = tokenizer
    return model


def read_own_config(folder: Path, described: dict[str, Any]) -> Config | RecurrentConfig:
    """The config in a config.json of ours, whose version and hash must be right."""
    where, version = folder / "config.json", described["glassformer"]
    if not isinstance(version, int) or version > VERSION or version < 1:
        raise CheckpointError(
            f"{where} is of format {version!r}; this glassformer reads up to {VERSION}. "
            "Upgrade glassformer to load it."
        )
    if described.get("sha256") != _digest(described):
        raise CheckpointError(
            f"{where} is not as it was written: its hash does not fit. Restore it; to change a "
            "model's config, load it and save it anew."
        )
    plain = described.get("config")
    if not isinstance(plain, dict):
        raise CheckpointError(f"{where} must hold the model's config; it holds {plain!r}.")
    try:
        return read_config(plain)
    except ConfigError as error:
        raise CheckpointError(f"{where} describes no model: {error}") from None


def _check_files(folder: Path, described: dict[str, Any]) -> None:
    for name, expected in dict(described.get("files") or {}).items():
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder} must hold {name}, as config.json says; it does not.")
        if sha256(folder / name) != expected:
            raise CheckpointError(
                f"{folder / name} is damaged, or not the file that was saved with config.json: its "
                "hash does not fit. Copy or save the folder again."
            )


def _digest(described: dict[str, Any]) -> str:
    """The hash of everything but the hash itself, whatever the order and the spaces."""
    rest = {name: value for name, value in described.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
