"""Scores for cache eviction beside kvpress: the same numbers, without eager attention.

python benchmarks/eviction.py       needs kvpress, in an environment of its own

A Llama with random weights reads one prompt. kvpress's ObservedAttentionPress takes the weights
that eager attention returns; ours takes q and k of fused attention, recorded by `gf.watch`.
SnapKVPress recomputes the weights of the last queries; ours sums them from the recorded q and k.
"""

import argparse
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import glassformer as gf
from measure import compare, peak_mib

N_LAYERS, N_HEADS, N_KV_HEADS, DIM = 2, 8, 2, 512
WINDOW, KERNEL = 64, 5  # SnapKV's queries at the end, and its pooling
CLOSE = 1e-5


def build_model(attention: str) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=DIM,
        intermediate_size=DIM,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=N_HEADS,
        num_key_value_heads=N_KV_HEADS,
        max_position_embeddings=1 << 16,
        initializer_range=0.1,  # attention that is not even
        attn_implementation=attention,
    )
    return LlamaForCausalLM(config).eval()


def make_prompt(length: int) -> Tensor:
    return torch.randint(0, 1000, (1, length), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def score_with_kvpress(model: LlamaForCausalLM, tokens: Tensor, name: str) -> list[Tensor]:
    """The scores of each layer by a press of kvpress."""
    import kvpress

    press = getattr(kvpress, name)(compression_ratio=0.5)
    found, score = [], press.score

    def keep(*args: Any) -> Tensor:
        found.append(score(*args))
        return found[-1]

    press.score = keep
    places = torch.arange(tokens.shape[1])
    with press(model):
        model.model(tokens, past_key_values=DynamicCache(), cache_position=places)
    return found


@torch.no_grad()
def score_with_statistics(model: LlamaForCausalLM, tokens: Tensor, name: str) -> list[Tensor]:
    """The same scores from q and k of fused attention."""
    with gf.watch(model) as trace:
        model.model(tokens)
    score = {"ObservedAttentionPress": observed_scores, "SnapKVPress": window_scores}[name]
    return [score(site) for site in trace]


def observed_scores(site: Any) -> Tensor:
    """The mean weight that a key receives from the queries that see it, per key-value head."""
    found = gf.attention_statistics(site.q, site.k, **site.options, distance=False)
    share = found.received / torch.arange(site.k.shape[2], 0, -1)
    return share.unflatten(1, (site.k.shape[1], -1)).mean(2)


def window_scores(site: Any) -> Tensor:
    """What the last queries give to the keys before them, pooled over neighbours (SnapKV)."""
    last = gf.attention_statistics(
        site.q[:, :, -WINDOW:], site.k, **site.options, distance=False
    ).received[..., :-WINDOW]
    smooth = F.avg_pool1d(last / WINDOW, KERNEL, padding=KERNEL // 2, stride=1)
    scores = smooth.unflatten(1, (site.k.shape[1], -1)).mean(2)
    return F.pad(scores, (0, WINDOW), value=scores.max().item() + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096])
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print(f"{N_LAYERS} layers, {N_HEADS} heads over {N_KV_HEADS}, head_dim {DIM // N_HEADS}, CPU")
    print("press                   tokens  largest difference  kvpress s  ours s  ratio  noise")
    fine, models = True, {name: build_model(name) for name in ("eager", "sdpa")}
    for press, attention in (("ObservedAttentionPress", "eager"), ("SnapKVPress", "sdpa")):
        for length in args.lengths:
            tokens = make_prompt(length)

            def theirs(tokens=tokens, press=press, attention=attention) -> list[Tensor]:
                return score_with_kvpress(models[attention], tokens, press)

            def ours(tokens=tokens, press=press) -> list[Tensor]:
                return score_with_statistics(models["sdpa"], tokens, press)

            pairs = zip(ours(), theirs(), strict=True)
            apart = max((a - b).abs().max().item() for a, b in pairs)
            fine &= apart <= CLOSE
            times = compare(ours, theirs, "cpu", repeats=args.repeats)
            print(
                f"{press:<24}{length:>6}  {apart:18.1e}  {times.theirs:9.3f}  {times.ours:6.3f}  "
                f"{times.ratio:5.2f}  {times.noise:5.2f}"
            )
    print("\nmemory beyond the model, MiB, at its peak: kvpress, ours")
    for length in args.lengths:
        theirs_mib, ours_mib = (
            peak_mib(
                f"import sys; sys.path.insert(0, 'benchmarks'); import eviction\n"
                f"model = eviction.build_model({attention!r})\n"
                f"eviction.{score}(model, eviction.make_prompt(128), 'ObservedAttentionPress')",
                f"eviction.{score}(model, eviction.make_prompt({length}), "
                "'ObservedAttentionPress')",
            )[1]
            for attention, score in (
                ("eager", "score_with_kvpress"),
                ("sdpa", "score_with_statistics"),
            )
        )
        print(f"ObservedAttentionPress  {length:>6}  {theirs_mib:8.1f}  {ours_mib:8.1f}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
