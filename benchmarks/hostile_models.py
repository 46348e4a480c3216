"""Samples of models and tokenizers for benchmarks/hostile.py, and what holds for one that loads."""

import contextlib
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import glassformer as gf
from glassformer.models import Config, Norms, Output, Positions, build
from glassformer.models.checkpoints import load, save
from glassformer.text import learn_tokenizer, read_tokenizer

COUNTED = [("one", ""), ("two", "s"), ("three", "s"), ("old", ""), ("red", "s")] * 8
LINES = [f"the {n} cat{s} sat on mat {i}, and 我 saw it." for i, (n, s) in enumerate(COUNTED)]
TEXT = "the cat sat on 我."


# ── models ──


def learned(kind: str = "byte-bpe", around: str = "both") -> Any:
    sized = {"byte-bpe": 300, "bpe": 330, "wordpiece": 90}
    return learn_tokenizer(LINES, kind, sized.get(kind), around=around)  # type: ignore[arg-type]


def make_model(**changes: Any) -> Any:
    tokenizer, special = learned()
    torch.manual_seed(1)
    values = {"family": "decoder", "vocab_size": tokenizer.vocab_size, "dim": 16, "n_layers": 2,
              "n_heads": 4, "n_kv_heads": 2, "max_len": 32, "hidden_dim": 24} | changes  # fmt: skip
    model: Any = build(Config(**values)).eval()
    model.tokenizer, model.special = tokenizer, special
    return model


def make_llama() -> Any:
    rms = Norms(kind="rms")
    return make_model(gated=True, activation="silu", biases="none", norms=rms,
                  positions=Positions(kind="rotary"))  # fmt: skip


def make_gpt2() -> Any:
    return make_model(n_kv_heads=None, activation="gelu_tanh")


def make_bert() -> Any:
    norms = Norms(place="post", final=False, embedding=True, eps=1e-12)
    return make_model(family="encoder", n_kv_heads=None, norms=norms, n_token_types=2)


def make_t5() -> Any:
    return make_model(family="encoder_decoder", n_kv_heads=None, biases="none", activation="relu",
                  norms=Norms(kind="rms", eps=1e-6), attention_scale=1.0,
                  positions=Positions(kind="relative", n_buckets=8, max_distance=16),
                  output=Output(scale=16**-0.5))  # fmt: skip


def saving(make: Callable[[], Any], layout: str) -> Callable[[Path], None]:
    return lambda folder: save(make(), folder, layout=layout, overwrite=True)


