"""GGUF files of the Llama family: names, the permutation, weights made whole at loading."""

import re
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.installation import install_command
from glassformer.models.checkpoints.assembly import (
    Model,
    assemble_model,
    check_names,
    check_tokens,
    describe_shapes,
)
from glassformer.models.checkpoints.gguf_config import DIVISORS, read_config
from glassformer.models.checkpoints.gguf_header import GGUFHeader
from glassformer.models.checkpoints.names import Columns, Origin, Table, part_sizes
from glassformer.models.config import Config
from glassformer.text.ggml import tokenizer_of_header

NAMES: Columns = (
    ("embedding.weight", "token_embd.weight"),
    ("decoder.blocks.{i}.attention_norm.weight", "blk.{i}.attn_norm.weight"),
    ("decoder.blocks.{i}.attention.qkv.{x}", "blk.{i}.attn_[q|k|v].{x}"),
    ("decoder.blocks.{i}.attention.q_norm.weight", "blk.{i}.attn_q_norm.weight"),
    ("decoder.blocks.{i}.attention.k_norm.weight", "blk.{i}.attn_k_norm.weight"),
    ("decoder.blocks.{i}.attention.out.weight", "blk.{i}.attn_output.weight"),
    ("decoder.blocks.{i}.feed_forward_norm.weight", "blk.{i}.ffn_norm.weight"),
    ("decoder.blocks.{i}.feed_forward.up.weight", "blk.{i}.ffn_[gate|up].weight"),
    ("decoder.blocks.{i}.feed_forward.down.weight", "blk.{i}.ffn_down.weight"),
    ("decoder.final_norm.weight", "output_norm.weight"),
    ("head.weight", "output.weight"),
)
QUANTISATIONS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")


class GGUFFile:
    """A GGUF file: its header as a config, its tensors as ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        check_package(path)
        self.header = GGUFHeader(path)
        self.tensors = self.header.tensors
        self.config = read_config(
            self.header.fields,
            {name: tensor.shape for name, tensor in self.tensors.items()},
            self._read(DIVISORS) if DIVISORS in self.tensors else None,
            str(path),
        )

    def load(
        self,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        allow_non_finite: bool = False,
    ) -> Model:
        """The model with its tokenizer, in float32 unless told otherwise."""
        table = Table(NAMES)
        shapes = describe_shapes(self.config, len(self.tensors), str(self.path))
        origins = {name: _require_origin(table.origin(name)) for name in shapes}
        available = set(self.tensors)
        used = {part for origin in origins.values() for part in origin.names}
        check_names(
            (part for origin in origins.values() for part in origin.missing(available)),
            available - used - {DIVISORS},
            str(self.path),
        )

        def get(name: str) -> Tensor:
            sizes = part_sizes(name, shapes[name], self.config)
            return origins[name].read(self._get, available, sizes)

        model = assemble_model(
            self.config,
            get,
            shapes,
            dtype=dtype or torch.float32,
            device=device,
            allow_non_finite=allow_non_finite,
        )
        model.tokenizer, model.special = tokenizer_of_header(self.header.fields, str(self.path))
        if model.tokenizer is not None:
            model.tokenizer.n_known = self.config.vocab_size
        model.special = check_tokens(model.special, self.config.vocab_size, str(self.path))
        return model

    def _get(self, name: str) -> Tensor:
        whole = self._read(name)
        kind = self.header.fields["general.architecture"]
        n_heads = count_permuted_heads(name, kind, self.config)
        if n_heads is None:
            return whole
        if len(whole) != n_heads * self.config.head_dim:
            raise CheckpointError(
                f"{name} in {self.path} must have {n_heads * self.config.head_dim} rows by the "
                f"header; it has {len(whole)}."
            )
        return unpermute_rows(whole, n_heads)

    def _read(self, name: str) -> Tensor:
        import gguf

        tensor = self.tensors[name]
        if tensor.kind not in QUANTISATIONS:
            raise CheckpointError(
                f"Tensors must be of {', '.join(QUANTISATIONS)}; {name} in {self.path} is "
                f"{tensor.kind}."
            )
        kind = gguf.GGMLQuantizationType[tensor.kind]
        plain = {"F32": np.float32, "F16": np.float16}.get(tensor.kind, np.uint8)
        rows = self.header.data(tensor).view(plain).reshape(*tensor.shape[:-1], -1)
        whole = torch.from_numpy(gguf.dequantize(rows, kind).astype(np.float32))
        return whole.reshape(tensor.shape)


def count_permuted_heads(name: str, kind: str, config: Config) -> int | None:
    """How many heads a tensor's rows belong to, where GGUF permutes them; None where it does not.

    It does for the queries and keys of llama alone.
    """
    found = re.search(r"\.attn_([qk])\.", name) if kind == "llama" else None
    if found is None:
        return None
    return config.n_heads if found[1] == "q" else config.n_kv_heads


def unpermute_rows(rows: Tensor, n_heads: int) -> Tensor:
    """Rows of queries or keys as halves: GGUF puts the two that rotate together side by side.

    >>> unpermute_rows(torch.tensor([[0.0], [2.0], [1.0], [3.0]]), 1).flatten()
    tensor([0., 1., 2., 3.])
    """
    pairs = rows.unflatten(0, (n_heads, -1, 2))  # H D/2 2 …
    return pairs.transpose(1, 2).flatten(0, 2)


def permute_rows(rows: Tensor, n_heads: int) -> Tensor:
    """The inverse of `unpermute_rows`.

    >>> permute_rows(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), 1).flatten()
    tensor([0., 2., 1., 3.])
    """
    halves = rows.unflatten(0, (n_heads, 2, -1))  # H 2 D/2 …
    return halves.transpose(1, 2).flatten(0, 2)


def check_package(path: Path) -> None:
    """Refuse with an install hint where the package gguf is missing."""
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise CheckpointError(
            f"{path} needs the package gguf; it is not installed. Run: {install_command('gguf')}"
        ) from None


def _require_origin(origin: Origin | None) -> Origin:
    assert origin is not None  # the config was read from a header of this family
    return origin
