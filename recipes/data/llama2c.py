"""A model in the format of llama2.c: one file with seven sizes and its float32 weights.

    dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, max_len      7 × int32
    embedding; of all layers: attention norms, q, k, v, out, feed-forward norms, gate, down, up;
    the final norm, and tables of rotations that are computed anew here

A vocabulary lies behind it, or in a file of its own: the longest token's length, then for each
token its score, its length and its bytes. A negative vocab_size says that the output layer is a
matrix of its own; here it must be the embedding.
"""

import struct

import torch
from torch import Tensor

import glassformer as gf
from glassformer.errors import DataError
from glassformer.models import Config, Decoder
from glassformer.models.config import Norms, Positions

_HEADER = struct.Struct("<7i")
BEGIN = 1  # the token between two texts, in the vocabulary of Llama 2


def read_model(content: bytes) -> tuple[Decoder, bytes]:
    """The model at the start of these bytes, and the bytes behind it."""
    if len(content) < _HEADER.size:
        raise DataError(f"A llama2.c model begins with 28 bytes of sizes; got {len(content)}.")
    dim, hidden, n_layers, n_heads, n_kv_heads, vocab, max_len = _HEADER.unpack_from(content)
    if min(dim, hidden, n_layers, n_heads, n_kv_heads, vocab, max_len) < 1:
        raise DataError(
            "A llama2.c model begins with seven positive sizes; got "
            f"{_HEADER.unpack_from(content)}. Is it another version of the format?"
        )
    head_dim = dim // n_heads
    keys = n_kv_heads * head_dim
    shapes = {
        "embedding": (vocab, dim),
        "attention_norm": (n_layers, dim),
        "q": (n_layers, dim, dim),
        "k": (n_layers, keys, dim),
        "v": (n_layers, keys, dim),
        "out": (n_layers, dim, dim),
        "feed_forward_norm": (n_layers, dim),
        "gate": (n_layers, hidden, dim),
        "down": (n_layers, dim, hidden),
        "up": (n_layers, hidden, dim),
        "final_norm": (dim,),
        "rotations": (2, max_len, head_dim // 2),
    }
    parts: dict[str, Tensor] = {}
    at = _HEADER.size
    for name, shape in shapes.items():
        n = torch.Size(shape).numel()
        if at + 4 * n > len(content):
            raise DataError(
                f"The model of width {dim} needs {at + 4 * n} bytes up to its {name}; "
                f"the file has {len(content)}."
            )
        parts[name] = torch.frombuffer(bytearray(content[at : at + 4 * n]), dtype=torch.float32)
        parts[name] = parts[name].view(shape)
        at += 4 * n
    config = Config(
        family="decoder",
        vocab_size=vocab,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        hidden_dim=hidden,
        max_len=max_len,
        activation="silu",
        gated=True,
        biases="none",
        positions=Positions(kind="rotary", layout="interleaved"),
        norms=Norms(kind="rms", eps=1e-5),
    )
    model = gf.build(config)
    model.load_state_dict(_name_weights(parts, n_layers))
    return model.eval(), content[at:]


def _name_weights(parts: dict[str, Tensor], n_layers: int) -> dict[str, Tensor]:
    found = {
        "embedding.weight": parts["embedding"],
        "decoder.final_norm.weight": parts["final_norm"],
    }
    for i in range(n_layers):
        here = {name: parts[name][i] for name in parts if parts[name].shape[0] == n_layers}
        block = f"decoder.blocks.{i}."
        found |= {
            f"{block}attention_norm.weight": here["attention_norm"],
            f"{block}attention.qkv.weight": torch.cat([here["q"], here["k"], here["v"]]),
            f"{block}attention.out.weight": here["out"],
            f"{block}feed_forward_norm.weight": here["feed_forward_norm"],
            f"{block}feed_forward.up.weight": torch.cat([here["gate"], here["up"]]),
            f"{block}feed_forward.down.weight": here["down"],
        }
    return found


def read_vocabulary(content: bytes, size: int) -> list[bytes]:
    """The bytes of each token."""
    found, at = [], 4
    for _ in range(size):
        if at + 8 > len(content):
            raise DataError(f"A vocabulary of {size} tokens ends after {len(found)}.")
        _, n = struct.unpack_from("<fi", content, at)
        found.append(content[at + 8 : at + 8 + n])
        at += 8 + n
    return found


def decode(tokens: list[int], vocabulary: list[bytes]) -> str:
    """The text of tokens; the space before the first word is not part of it."""
    content = b"".join(vocabulary[token] for token in tokens)
    return content.decode("utf-8", errors="replace").removeprefix(" ")
