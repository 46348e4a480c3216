"""Thousands of texts at a time from a small decoder: throughput on a GPU, not latency.

    seed i      launched ───────────────┐
    seed i + 1           launched ──────┼──── the GPU is never idle,
    texts of seed i                     └──── while the host reads what came before

All texts begin with the same token and are as long as the model allows, so that a step needs
neither a mask nor a look at what was chosen. Texts are cut at their end afterwards.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

from glassformer.models import Decoder

# cuDNN's would be planned anew for each length.
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def sample_batches(sampler: "BatchSampler", first: int, seed: int) -> Iterator[list[list[int]]]:
    """Batches of texts behind the token `first`, without end; one seed for each."""
    read = sampler.launch(first, seed)
    for following in itertools.count(seed + 1):
        ahead = sampler.launch(first, following)
        yield read()
        read = ahead


def cut_at(tokens: Sequence[int], stop: Sequence[int]) -> list[int] | None:
    """What stands before the first of these tokens; None where none of them follows.

    >>> cut_at([5, 6, 2, 7], stop=(1, 2)), cut_at([5, 6], stop=(1, 2))
    ([5, 6], None)
    """
    for i, token in enumerate(tokens):
        if token in stop:
            return list(tokens[:i])
    return None


class BatchSampler:
    """A decoder with RMS norms, gated feed-forwards and interleaved rotary positions.

    The residual stream is float32, all products are in the dtype of the weights.
    """

    def __init__(self, model: Decoder, *, rows: int, temperature: float, min_p: float) -> None:
        self.config = c = model.config
        self.weights = {name: w.detach() for name, w in model.state_dict().items()}
        embedding = self.weights["embedding.weight"]
        self.device, self.dtype = embedding.device, embedding.dtype
        shape = (c.n_layers, 2, rows, c.n_kv_heads, c.max_len, c.head_dim)
        self.cache = torch.empty(shape, dtype=self.dtype, device=self.device)
        pairs = c.head_dim // 2
        rates = 10_000.0 ** (-torch.arange(pairs, device=self.device) / pairs)
        angles = torch.arange(c.max_len, device=self.device)[:, None] * rates
        self.rotations = torch.polar(torch.ones_like(angles), angles)  # (L, D/2), complex
        self.rows = rows
        choose: Callable[..., Tensor] = choose_tokens
        if self.device.type == "cuda":
            choose = torch.compile(choose_tokens, dynamic=False)
        self.choose = choose
        self.temperature, self.floor = temperature, math.log(min_p)

    @torch.no_grad()
    def launch(self, first: int, seed: int) -> Callable[[], list[list[int]]]:
        """Start a batch; the result waits for it and reads its tokens."""
        torch.manual_seed(seed)
        n = self.config.max_len - 1
        tokens = torch.full((self.rows,), first, device=self.device)
        written = torch.empty((n, self.rows), dtype=torch.int32, device=self.device)
        with sdpa_kernel(KERNELS):
            for i in range(n):
                tokens = self.choose(self.step(tokens, i), self.temperature, self.floor)
                written[i] = tokens
        on_host, ready = written, None
        if self.device.type == "cuda":
            on_host = torch.empty(written.shape, dtype=written.dtype, pin_memory=True)
            on_host.copy_(written, non_blocking=True)
            ready = torch.cuda.Event()
            ready.record()

        def read() -> list[list[int]]:
            if ready is not None:
                ready.synchronize()
            return on_host.T.tolist()

        return read

    def step(self, tokens: Tensor, i: int) -> Tensor:
        """The logits behind the i-th token of each text."""
        c, w = self.config, self.weights
        x = w["embedding.weight"][tokens].float()  # (B,) → (B, C)
        for layer in range(c.n_layers):
            at = f"decoder.blocks.{layer}."
            h = self._norm(x, f"{at}attention_norm.weight")
            qkv = (h @ w[f"{at}attention.qkv.weight"].T).unflatten(-1, (-1, c.head_dim))
            q, k, v = qkv.split((c.n_heads, c.n_kv_heads, c.n_kv_heads), dim=1)  # (B, H, D)
            keys, values = self.cache[layer]
            keys[:, :, i], values[:, :, i] = self._rotate(k, i), v
            seen = slice(i + 1)
            query = self._rotate(q, i)[:, :, None]
            out = scaled_dot_product_attention(
                query, keys[:, :, seen], values[:, :, seen], enable_gqa=c.n_heads != c.n_kv_heads
            )
            x = x + out.flatten(1) @ w[f"{at}attention.out.weight"].T
            h = self._norm(x, f"{at}feed_forward_norm.weight")
            gate, up = (h @ w[f"{at}feed_forward.up.weight"].T).chunk(2, dim=-1)
            x = x + (silu(gate) * up) @ w[f"{at}feed_forward.down.weight"].T
        return self._norm(x, "decoder.final_norm.weight") @ w["embedding.weight"].T

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scaled = rms_norm(x, (x.shape[-1],), eps=self.config.norms.eps)
        return (scaled * self.weights[name].float()).to(self.dtype)

    def _rotate(self, x: Tensor, i: int) -> Tensor:
        turned = torch.view_as_complex(x.float().unflatten(-1, (-1, 2))) * self.rotations[i]
        return torch.view_as_real(turned).flatten(-2).to(self.dtype)


def choose_tokens(logits: Tensor, temperature: float, floor: float) -> Tensor:
    """Sample by temperature and min-p (Nguyen et al. 2024); `floor` is log min_p."""
    scaled = logits.float() / temperature
    least = scaled.amax(-1, keepdim=True) + floor
    noise = -torch.log(-torch.log(torch.rand_like(scaled).clamp_min(1e-30)))
    noise = noise.clamp_max(40.0)
    return torch.where(scaled < least, -math.inf, scaled + noise).argmax(-1)  # Gumbel's way
