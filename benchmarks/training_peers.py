"""The peers of benchmarks/training.py: nanoGPT's model.py, and torch.nn.Transformer.

Both are stepped as nanoGPT's train.py does: autocast, fused AdamW where it uses it, clipping,
batches that are prepared while the device computes. Both take our weights, name by name.
"""

import io
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from glassformer.functional import sinusoidal
from glassformer.training.batches import Batch
from glassformer.training.loss import IGNORED
from glassformer.training.schedule import Schedule
from language_model import read_nanogpt
from training_ours import SETTINGS, Shape


class TorchTransformer(nn.Module):
    """nn.Transformer with what it lacks: embeddings, positions, an output layer, a loss."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        c = shape.config
        self.embedding = nn.Embedding(c.vocab_size, c.dim)
        self.transformer = nn.Transformer(
            c.dim,
            c.n_heads,
            c.n_layers,
            c.decoder_layers,
            c.hidden_dim,
            c.dropout.residual,
            batch_first=True,
        )
        self.dropout = nn.Dropout(c.dropout.embedding)
        places = sinusoidal(torch.arange(shape.length), c.dim, layout=c.positions.layout)
        self.register_buffer("places", places)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(shape.length))
        self.scale = c.dim**0.5

    def forward(self, source: Tensor, lengths: Tensor, tokens: Tensor, targets: Tensor) -> Tensor:
        hidden = torch.arange(source.shape[1], device=source.device) >= lengths[:, None]
        x, y = (
            self.dropout(self.embedding(t) * self.scale + self.places) for t in (source, tokens)
        )
        out = self.transformer(
            x,
            y,
            tgt_mask=self.mask,
            tgt_is_causal=True,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        logits = F.linear(out, self.embedding.weight)
        return F.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, label_smoothing=0.1
        )


def build_peer(shape: Shape, nanogpt: Path, ours: nn.Module) -> nn.Module:
    """The peer of this shape with the weights of our model."""
    state = ours.state_dict()
    if shape.is_pair:
        peer: Any = TorchTransformer(shape)
        peer.load_state_dict(rename_for_torch(state), strict=False)
        return peer
    c, module = shape.config, read_nanogpt(nanogpt)
    # Its README: the vocabulary padded to a multiple of 64, because that is faster.
    padded = -(-c.vocab_size // 64) * 64
    with redirect_stdout(io.StringIO()):
        peer = module.GPT(
            module.GPTConfig(
                block_size=c.max_len,
                vocab_size=padded,
                n_layer=c.n_layers,
                n_head=c.n_heads,
                n_embd=c.dim,
                dropout=c.dropout.residual,
                bias=True,
            )
        )
    weights = rename_for_nanogpt(state)
    for name in ("transformer.wte.weight", "lm_head.weight"):
        weights[name] = F.pad(state["embedding.weight"], (0, 0, 0, padded - c.vocab_size))
    peer.load_state_dict(weights)
    return peer


def rename_for_nanogpt(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our names of weights as nanoGPT's."""
    names = {
        "decoder.blocks.": "transformer.h.",
        "decoder.positions.": "transformer.wpe.",
        "decoder.final_norm.": "transformer.ln_f.",
        ".attention_norm.": ".ln_1.",
        ".feed_forward_norm.": ".ln_2.",
        ".attention.qkv.": ".attn.c_attn.",
        ".attention.out.": ".attn.c_proj.",
        ".feed_forward.up.": ".mlp.c_fc.",
        ".feed_forward.down.": ".mlp.c_proj.",
    }
    return _rename({k: v for k, v in state.items() if k != "embedding.weight"}, names)


