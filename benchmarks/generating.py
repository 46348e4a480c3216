"""Tokens per second of generation on a GPU, beside transformers with the same weights.

python benchmarks/generating.py                     GPT-2 124M, batch 1 and 64; a 1B Llama shape
python benchmarks/generating.py --only gpt2 --batch 1 8
python benchmarks/generating.py --quantized int8 fp8  also with weights of 8 bits

Weights are random, of a size that makes texts vary. First the tokens are checked: in float32 they
must be those of the loop over the model's modules; in bfloat16, where near-ties are common, each
token must be likeliest in that loop up to rounding. A breach exits with 1. Then whole calls take
turns: prompts of 32 tokens, 256 new ones.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import glassformer as gf
from glassformer.functional.quantized import KINDS, find_numbers
from glassformer.generation import generate_tokens, sessions
from glassformer.generation.sessions import DecodingSession
from glassformer.models import Config, Norms, Positions, build

Work = Callable[[], object]
PROMPT, NEW = 32, 256
BANDWIDTH = 4.8e12  # bytes/s of an H200, by its datasheet


def spread_weights(model: nn.Module, std: float) -> nn.Module:
    """Draw matrices wide enough that greedy texts do not repeat one token."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    return model


def make_gpt2() -> tuple[nn.Module, nn.Module]:
    """The same GPT-2 124M as a model of ours and of transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    theirs = spread_weights(GPT2LMHeadModel(GPT2Config()), 0.08).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = gf.load(Path(folder))
    return ours.eval(), theirs


def make_llama() -> nn.Module:
    """The shape of Llama 3.2 1B."""
    config = Config(
        family="decoder",
        vocab_size=128_256,
        dim=2048,
        n_layers=16,
        n_heads=32,
        n_kv_heads=8,
        head_dim=64,
        hidden_dim=8192,
        max_len=4096,
        activation="silu",
        gated=True,
        biases="none",
        norms=Norms(kind="rms"),
        positions=Positions(kind="rotary", base=500_000.0),
    )
    return spread_weights(build(config), 0.04).eval()


def make_prompts(batch: int, vocab_size: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, vocab_size, (batch, PROMPT), generator=generator).tolist()


def write_by_modules(model: nn.Module, prompts: list[list[int]]) -> list[list[int]]:
    """The loop that calls the model, as when it is watched."""
    refusal, sessions.refusal = sessions.refusal, lambda _: "the modules are asked for"
    try:
        return generate_tokens(model, prompts, max_new_tokens=NEW)
    finally:
        sessions.refusal = refusal


@torch.no_grad()
def measure_gap(model: nn.Module, prompts: list[list[int]], written: list[list[int]]) -> float:
    """How far our tokens lie below the largest logits of the modules, in roundings of these."""
    session = DecodingSession(model, prompts, source=None, max_new_tokens=NEW)
    worst = 0.0
    for tokens in torch.tensor(written).T.to("cuda"):
        logits = session.next_logits().float()
        top = logits.amax(-1)
        gap = top - logits.gather(1, tokens[:, None])[:, 0]
        unit = torch.finfo(torch.bfloat16).eps * logits.abs().amax(-1)
        worst = max(worst, float((gap / unit).max()))
        session.append(tokens)
    return worst


def check(model: nn.Module, prompts: list[list[int]]) -> bool:
    """Whether our tokens are those of the modules, in float32 and up to rounding in bfloat16."""
    exact = model.float()
    ours, theirs = (
        generate_tokens(exact, prompts, max_new_tokens=NEW),
        write_by_modules(exact, prompts),
    )
    same = sum(a == b for a, b in zip(ours, theirs, strict=True))
    model.bfloat16()
    written = generate_tokens(model, prompts, max_new_tokens=NEW)
    gap = measure_gap(model, prompts, written)
    kinds = len({token for row in written for token in row})
    print(
        f"  float32: {same} of {len(prompts)} texts as by the modules; bfloat16: at most {gap:.1f} "
        f"roundings below the likeliest token ({kinds:,} different tokens)"
    )
    return same == len(prompts) and gap < 8


def quantize(model: nn.Module, kind: str, prompts: list[list[int]]) -> tuple[nn.Module, bool]:
    """The model with weights of 8 bits, and whether its tokens are those of its modules."""
    small = gf.quantize(model, kind)
    gap = measure_gap(small, prompts, generate_tokens(small, prompts, max_new_tokens=NEW))
    print(f"  {kind}: at most {gap:.1f} roundings below the likeliest token of its modules")
    return small, gap < 8


def race(works: dict[str, Work], n_tokens: int, rounds: int) -> dict[str, float]:
    """Tokens per second of each, in turns; prints medians and ranges."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            work()
            torch.cuda.synchronize()
            times[name].append(time.perf_counter() - start)
    rates = {}
    for name, spent in times.items():
        rates[name] = n_tokens / statistics.median(spent)
        print(
            f"  {name:<28} {rates[name]:>10,.0f} tokens/s"
            f"  ({n_tokens / max(spent):,.0f} … {n_tokens / min(spent):,.0f})"
        )
    return rates


