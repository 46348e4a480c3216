"""A model as a GGUF file: names, permutation and header of `gguf`, in the other direction.

Matrices keep the model's dtype; norms and biases are float32, as ggml computes with them.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import CheckpointError, GlassformerError
from glassformer.models.checkpoints.assembly import Saved
from glassformer.models.checkpoints.fidelity import describe_loss, part_names
from glassformer.models.checkpoints.gguf import (
    NAMES,
    check_package,
    count_permuted_heads,
    permute_rows,
)
from glassformer.models.checkpoints.gguf_config import (
    ARCHITECTURES,
    DIVISORS,
    read_config,
    write_config,
)
from glassformer.models.checkpoints.names import Table, part_sizes
from glassformer.models.config import Config
from glassformer.storage import atomic_file
from glassformer.text.ggml_export import header_of_tokenizer

_KINDS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}  # general.file_type
_FAMILY_NAMES = {
    "encoder": "an encoder",
    "encoder_decoder": "an encoder-decoder",
    "vision": "a vision encoder",
}


def save_gguf(model: Saved, path: Path) -> None:
    """The model with its tokenizer in one file, written whole or not at all."""
    check_package(path)
    config = _check_family(model.config)
    dtype = next(iter(model.state_dict().values())).dtype
    if dtype not in _KINDS:
        raise CheckpointError(
            "A GGUF file holds float32, float16 or bfloat16; this model's weights are "
            f"{str(dtype).removeprefix('torch.')}."
        )
    fields, divisors = _express(config)
    fields |= {"general.name": path.stem, "general.file_type": _FILE_TYPES[_KINDS[dtype]]}
    fields |= header_of_tokenizer(model.tokenizer, model.special, config.vocab_size)
    tensors = {} if divisors is None else {DIVISORS: divisors}
    for name, tensor in model.state_dict().items():
        tensors |= _foreign_parts(name, tensor, config, fields["general.architecture"])
    with atomic_file(path, mark=b"GGUF") as unfinished:
        _write(unfinished, fields, tensors)


def _check_family(config: Any) -> Config:
    family = "an LSTM" if not isinstance(config, Config) else _FAMILY_NAMES.get(config.family)
    if family is not None:
        raise CheckpointError(
            f"A GGUF file can hold a decoder of the kinds {', '.join(ARCHITECTURES)}; this model "
            f"is {family}."
        )
    return config


def _express(config: Config) -> tuple[dict[str, Any], Tensor | None]:
    """The header of a config, which must say all that the config says."""
    table = Table(NAMES)
    fields, divisors = write_config(config)
    kind = fields["general.architecture"]
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(part_names(config, table), ())
    shapes["token_embd.weight"] = (config.vocab_size, config.dim)
    try:
        back = read_config(fields, shapes, divisors, "the GGUF file to be written")
        problem = describe_loss(config, back, table)
    except GlassformerError as error:
        problem = str(error).rstrip(".")
    if problem is None and kind == "qwen3" and config.biases != "none":
        problem = f"biases is {config.biases!r}, and qwen3 has none"
    if problem is not None:
        raise CheckpointError(f"A GGUF file of {kind} cannot hold a model like this: {problem}.")
    return fields, divisors


def _foreign_parts(name: str, tensor: Tensor, config: Config, kind: str) -> dict[str, Tensor]:
    origin = Table(NAMES).origin(name)
    assert origin is not None  # the config was read back with the same table
    found = {}
    for theirs, piece in origin.write(tensor, part_sizes(name, tensor.shape, config)):
        n_heads = count_permuted_heads(theirs, kind, config)
        whole = piece if n_heads is None else permute_rows(piece, n_heads)
        found[theirs] = whole if whole.ndim > 1 else whole.float()
    return found


def _write(path: Path, fields: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, fields["general.architecture"])
    types: dict[type, Any] = {str: writer.add_string, bool: writer.add_bool, int: writer.add_uint32}
    types |= {float: writer.add_float32, list: writer.add_array}
    for name, value in fields.items():
        if name != "general.architecture":  # the writer has put it first
            types[type(value)](name, value)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType[_KINDS[tensor.dtype]]
        raw = tensor.detach().cpu().contiguous().view(torch.uint8)  # numpy has no bfloat16
        writer.add_tensor(name, raw.numpy(), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
