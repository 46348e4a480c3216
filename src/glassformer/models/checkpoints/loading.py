"""From the name of saved weights, wherever they are, to a model.

What reads each kind of source is imported where it is needed: `import glassformer` stays quick.
"""

from pathlib import Path
from typing import Any

import torch

from glassformer.errors import CheckpointError
from glassformer.functional.quantized import KINDS
from glassformer.models.baselines import RecurrentConfig
from glassformer.models.checkpoints.assembly import Saved
from glassformer.models.checkpoints.run_weights import is_run, select_weights
from glassformer.models.config import Config
from glassformer.models.lora import list_adapters
from glassformer.models.presets import PRESETS
from glassformer.models.pretrained import list_pretrained
from glassformer.models.quantization import weight_kind
from glassformer.parsing import read_json
from glassformer.paths import user_path
from glassformer.storage import check_free


def load(
    source: str | Path,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    allow_non_finite: bool = False,
) -> Saved:
    """A model with its weights and its tokenizer, in eval mode.

    ::

        load("reader")              a pretrained model of glassformer
        load("folder")              one that glassformer or transformers saved
        load("run")                 a training run: its finished, best or latest weights
        load("model.gguf")          a GGUF file of the Llama family
        load("hf://ORG/NAME")       a repository of the Hugging Face hub; @REVISION, /FILE.gguf

    `dtype` defaults to the saved one, and to float32 for GGUF and our pretrained models.
    A folder of that name is `./reader`. Weights with NaN or infinity are refused unless
    `allow_non_finite`.

    >>> model = load("reader")
    >>> type(model).__name__, model.name, model.config.dim
    ('Encoder', 'reader', 256)
    """
    path = _find_source(source)
    if dtype is None and str(source) in list_pretrained():
        dtype = torch.float32
    model = _load(path, dtype=dtype, device=device, allow_non_finite=allow_non_finite)
    is_address = str(source) in list_pretrained() or str(source).startswith("hf://")
    model.name = str(source).removeprefix("hf://") if is_address else _name_model(path)
    return model


def _load(path: Path, **options: Any) -> Saved:
    if path.is_file():
        from glassformer.models.checkpoints.gguf import GGUFFile

        return GGUFFile(path).load(**options)
    values = _read_description(path)
    if "glassformer" in values:
        from glassformer.models.checkpoints.own import load_own

        return load_own(path, values, **options)
    from glassformer.models.checkpoints.huggingface import ForeignFolder

    return ForeignFolder(path, values).load(**options)


def load_config(source: str | Path) -> Config:
    """The config of saved weights, without loading them."""
    path = _find_source(source)
    if path.is_file():
        from glassformer.models.checkpoints.gguf import GGUFFile

        return GGUFFile(path).config
    values = _read_description(path)
    if "glassformer" in values:
        from glassformer.models.checkpoints.own import read_own_config

        found = read_own_config(path, values)
        if isinstance(found, RecurrentConfig):
            raise CheckpointError(
                f"A Transformer is asked for; {path} holds an LSTM. Load it whole."
            )
        return found
    from glassformer.models.checkpoints.huggingface import ForeignFolder

    return ForeignFolder(path, values).config


def save(
    model: Saved, folder: str | Path, *, layout: str = "glassformer", overwrite: bool = False
) -> None:
    """The model with its tokenizer, as a folder that is written whole or not at all.

    `layout` is "glassformer", or for transformers "huggingface" (the architecture that fits) or an
    architecture's name, such as "llama"; "gguf" writes one file, whose name ends in .gguf.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(load("reader"), f"{folder}/copy")
    ...     load(f"{folder}/copy").name
    'copy'
    """
    folder = check_target(folder, layout=layout, overwrite=overwrite)
    if layout != "glassformer" and (kind := weight_kind(model)) in KINDS:
        raise CheckpointError(
            f"{kind} weights are saved in the layout glassformer; got layout={layout!r}. Save the "
            "model that was quantized."
        )
    if list_adapters(model):
        raise CheckpointError(
            "A model with LoRA adapters cannot be saved whole. Save them apart with save_lora, or "
            "merge them first with merge_lora."
        )
    if layout == "glassformer":
        from glassformer.models.checkpoints.own import save_own

        save_own(model, folder, overwrite=overwrite)
    elif layout == "gguf":
        from glassformer.models.checkpoints.gguf_export import save_gguf

        save_gguf(model, folder)
    else:
        from glassformer.models.checkpoints.huggingface import save_foreign

        save_foreign(model, folder, layout, overwrite=overwrite)


def check_target(folder: str | Path, *, layout: str, overwrite: bool) -> Path:
    """Where a model is to be saved; refused before a large one is loaded for nothing."""
    from glassformer.models.checkpoints.architectures import ARCHITECTURES

    path = user_path(folder)
    if layout not in {"glassformer", "huggingface", "gguf", *ARCHITECTURES}:
        raise CheckpointError(
            "layout must be glassformer, huggingface, gguf or one of "
            f"{', '.join(ARCHITECTURES)}; got {layout!r}."
        )
    if layout == "gguf" and path.suffix != ".gguf":
        raise CheckpointError(f"The name of a GGUF file must end in .gguf; got {path.name!r}.")
    check_free(path, overwrite=overwrite)
    return path


def _find_source(source: str | Path) -> Path:
    if str(source).startswith("hf://"):
        from glassformer.models.checkpoints.hub import fetch

        return fetch(str(source))
    if str(source) in list_pretrained():
        return list_pretrained()[str(source)]
    path = user_path(source)
    if not path.exists():
        preset = f" {source!r} is a preset, which has no weights: build it." * (source in PRESETS)
        raise CheckpointError(
            f"A model must be {' or '.join(list_pretrained())}, a folder, a GGUF file or "
            f"hf://ORG/NAME; {str(source)!r} is not there.{preset}"
        )
    if path.is_file() and path.suffix != ".gguf":
        raise CheckpointError(
            f"A model must be a folder, a GGUF file or hf://ORG/NAME; {path} is another file. "
            "Give the folder that holds it."
        )
    return select_weights(path) if is_run(path) else path


def _name_model(path: Path) -> str:
    path = path.resolve()
    return f"{path.parent.name}/{path.name}" if is_run(path.parent) else path.name


def _read_description(folder: Path) -> dict[str, Any]:
    if not (folder / "config.json").is_file():
        files = sorted(p.name for p in folder.glob("*.gguf"))
        raise CheckpointError(
            f"A model's folder must hold config.json; {folder} does not."
            + (f" Did you mean {folder / files[0]}?" if files else "")
        )
    values = read_json(folder / "config.json")
    if "glassformer" not in values and "model_type" not in values:
        raise CheckpointError(
            f"{folder / 'config.json'} must be glassformer's or transformers' (with model_type); "
            "it is neither."
        )
    return values
