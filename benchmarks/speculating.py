"""Speculative decoding: what guesses save, beside transformers with the same weights.

python benchmarks/speculating.py                    all parts, on a CPU in float32
python benchmarks/speculating.py --only texts       the shipped models look up their own texts
python benchmarks/speculating.py --device cuda      on a GPU in bfloat16

- rows: what a pass over several tokens costs, as a multiple of a pass over one
- texts: the shipped writer and storyteller, with and without lookup; transformers with
  `prompt_lookup_num_tokens=10`
- chain: a Llama shape of 176M with a draft of 6M (on a GPU 1.2B and 60M), both built so that each
  token decides the next, and a given share of the draft's guesses holds; transformers with
  `assistant_model`

First the texts are checked: with and without a draft, and in float32 of both programs, they must be
the same. A breach exits with 1. Then whole calls take turns; medians and ranges are of the rounds.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import glassformer as gf
from glassformer.generation import Draft, LookupDraft, ModelDraft, Sampling, generate_tokens
from glassformer.generation.captured import CapturedSession
from glassformer.generation.direct import DirectSession
from glassformer.models import Config, Decoder, Norms, Output, Positions, build

STARTS = {
    "writer": ["The captain", "And it came to pass", "She looked at him and", "In the morning"],
    "storyteller": ["Tom had a red ball.", "The princess lived in", "It was raining and", "Mia"],
}
NEW = 128
PLAIN = "glassformer without a draft"
Starts = list[list[int]]
DRAWN = Sampling(temperature=0.8, top_p=0.95)
ROWS = (2, 3, 4, 6, 8, 12)
DTYPES = {"cpu": torch.float32, "cuda": torch.bfloat16}
SHAPES = {  # dim, layers, heads, hidden: of the model and of the draft
    "cpu": ((576, 30, 9, 1536), (64, 2, 1, 192)),
    "cuda": ((2048, 16, 32, 8192), (512, 3, 8, 1536)),
}


def make_shape(dim: int, n_layers: int, n_heads: int, hidden: int) -> Config:
    return Config(
        family="decoder",
        vocab_size=49_152,
        dim=dim,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_heads,
        head_dim=64,
        hidden_dim=hidden,
        max_len=512,
        activation="silu",
        gated=True,
        biases="none",
        norms=Norms(kind="rms"),
        positions=Positions(kind="rotary"),
        output=Output(tied=False),
    )


def make_chain(config: Config, wrong: float = 0.0) -> Decoder:
    """A model whose next token is a fixed function of the last, with errors in a share of them.

    All its matrices are multiplied as in any model; what layers add is too small to matter.
    """
    torch.manual_seed(0)
    order = torch.randperm(config.vocab_size, generator=torch.Generator().manual_seed(1))
    changed = torch.rand(config.vocab_size, generator=torch.Generator().manual_seed(2)) < wrong
    order = torch.where(changed, (order + 1) % config.vocab_size, order)
    model = build(config).eval()
    assert isinstance(model, Decoder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("out.weight", "down.weight")):
                parameter.mul_(1e-3)
        embedded = torch.randn(config.vocab_size, config.dim)
        model.embedding.weight.copy_(embedded)
        head = torch.zeros_like(embedded)
        head[order] = embedded  # equal entries of `order` keep one of theirs
        model.head.weight.copy_(head)
    return model


def to_transformers(model: Decoder) -> Any:
    from transformers import AutoModelForCausalLM

    weight = model.embedding.weight
    with tempfile.TemporaryDirectory() as folder:
        gf.save(model, f"{folder}/model", layout="llama")
        theirs = AutoModelForCausalLM.from_pretrained(f"{folder}/model", dtype=weight.dtype)
    return theirs.to(weight.device).eval()


def race(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Medians of the seconds of each, in turns; prints them as multiples of the first."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    first = next(iter(times))
    for name, spent in times.items():
        ratios = sorted(a / b for a, b in zip(times[first], spent, strict=True))
        print(
            f"    {name:<34} {medians[first] / medians[name]:5.2f} × the speed of {first}"
            f"  ({ratios[0]:.2f} … {ratios[-1]:.2f})"
        )
    return medians


@torch.no_grad()
def measure_passes(model: Decoder, rounds: int) -> None:
    """The two kinds of passes of a GPU, replayed many times."""
    session = CapturedSession(model, [[1, 2, 3, 4]], source=None, max_new_tokens=NEW)
    state = session.engine.find_drafting(None)
    session.begin((), None, None)
    state.begin(session.prompt, 8, (), None)

    def replay(n_rows: int) -> float:
        state.n_logged.zero_()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(NEW):
            session.engine.replay(state.passes[n_rows])
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / NEW

    spent: dict[int, list[float]] = {n: [] for n in state.passes}
    for _ in range(3 + rounds):
        for n, times in spent.items():
            times.append(replay(n))
    base, wide = (statistics.median(times[3:]) for times in spent.values())
    print(f"    {[*spent][1]}: {wide / base:.2f}  (one row {1e6 * base:.1f} µs)")
    session.close()


@torch.no_grad()
def measure_rows(model: Decoder, rounds: int) -> None:
    session = DirectSession(model, [[1, 2, 3, 4]], source=None, max_new_tokens=NEW)
    session.next_logits()

    def read(n: int) -> float:
        start = time.perf_counter()
        session.read_ahead(4, [5] * n)
        return time.perf_counter() - start

    spent: dict[int, list[float]] = {n: [] for n in (1, *ROWS)}
    for _ in range(3 + 4 * rounds):
        for n, times in spent.items():
            times.append(read(n))
    base = statistics.median(spent[1][3:])
    shown = "  ".join(f"{n}: {statistics.median(spent[n][3:]) / base:.2f}" for n in ROWS)
    print(f"    {shown}")


def write(
    model: Decoder, starts: Starts, make_draft: Callable[[], Draft] | None = None, **options: Any
) -> list[list[int]]:
    """The texts that our model writes, one after the other."""
    special = {"stop": model.special.end, "never": model.special.never, "max_new_tokens": NEW}
    drafts = [None if make_draft is None else make_draft() for _ in starts]
    return [
        generate_tokens(model, [start], draft=draft, **special, **options)[0]
        for start, draft in zip(starts, drafts, strict=True)
    ]


def write_theirs(theirs: Any, model: Decoder, starts: Starts, **options: Any) -> list[list[int]]:
    """The texts that the same weights write greedily in transformers."""
    from transformers import GenerationConfig

    ends = list(model.special.end)
    excluded = [[each] for each in model.special.never] or None
    settings = {"max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
    config = GenerationConfig(**settings, eos_token_id=ends or None, bad_words_ids=excluded)
    texts = []
    for start in starts:
        ids = torch.tensor([start], device=theirs.device)
        mask = torch.ones_like(ids)
        found = theirs.generate(ids, attention_mask=mask, generation_config=config, **options)
        written = found[0, len(start) :].tolist()
        texts.append(written[:-1] if written[-1] in ends else written)
    return texts


def compare(
    works: dict[str, Callable[[], Any]], draft: Draft, rounds: int, *, is_exact: bool
) -> bool:
    """Whether all write the same texts; then their times."""
    texts = {name: work() for name, work in works.items()}
    first = texts[PLAIN]
    # In half precision near-ties are common, and two programs sum in different orders.
    checked = [text for name, text in texts.items() if is_exact or name.startswith("glassformer")]
    same = all(each == first for each in checked)
    print(f"    {sum(map(len, first))} tokens, the same in {len(checked)} ways: {same}")
    print(f"    {draft.n_passes} passes, {draft.n_held} of {draft.n_guesses} guesses held")
    race(works, rounds)
    return same


def run_texts(rounds: int, device: str) -> bool:
    good = True
    for name, texts in STARTS.items():
        model = gf.load(name).to(device, DTYPES[device])
        assert isinstance(model, Decoder) and model.tokenizer is not None
        theirs = to_transformers(model)
        starts = [model.tokenizer.encode(text) for text in texts]
        ways: dict[str, dict[str, Any]] = {"greedy": {}}
        if device == "cpu":
            ways["temperature 0.8, top-p 0.95"] = {"sampling": DRAWN, "seed": 3}
        for way, options in ways.items():
            print(f"  {name}, {way}")
            draft = LookupDraft()
            write(model, starts, partial(lambda it: it, draft), **options)
            works: dict[str, Callable[[], Any]] = {
                PLAIN: partial(write, model, starts, **options),
                "glassformer, lookup": partial(write, model, starts, LookupDraft, **options),
            }
            if way == "greedy":
                call = partial(write_theirs, theirs, model, starts)
                works["transformers"] = call
                works["transformers, lookup"] = partial(call, prompt_lookup_num_tokens=10)
            good &= compare(works, draft, rounds, is_exact=device == "cpu")
    return good


def run_chain(rounds: int, shares: list[float], device: str) -> bool:
    large, little = SHAPES[device]
    target = make_chain(make_shape(*large)).to(device, DTYPES[device])
    theirs, starts, good = to_transformers(target), [[11]], True
    n = sum(each.numel() for each in target.parameters()) / 1e6
    for share in shares:
        print(f"  {n:.0f}M, and a draft of which {share:.0%} of the tokens are right")
        small = make_chain(make_shape(*little), wrong=1 - share).to(device, DTYPES[device])
        draft = ModelDraft(small)
        write(target, starts, partial(lambda it: it, draft))
        call = partial(write_theirs, theirs, target, starts)
        works: dict[str, Callable[[], Any]] = {
            PLAIN: partial(write, target, starts),
            "glassformer, draft model": partial(write, target, starts, partial(ModelDraft, small)),
            "transformers": call,
            "transformers, draft model": partial(call, assistant_model=to_transformers(small)),
        }
        good &= compare(works, draft, rounds, is_exact=device == "cpu")
    return good


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", choices=("rows", "texts", "chain"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--right", type=float, nargs="+", default=[0.6, 0.8, 0.95])
    args = parser.parse_args(arguments)
    torch.set_num_threads(args.threads)
    print(f"torch {torch.__version__}, {args.threads} threads")
    good = True
    if args.only in (None, "rows"):
        print("A pass over n tokens, as a multiple of a pass over one")
        large = make_chain(make_shape(*SHAPES[args.device][0]))
        shapes = {"storyteller": gf.load("storyteller"), "the large shape": large}
        shapes["the large shape, int8"] = gf.quantize(large, "int8")
        for name, model in shapes.items():
            print(f"  {name}")
            assert isinstance(model, Decoder)
            measure = measure_rows
            if args.device == "cuda":
                measure = measure_passes
                model.to("cuda") if "int8" in name else model.to("cuda", torch.bfloat16)
            measure(model, args.rounds)
    if args.only in (None, "texts"):
        good &= run_texts(args.rounds, args.device)
    if args.only in (None, "chain"):
        good &= run_chain(args.rounds, args.right, args.device)
    if not good:
        print("A text is not the same: its time counts for nothing.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
