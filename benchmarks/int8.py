"""What int8 weights cost in accuracy, and what their products gain.

    python benchmarks/int8.py                      products by shape, errors by kind of layer
    python benchmarks/int8.py --bleu DIR           BLEU of the shipped translator, too
    python benchmarks/int8.py --only products --device cuda --dtype bfloat16

DIR holds Multi30k (multi30k/raw) and Tatoeba (tatoeba/cmn-eng.tsv.gz), of which the last pairs are
translated. Checked, with exit code 1 on a breach: products err by no more than rounding explains,
logits of the shipped models by 5 % of their spread on average, BLEU falls by at most 0.2.
"""

import argparse
import gzip
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

import glassformer as gf
from glassformer.functional.int8 import Int8Weight, as_parameter, int8_linear, quantize_rows
from glassformer.generation import rank_translations
from glassformer.models import EncoderDecoder
from glassformer.models.quantization import list_matrices

SHAPES = ((512, 512), (2048, 512), (512, 2048), (32_000, 512))  # outputs, inputs
ROWS = (1, 4, 8, 32, 128)
COLD = 48 << 20  # bytes of weights to go through, so that none is in a cache when it is used
KINDS = {
    "projections of q, k, v": (".qkv.", ".q.", ".kv."),
    "attention's output": (".out.",),
    "feed-forward": (".up.", ".down."),
    "embedding and output matrix": ("embedding.",),
}
TEXT = "The children were playing in front of the house when it started to rain."