def run_gpt2(batches: list[int], rounds: int, *, peers: bool, kinds: list[str]) -> bool:
    ours, theirs = make_gpt2()
    ours, theirs, good = ours.cuda(), theirs.cuda().bfloat16(), True
    for batch in batches:
        print(f"GPT-2 124M, bfloat16, batch {batch}, {PROMPT} + {NEW} tokens")
        prompts = make_prompts(batch, 50_257)
        good &= check(ours, prompts)
        inputs = torch.tensor(prompts, device="cuda")

        def write(cache: str, inputs: torch.Tensor = inputs) -> object:
            kind = {} if cache == "dynamic" else {"cache_implementation": cache}
            options = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False}
            mask = torch.ones_like(inputs)
            return theirs.generate(inputs, attention_mask=mask, pad_token_id=0, **options, **kind)

        works: dict[str, Work] = {
            "ours": lambda prompts=prompts: generate_tokens(ours, prompts, max_new_tokens=NEW),
            "ours, by modules": lambda prompts=prompts: write_by_modules(ours, prompts),
        }
        for kind in kinds:
            small, fine = quantize(ours, kind, prompts)
            good &= fine
            works[f"ours, {kind}"] = lambda prompts=prompts, small=small: generate_tokens(
                small, prompts, max_new_tokens=NEW
            )
        if peers:
            works["transformers, dynamic cache"] = lambda: write("dynamic")
            works["transformers, static cache"] = lambda: write("static")
        rates = race(works, batch * NEW, rounds)
        for name in list(rates)[1:]:
            print(f"  ours / {name}: {rates['ours'] / rates[name]:.2f}")
    return good


def run_llama(rounds: int, *, kinds: list[str]) -> bool:
    print(f"Llama 1B shape, bfloat16, batch 1, {PROMPT} + {NEW} tokens")
    models = {"ours": make_llama().cuda()}
    prompts = make_prompts(1, 128_256)
    good = check(models["ours"], prompts)
    for kind in kinds:
        models[f"ours, {kind}"], fine = quantize(models["ours"], kind, prompts)
        good &= fine
    works: dict[str, Work] = {
        name: lambda model=model: generate_tokens(model, prompts, max_new_tokens=NEW)
        for name, model in models.items()
    }
    for name, rate in race(works, NEW, rounds).items():
        numbers = [find_numbers(each)[0] for each in models[name].parameters()]
        read = sum(each.numel() * each.element_size() for each in numbers)
        bound = BANDWIDTH / read
        print(f"  {name}: {rate / bound:.0%} of {bound:,.0f} tokens/s, the weights at 4.8 TB/s")
    return good


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=("gpt2", "llama"))
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--quantized", nargs="+", choices=KINDS, default=[])
    args = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("benchmarks/generating.py needs a CUDA device; none is here.")
        return 2
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    good = True
    if args.only != "llama":
        good &= run_gpt2(
            args.batch, args.rounds, peers=not args.without_peers, kinds=args.quantized
        )
    if args.only != "gpt2":
        good &= run_llama(args.rounds, kinds=args.quantized)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