def write_shards(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    save(make_gpt2(), folder, layout="gpt2", overwrite=True)
    whole = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(whole)
    shards = {"a.safetensors": names[: len(names) // 2], "b.safetensors": names[len(names) // 2 :]}
    for shard, some in shards.items():
        save_file({name: whole[name] for name in some}, folder / shard)
    listed = {name: shard for shard, some in shards.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))


def write_gguf(folder: Path) -> None:
    import gguf

    model = make_llama()
    c, tokenizer = model.config, model.tokenizer
    writer = gguf.GGUFWriter(folder / "model.gguf", "qwen2")
    writer.add_block_count(c.n_layers)
    writer.add_context_length(c.max_len)
    writer.add_embedding_length(c.dim)
    writer.add_feed_forward_length(c.hidden_dim)
    writer.add_head_count(c.n_heads)
    writer.add_head_count_kv(c.n_kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([tokenizer.piece(i) for i in range(tokenizer.vocab_size)])
    writer.add_token_types([3 if i < 4 else 1 for i in range(tokenizer.vocab_size)])
    plain = json.loads(tokenizer.files()["tokenizer.json"])["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in plain])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    named = {"embedding": "token_embd", "final_norm": "output_norm", "attention_norm": "attn_norm",
             "feed_forward_norm": "ffn_norm", "attention.out": "attn_output",
             "feed_forward.down": "ffn_down"}  # fmt: skip
    kv = c.n_kv_heads * c.head_dim
    for name, tensor in model.state_dict().items():
        short = name.removeprefix("decoder.").replace("blocks.", "blk.")
        if ".qkv." in name:
            parts = tensor.split([c.dim, kv, kv])
            for x, part in zip("qkv", parts, strict=True):
                place = short.replace("attention.qkv", f"attn_{x}")
                writer.add_tensor(place, part.numpy())
                if place.endswith(".weight"):
                    bias = torch.zeros(len(part))
                    writer.add_tensor(place.replace(".weight", ".bias"), bias.numpy())
        elif ".up." in name:
            for x, part in zip(("gate", "up"), tensor.chunk(2), strict=True):
                place = short.replace("feed_forward.up", f"ffn_{x}")
                writer.add_tensor(place, part.contiguous().numpy())
        else:
            for ours, theirs in named.items():
                short = short.replace(f"{ours}.weight", f"{theirs}.weight")
            writer.add_tensor(short, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def load_model(folder: Path) -> Any:
    gguf = folder / "model.gguf"
    model = load(gguf if folder.joinpath("config.json").exists() is False else folder)
    tokens = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        both = model.config.family == "encoder_decoder"
        out = model(tokens, tokens) if both else model(tokens)
        if model.config.family == "encoder":
            out = model.fill(out) if hasattr(model, "fill") else out
    if model.tokenizer is not None:
        with contextlib.suppress(gf.GlassformerError):
            model.tokenizer.decode(model.tokenizer.encode(TEXT))
    return model.state_dict(), tuple(out.shape), model.config


def check_model(value: Any, expected: Any, n_bytes: int | None) -> str:
    state, shape, config = value
    was, was_shape, was_config = expected
    for name, tensor in state.items():
        assert bool(torch.isfinite(tensor).all()), f"{name} is not finite"
    assert shape[:2] == was_shape[:2], f"an output of shape {shape}"
    same_names = {n: t.shape for n, t in state.items()} == {n: t.shape for n, t in was.items()}
    if n_bytes is not None:
        assert same_names, "other tensors, though only bytes were changed"
        different = sum(int((t != was[n]).sum()) for n, t in state.items())
        assert different <= n_bytes, f"{different} weights differ after {n_bytes} changed bytes"
    is_equal = same_names and all(torch.equal(t, was[n]) for n, t in state.items())
    return "equal" if is_equal and config == was_config else "other"


def sign_own(files: dict[str, Any]) -> dict[str, Any]:
    """The hashes in config.json, made to fit what the files hold now."""
    try:
        plain = json.loads(files["config.json"])
        hashes = {n: hashlib.sha256(c).hexdigest() for n, c in files.items()
                  if n in plain["files"] and isinstance(c, bytes)}  # fmt: skip
        plain["files"] = {**plain["files"], **hashes}
        rest = {name: value for name, value in plain.items() if name != "sha256"}
        plain["sha256"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
        return {**files, "config.json": json.dumps(plain).encode("utf-8", "surrogatepass")}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return files


# ── tokenizers ──


def write_tokenizer(kind: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        tokenizer, _ = learned(kind, "class" if kind == "wordpiece" else "both")
        for name, content in tokenizer.files().items():
            (folder / name).write_bytes(content)

    return make


def write_word_pieces(folder: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "s", "##at", "."]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")


def write_byte_pairs(folder: Path) -> None:
    plain = json.loads(learned()[0].files()["tokenizer.json"])["model"]
    (folder / "vocab.json").write_text(json.dumps(plain["vocab"]))
    merges = "\n".join(" ".join(pair) for pair in plain["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n")


def write_marian(folder: Path) -> None:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20), model_writer=model, vocab_size=60, minloglevel=2
    )
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model.getvalue())
    loaded = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [loaded.id_to_piece(i) for i in range(loaded.get_piece_size())]
    (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate([*pieces, "<pad>"])}))


def load_tokenizer(folder: Path) -> Any:
    tokenizer = read_tokenizer(folder)
    if tokenizer is None:
        raise gf.GlassformerError("there is no tokenizer")
    ids = tokenizer.encode(TEXT)
    many = tokenizer.encode_many([TEXT, "a"])
    return ids, many, tokenizer.decode(ids), [tokenizer.bytes_of(i) for i in ids[:5]]


def check_tokenizer(value: Any, expected: Any, _: int | None) -> str:
    ids, many, text, _bytes = value
    assert isinstance(text, str) and many[0] == ids, "two ways of encoding differ"
    assert all(isinstance(i, int) and i >= 0 for i in ids), "an id below 0"
    assert len(ids) < 10_000, f"{len(ids)} tokens for {len(TEXT)} characters"
    return "equal" if value == expected else "other"