def time_products(device: str, dtype: torch.dtype, repeats: int) -> bool:
    """Our product and PyTorch's beside the float one, by shape and rows."""
    print(f"\n| outputs × inputs | rows | {dtype} µs | int8 / it | PyTorch's int8 / it | error |")
    print("|---|---|---|---|---|---|")
    fine = True
    for n_out, n_in in SHAPES:
        weight = torch.randn(n_out, n_in, device=device) * n_in**-0.5
        integers, scale = quantize_rows(weight)
        floats = weight.to(dtype)
        n_copies = max(1, COLD // integers.numel())
        many = [integers.clone() for _ in range(n_copies)]
        same_scale = scale.to(dtype)
        wide = [floats.clone() for _ in range(max(1, n_copies // floats.element_size()))]
        for n_rows in ROWS:
            x = torch.randn(n_rows, n_in, device=device, dtype=dtype)
            error, allowed = _product_error(x, integers, scale)
            fine &= error <= allowed
            works: tuple[Callable[[int], object], ...] = (
                lambda i, x=x, wide=wide: F.linear(x, wide[i % len(wide)]),
                lambda i, x=x, many=many, s=scale: int8_linear(x, many[i % len(many)], s),
                lambda i, x=x, many=many, s=same_scale: torch.ops.aten._weight_int8pack_mm(
                    x, many[i % len(many)], s
                ),
            )
            n = max(5, min(repeats, int(1e9 / (n_rows * n_out * n_in))))
            base, ours, theirs = _take_turns(works, n, device)
            print(
                f"| {n_out:,} × {n_in:,} | {n_rows} | {base * 1e6:.0f} | {ours / base:.2f} | "
                f"{theirs / base:.2f} | {error:.1e} |",
                flush=True,
            )
    return fine


def _product_error(
    x: torch.Tensor, integers: torch.Tensor, scale: torch.Tensor
) -> tuple[float, float]:
    """The worst error over the largest output; allowed is what rounding x and the dtype explain."""
    exact = F.linear(x.double(), integers.double() * scale.double()[:, None])
    error = (int8_linear(x, integers, scale).double() - exact).abs()
    half_step = x.double().abs().amax(-1, keepdim=True) / 254
    rounding = half_step * (integers.double().abs() * scale.double()[:, None]).sum(1)
    allowed = rounding + 4 * torch.finfo(x.dtype).eps * exact.abs().max()
    largest = float(exact.abs().max())
    return float(error.max()) / largest, float(allowed.max()) / largest


def _take_turns(
    works: tuple[Callable[[int], object], ...], n: int, device: str
) -> tuple[float, ...]:
    spent: list[list[float]] = [[] for _ in works]
    for i in range(n + 2):
        for times, work in zip(spent, works, strict=True):
            start = _clock(device)
            work(i)
            times.append(_clock(device) - start)
    return tuple(statistics.median(times[2:]) for times in spent)


def _clock(device: str) -> float:
    """The processor's own time, which does not count what other programs do."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def measure_errors() -> bool:
    """Mean error of the translator's logits over their spread, with one kind of matrix in int8."""
    model = gf.load("translator")
    assert isinstance(model, EncoderDecoder) and model.tokenizer is not None
    source = torch.tensor([model.tokenizer.encode(f"<fr> {TEXT}")])
    (best,) = rank_translations(model, [TEXT], to="fr")
    tokens = torch.tensor([[*model.special.start, *best[0].tokens]])
    expected = model(source, tokens)
    print("\n| in int8 | mean error of the logits / their standard deviation | worst |")
    print("|---|---|---|")
    found = 0.0
    for kind, marks in {**KINDS, "all": ("",)}.items():
        partly = gf.load("translator")
        for name in list_matrices(partly):
            if any(mark in name for mark in marks):
                owner = partly.get_submodule(name.rpartition(".")[0])
                owner.weight = as_parameter(Int8Weight.of(owner.weight))
        error = (partly(source, tokens) - expected).abs() / expected.std()
        found = float(error.mean())
        print(f"| {kind} | {found:.4f} | {float(error.max()):.4f} |", flush=True)
    return found <= 0.05


def measure_bleu(data: Path, n: int) -> bool:
    """BLEU of float32 and int8 by beam search, on the same sentences."""
    import sacrebleu

    pairs = {}
    flickr = [
        gzip.decompress((data / f"multi30k/raw/test_2016_flickr.{code}.gz").read_bytes())
        .decode()
        .splitlines()[:n]
        for code in ("en", "fr")
    ]
    pairs["fr", "Multi30k 2016"] = flickr
    lines = gzip.decompress((data / "tatoeba/cmn-eng.tsv.gz").read_bytes()).decode().splitlines()
    chosen = [line.split("\t")[:2] for line in lines[-n:]]
    pairs["zh", "Tatoeba"] = [[pair[i] for pair in chosen] for i in (0, 1)]
    print("\n| English to | sentences | float32 | int8 | same translations |")
    print("|---|---|---|---|---|")
    fine = True
    whole = gf.load("translator")
    for (code, corpus), (sources, references) in pairs.items():
        scores, texts = [], []
        for model in (whole, gf.quantize(whole)):
            ranked = rank_translations(model, sources, to=code)
            texts.append([best[0].text for best in ranked])
            bleu = sacrebleu.corpus_bleu(
                texts[-1], [references], tokenize="zh" if code == "zh" else "13a"
            )
            scores.append(bleu.score)
        fine &= scores[0] - scores[1] <= 0.2
        same = sum(a == b for a, b in zip(*texts, strict=True))
        print(
            f"| {code}, {corpus} | {len(sources)} | {scores[0]:.2f} | {scores[1]:.2f} | {same} |",
            flush=True,
        )
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--bleu", type=Path, metavar="DIR", help="with BLEU on the data of DIR")
    parser.add_argument("--sentences", type=int, default=1000, help="for BLEU, of each language")
    parser.add_argument("--only", choices=("products", "errors", "bleu"))
    wish = parser.parse_args()
    torch.set_num_threads(wish.threads)
    torch.manual_seed(0)
    fine = True
    if wish.only in (None, "products"):
        with torch.no_grad():
            fine &= time_products(wish.device, getattr(torch, wish.dtype), wish.repeats)
    if wish.only in (None, "errors"):
        fine &= measure_errors()
    if wish.bleu is not None and wish.only in (None, "bleu"):
        fine &= measure_bleu(wish.bleu, wish.sentences)
    if not fine:
        print("BREACH: an error is larger than allowed.")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
