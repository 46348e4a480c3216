"""What watching costs while vLLM serves: tokens per second, watched and not.

VLLM_ENABLE_V1_MULTIPROCESSING=0 python benchmarks/serving.py
python benchmarks/serving.py --processor-time      of this process: for a machine that others use

A Llama-shaped model with random weights serves requests of unequal length, compiled, in this
process. First it is checked that tokens are the same with and without watching, and that weights
are those of transformers' eager attention. Then all take turns: the bare engine, watched with the
rows from which tokens are sampled, watched with all rows, the bare engine again. Requests are taken
apart when the trace is read; "read" are turns in which all of it is. Where vllm-lens is installed,
an engine with it takes its turns as well, in a process of its own (lens_engine.py).
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_PLUGINS", "glassformer")

import torch

import glassformer as gf
import lens_engine

BARE, LAST, ALL, AGAIN = "vLLM alone", 'watched, rows="last"', "watched, all rows", "alone, again"
LAST_READ, ALL_READ = "last rows, read", "all rows, read"
LIMITS = {LAST: 1.10, ALL: 1.25}
VOCABULARY = 8_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--longest", type=int, default=192, help="tokens of the longest prompt")
    parser.add_argument("--tokens", type=int, default=32, help="written for each request")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--processor-time", action="store_true")
    args = parser.parse_args()
    clock = "process_time" if args.processor_time else "perf_counter"
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        save_model(Path(folder), args.layers, args.dim)
        length = args.longest + args.tokens
        engine = build_engine(folder, length)
        prompts = make_prompts(args.requests, args.longest)
        run = serve(engine, prompts, args.tokens)
        answers = check(run, engine, prompts, folder)
        if answers is None:
            return 1
        works: dict[str, Callable[[], object]] = {
            BARE: run,
            LAST: lambda: watch(engine, run, rows="last"),
            ALL: lambda: watch(engine, run),
            LAST_READ: lambda: watch(engine, run, rows="last").runs,
            ALL_READ: lambda: watch(engine, run).runs,
            AGAIN: run,
        }
        turns = {name: partial(measure, engine, work, clock) for name, work in works.items()}
        if lens_engine.is_installed():
            lens = opened.enter_context(lens_engine.LensEngine(folder, length, args.layers))
            for name in lens.asked:
                serve_lens = partial(lens.serve, name, prompts, args.tokens, clock)
                print(f"{name}: tokens are {'' if serve_lens()[1] == answers else 'not '}the same")
                turns[name] = lambda serve_lens=serve_lens: serve_lens()[0]
        rounds = [{name: turn() for name, turn in turns.items()} for _ in range(args.repeats)]
    return report(rounds, args.requests * args.tokens)


def measure(engine: Any, work: Callable[[], object], clock: str) -> float:
    """How many seconds a turn takes."""
    read = getattr(time, clock)
    engine.reset_prefix_cache()
    start = read()
    kept = work()
    spent = read() - start
    del kept
    return spent


def save_model(folder: Path, n_layers: int, dim: int) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=dim,
        head_dim=64,
        num_attention_heads=dim // 64,
        num_key_value_heads=dim // 128,
        num_hidden_layers=n_layers,
        intermediate_size=dim * 11 // 4,
        max_position_embeddings=2048,
    )
    model = LlamaForCausalLM(config)
    size = sum(each.numel() for each in model.parameters()) / 1e6
    print(f"{size:.0f}M parameters, {n_layers} layers, {dim // 64} heads of 64, float32")
    model.save_pretrained(folder)


def build_engine(folder: str, length: int) -> Any:
    from vllm import LLM

    return LLM(
        folder,
        dtype="float32",
        max_model_len=length,
        kv_cache_memory_bytes=1 << 29,
        max_num_seqs=16,
        max_num_batched_tokens=512,
        enable_prefix_caching=True,
        skip_tokenizer_init=True,
        disable_log_stats=True,
    )


def make_prompts(n: int, longest: int) -> list[list[int]]:
    rng = torch.Generator().manual_seed(1)
    lengths = [max(4, longest * (i + 1) // n) for i in range(n)]
    return [torch.randint(3, VOCABULARY, (m,), generator=rng).tolist() for m in lengths]


def serve(
    engine: Any, prompts: list[list[int]], n_tokens: int, extra: dict[str, Any] | None = None
) -> Callable[[], list[list[int]]]:
    from vllm import SamplingParams

    asked = SamplingParams(
        max_tokens=n_tokens,
        temperature=0.0,
        ignore_eos=True,
        detokenize=False,
        extra_args=extra,
    )
    given = [{"prompt_token_ids": prompt} for prompt in prompts]

    def run() -> list[list[int]]:
        found = engine.generate(given, asked, use_tqdm=False)
        return [list(each.outputs[0].token_ids) for each in found]

    return run


def watch(engine: Any, run: Callable[[], object], **options: Any) -> gf.Trace:
    with gf.watch(engine, **options) as trace:
        run()
    return trace


@torch.no_grad()
def check(
    run: Callable[[], list[list[int]]], engine: Any, prompts: list[list[int]], folder: str
) -> list[list[int]] | None:
    """The tokens that are written; None if watching changes them, or weights are wrong."""
    from transformers import AutoModelForCausalLM

    bare = run()
    engine.reset_prefix_cache()
    with gf.watch(engine) as trace:
        answers = run()
    if answers != bare:
        print("Tokens differ when the engine is watched.")
        return None
    eager = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    text = torch.tensor([prompts[2] + answers[2][:-1]])
    expected = eager(text, output_attentions=True).attentions
    sites = trace.runs[2].sites.values()
    apart = max(
        float((s.weights() - e[0]).abs().max()) for s, e in zip(sites, expected, strict=True)
    )
    print(f"tokens are the same; weights lie within {apart:.1g} of transformers' eager ones")
    return answers if apart < 1e-5 else None


def report(rounds: list[dict[str, float]], n_tokens: int) -> int:
    print(f"\n{'':24}{'tokens/s':>10}{'ratio':>8}")
    is_within = True
    for name in rounds[0]:
        each = [2 * r[name] / (r[BARE] + r[AGAIN]) for r in rounds]
        if name == AGAIN:
            each = [r[AGAIN] / r[BARE] for r in rounds]
        ratio, speed = (
            statistics.median(each),
            n_tokens / statistics.median(r[name] for r in rounds),
        )
        limit = LIMITS.get(name)
        told = "" if limit is None else f"   at most {limit:.2f}"
        print(f"{name:24}{speed:10.1f}{ratio:8.3f}  ({min(each):.3f} … {max(each):.3f}){told}")
        is_within &= limit is None or ratio <= limit
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