def rename_for_torch(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our names of weights as nn.Transformer's; the queries of its cross-attention are fused."""
    state = dict(state)
    for name in [n for n in state if ".cross.q." in n]:
        keys = state.pop(name.replace(".cross.q.", ".cross.kv."))
        state[name] = torch.cat([state[name], keys])
    names = {
        "encoder.blocks.": "transformer.encoder.layers.",
        "decoder.blocks.": "transformer.decoder.layers.",
        "encoder.final_norm.": "transformer.encoder.norm.",
        "decoder.final_norm.": "transformer.decoder.norm.",
        ".attention.qkv.": ".self_attn.in_proj_",
        ".attention.out.": ".self_attn.out_proj.",
        ".cross.q.": ".multihead_attn.in_proj_",
        ".cross.out.": ".multihead_attn.out_proj.",
        ".attention_norm.": ".norm1.",
        ".cross_norm.": ".norm2.",
        ".feed_forward.up.": ".linear1.",
        ".feed_forward.down.": ".linear2.",
    }
    renamed = _rename(state, names)
    return {
        name.replace(".feed_forward_norm.", ".norm3." if ".decoder." in name else ".norm2."): each
        for name, each in renamed.items()
    }


def _rename(state: dict[str, Tensor], names: dict[str, str]) -> dict[str, Tensor]:
    found = {}
    for name, tensor in state.items():
        for ours, theirs in names.items():
            name = name.replace(ours, theirs)  # noqa: PLW2901
        found[name] = tensor
    return found


class Theirs:
    """Rounds of the peer's steps."""

    def __init__(
        self, shape: Shape, peer: nn.Module, device: str, *, compiled: bool, n_steps: int
    ) -> None:
        self.device, self.n_steps, self.step, self.curve = device, n_steps, 0, [0.0]
        self.model = peer.to(device).train()
        o = SETTINGS["optimizer"]
        if hasattr(peer, "configure_optimizers"):
            with redirect_stdout(io.StringIO()):
                self.optimizer = peer.configure_optimizers(  # type: ignore[operator]
                    o["weight_decay"], 0.0, tuple(o["betas"]), device
                )
        else:
            decay, rest = [[p for p in peer.parameters() if (p.ndim > 1) == big] for big in (1, 0)]
            groups = [{"params": decay}, {"params": rest, "weight_decay": 0.0}]
            self.optimizer = torch.optim.AdamW(
                groups,
                lr=0.0,
                betas=tuple(o["betas"]),
                weight_decay=o["weight_decay"],
                fused=device == "cuda" or None,
            )
        self.schedule = Schedule(**SETTINGS["schedule"])
        self.compute: Callable[..., Any] = torch.compile(self.model) if compiled else self.model
        self.source = shape.batches()
        self.batch = self._next()

    def _next(self) -> list[Tensor]:
        batch = next(self.source)
        tensors = (batch.pin() if self.device == "cuda" else batch).tensors
        names = ("source", "source_lengths", "tokens", "targets")
        return [tensors[n].to(self.device, non_blocking=True) for n in names if n in tensors]

    def __call__(self) -> None:
        is_cuda, losses = self.device == "cuda", []
        half = torch.autocast("cuda", dtype=torch.bfloat16) if is_cuda else nullcontext()
        for _ in range(self.n_steps):
            for group in self.optimizer.param_groups:
                group["lr"] = self.schedule.rate(self.step)
            with half:
                found = self.compute(*self.batch)
                loss = found[1] if isinstance(found, tuple) else found
            self.batch = self._next()  # while the device is still busy
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            self.step += 1
            losses.append(loss.detach())
        self.curve = torch.stack(losses).tolist()


def loss_of_peer(peer: Any, shape: Shape, batch: Batch) -> Tensor:
    """The mean loss of a batch; nanoGPT's without the tokens that pad its vocabulary."""
    t = batch.tensors
    if shape.is_pair:
        return peer(t["source"], t["source_lengths"], t["tokens"], t["targets"])
    logits = peer(t["tokens"], t["targets"])[0][..., : shape.config.vocab_size]
    return F.cross_entropy(logits.flatten(0, 1), t["targets"].flatten())
