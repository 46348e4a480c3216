"""Folders in the layout of Hugging Face's transformers, read and written by a table of names."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from glassformer.errors import CheckpointError, ConfigError, GlassformerError
from glassformer.models.checkpoints.architectures import ARCHITECTURES, Architecture, Foreign
from glassformer.models.checkpoints.assembly import (
    Saved,
    assemble_model,
    check_names,
    check_tokens,
    describe_shapes,
)
from glassformer.models.checkpoints.fidelity import describe_loss, part_names
from glassformer.models.checkpoints.foreign_tokenizer import (
    foreign_tokenizer_files,
    read_foreign_tokenizer,
)
from glassformer.models.checkpoints.names import Origin, is_same, part_sizes
from glassformer.models.checkpoints.pooling import read_pooling
from glassformer.models.checkpoints.tensors import WEIGHTS, TensorFiles
from glassformer.models.config import Config
from glassformer.settings import quote
from glassformer.storage import atomic_folder
from glassformer.text import SpecialTokens


class ForeignFolder:
    """A folder that transformers wrote: its config as ours, and our tensors made of its own."""

    def __init__(self, folder: Path, values: dict[str, Any]) -> None:
        self.folder, self.values = folder, values
        self.architecture = _find_architecture(values, folder)
        self.files = TensorFiles.of_folder(folder)
        stored = self.files.names
        self.stored = {self.architecture.with_prefix(name, stored): name for name in stored}
        self.config = self._read_config()

    def load(
        self,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        allow_non_finite: bool = False,
    ) -> Saved:
        """The model with its tokenizer."""
        shapes = describe_shapes(self.config, len(self.stored), str(self.folder))
        origins = self._origins(shapes)
        available = set(self.stored)
        used = {name for origin in origins.values() for name in origin.names}
        check_names(
            (name for origin in origins.values() for name in origin.missing(available)),
            (n for n in available - used if not self.architecture.is_ignored(n)),
            str(self.folder),
            hint=f" Known layouts of {self.architecture.model_type}: the bare model and the ones "
            f"like {self.architecture.write(self.config)['architectures'][0]}.",
        )

        def get(name: str) -> Tensor:
            sizes = part_sizes(name, shapes[name], self.config)
            return origins[name].read(self._get, available, sizes)

        model = assemble_model(
            self.config,
            get,
            shapes,
            dtype=dtype or self.files.dtype,
            device=device,
            allow_non_finite=allow_non_finite,
        )
        model.tokenizer, special = read_foreign_tokenizer(self.folder, self.values)
        if model.tokenizer is not None:
            model.tokenizer.n_known = self.config.vocab_size
        model.special = check_tokens(special, self.config.vocab_size, str(self.folder))
        return model

    def _read_config(self) -> Config:
        if "quantization_config" in self.values:
            raise CheckpointError(
                f"Weights must be of floating point; those in {self.folder} are quantised "
                "(quantization_config). Load a version that is not, or a GGUF file."
            )
        try:
            config = self.architecture.read(Foreign(self.values), set(self.stored))
        except ConfigError as error:
            raise CheckpointError(
                f"{self.folder / 'config.json'} describes no model: {error}"
            ) from None
        config = config.replace(
            output=replace(config.output, pooling=read_pooling(self.folder, config.output.pooling))
        )
        return self._with_its_own_head(config)

    def _with_its_own_head(self, config: Config) -> Config:
        """As transformers does: an output matrix that is there and differs is not tied."""
        table = self.architecture.table(config)
        head, embedding = table.origin("head.weight"), table.origin("embedding.weight")
        if not config.output.tied or head is None or embedding is None:
            return config
        present = [name for name in embedding.names if name in self.stored]
        if head.parts[0] not in self.stored or not present:
            return config
        if is_same(self._get(head.parts[0]), self._get(present[0])):
            return config
        return config.replace(output=replace(config.output, tied=False))

    def _origins(self, names: Iterable[str]) -> dict[str, Origin]:
        table = self.architecture.table(self.config)
        origins = {name: _require_origin(table.origin(name)) for name in names}
        head = table.origin("head.weight")
        if self.config.output.tied and head is not None:
            embedding = origins["embedding.weight"]
            origins["embedding.weight"] = replace(
                embedding, copies=(*embedding.copies, *head.parts)
            )
        return origins

    def _get(self, name: str) -> Tensor:
        return self.files.get(self.stored[name])


def save_foreign(model: Saved, folder: Path, layout: str, *, overwrite: bool) -> None:
    """The model as transformers reads it; "huggingface" finds the architecture that fits."""
    if not isinstance(model.config, Config):
        raise CheckpointError(
            "transformers has no LSTMs of this kind; save with layout='glassformer'."
        )
    architecture, values = choose_architecture(model.config, layout)
    table = architecture.table(model.config)
    written = {
        theirs: piece
        for name, tensor in model.state_dict().items()
        for theirs, piece in _require_origin(table.origin(name)).write(
            tensor, part_sizes(name, tensor.shape, model.config)
        )
    }
    values["dtype"] = str(next(iter(written.values())).dtype).removeprefix("torch.")
    values |= special_token_ids(model.special)
    with atomic_folder(folder, overwrite=overwrite) as new:
        save_file(written, new / WEIGHTS, metadata={"format": "pt"})
        (new / "config.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        if model.tokenizer is not None:
            for name, content in foreign_tokenizer_files(model.tokenizer, model.special).items():
                (new / name).write_bytes(content)


def choose_architecture(config: Config, layout: str) -> tuple[Architecture, dict[str, Any]]:
    """The architecture of a layout and its config.json, which must say all that ours says."""
    tried = list(ARCHITECTURES) if layout == "huggingface" else [layout]
    problems: dict[str, str] = {}
    for name in tried:
        architecture = ARCHITECTURES[name]
        values, problem = _express_config(architecture, config)
        if problem is None:
            return architecture, values
        problems[name] = problem
    if layout == "huggingface":
        raise CheckpointError(
            f"No architecture known here is a {config.family} like this one; tried "
            f"{', '.join(tried)}. Save it in our own layout, or name one of these to hear why not."
        )
    raise CheckpointError(f"A {layout} model cannot be like this one: {problems[layout]}.")


def _express_config(
    architecture: Architecture, config: Config
) -> tuple[dict[str, Any], str | None]:
    values = {"model_type": architecture.model_type, **architecture.write(config)}
    try:
        table = architecture.table(config)
        back = architecture.read(Foreign(values), part_names(config, table))
    except GlassformerError as error:
        return values, str(error).rstrip(".")
    return values, describe_loss(config, back, table)


def _require_origin(origin: Origin | None) -> Origin:
    assert origin is not None  # a config that an architecture reads has no other tensors
    return origin


def _find_architecture(values: dict[str, Any], folder: Path) -> Architecture:
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise CheckpointError(
            f"model_type must be one of {', '.join(ARCHITECTURES)}; {folder / 'config.json'} says "
            f"{quote(kind)}. glassformer knows no table of names for it."
        )
    return ARCHITECTURES[kind]


def special_token_ids(special: SpecialTokens) -> dict[str, Any]:
    """The special tokens, as transformers' configs name them."""
    ends = list(special.end)
    named = {
        "bos_token_id": special.begin,
        "eos_token_id": ends[0] if len(ends) == 1 else ends or None,
        "pad_token_id": special.pad,
        "decoder_start_token_id": special.start[0] if special.start else None,
        "forced_bos_token_id": special.start[1] if len(special.start) > 1 else None,
        "bad_words_ids": [[token] for token in special.never] or None,
    }
    return {name: value for name, value in named.items() if value is not None}
