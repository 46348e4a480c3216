"""What watching a transformers model costs, in time and memory, beside not watching it.

python benchmarks/looking.py                   a 160M Llama-shaped model, 16,384 tokens, bfloat16
python benchmarks/looking.py --length 131072

Watched means: every layer and head, maps of 128 × 128, entropy and received mass. Beside it, where
it fits: transformers' own way, eager attention with output_attentions=True.
"""

import argparse
import statistics
import sys

import torch

import glassformer as gf
from million import measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, default=16_384)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager", action="store_true", help="also transformers' own way")
    args = parser.parse_args()
    device = torch.device(args.device)
    model = llama(args.layers, args.length).to(device, torch.bfloat16).eval()
    tokens = torch.randint(0, 32_000, (1, args.length), device=device)
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"{size:.0f}M parameters, {args.layers} layers, 12 heads, {args.length:,} tokens")

    @torch.no_grad()
    def plain() -> torch.Tensor:
        return model.model(tokens).last_hidden_state

    @torch.no_grad()
    def watched() -> list:
        with gf.watch(model) as trace:
            model.model(tokens)
        return [site.statistics(map_size=128, distance=False) for site in trace]

    plain(), watched()
    unseen = [measured(plain, device)[:2] for _ in range(args.repeats)]
    seen = [measured(watched, device)[:2] for _ in range(args.repeats)]
    ratio = statistics.median(s[0] for s in seen) / statistics.median(s[0] for s in unseen)
    more = max(s[1] for s in seen) - max(s[1] for s in unseen)
    for name, runs in (("not watched (sdpa)", unseen), ("watched, with statistics", seen)):
        spent, mib = statistics.median(r[0] for r in runs), max(r[1] for r in runs)
        print(f"{name:<28} {spent * 1000:9.1f} ms {mib:10,.0f} MiB")
    print(f"watching takes {ratio:.2f} × the time and {more:,.0f} MiB more")
    if args.eager:
        model.set_attn_implementation("eager")
        with torch.no_grad():
            spent, mib, _ = measured(
                lambda: model.model(tokens, output_attentions=True).attentions[0].shape, device
            )
        print(f"{'eager, output_attentions':<28} {spent * 1000:9.1f} ms {mib:10,.0f} MiB")
    return 0 if ratio <= 1.7 and (more <= 3072 or args.length > 16_384) else 1


def llama(n_layers: int, length: int) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=n_layers,
        num_attention_heads=12,
        max_position_embeddings=length,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config)


if __name__ == "__main__":
    sys.exit(main())
