"""What int8 and fp8 weights cost in accuracy, and what their products gain.

    python benchmarks/quantized.py                 products by shape, errors by kind of layer
    python benchmarks/quantized.py --bleu DIR      BLEU of the shipped translator, too
    python benchmarks/quantized.py --only products --device cuda --dtype bfloat16

DIR holds Multi30k (multi30k/raw) and Tatoeba (tatoeba/cmn-eng.tsv.gz), of which the last pairs are
translated. Checked, with exit code 1 on a breach: products err by no more than rounding explains,
logits of the shipped translator by 5 % of their spread on average, BLEU falls by at most 0.2 with
int8 (fp8 is only shown).
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
from glassformer.functional.quantized import (
    KINDS,
    QuantizedWeight,
    as_parameter,
    dequantize_rows,
    quantize_rows,
    quantized_linear,
)
from glassformer.generation import rank_translations
from glassformer.models import EncoderDecoder
from glassformer.models.quantization import list_matrices

SHAPES = ((512, 512), (2048, 512), (512, 2048), (32_000, 512))  # outputs, inputs
ROWS = (1, 4, 8, 32, 128)
COLD = 48 << 20  # bytes of weights to go through, so that none is in a cache when it is used
MATRICES = {
    "projections of q, k, v": (".qkv.", ".q.", ".kv."),
    "attention's output": (".out.",),
    "feed-forward": (".up.", ".down."),
    "embedding and output matrix": ("embedding.",),
}
TEXT = "The children were playing in front of the house when it started to rain."


def time_products(device: str, dtype: torch.dtype, repeats: int) -> bool:
    """Our product and PyTorch's beside the float one, by shape and rows."""
    print(
        f"\n| outputs × inputs | rows | {dtype} µs | int8 / it | fp8 / it | PyTorch's int8 / it | "
        "error of int8 | of fp8 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    fine = True
    for n_out, n_in in SHAPES:
        weight = torch.randn(n_out, n_in, device=device) * n_in**-0.5
        stored = {kind: quantize_rows(weight, kind) for kind in KINDS}
        floats = weight.to(dtype)
        n_copies = max(1, COLD // weight.numel())
        many = {
            kind: [numbers.clone() for _ in range(n_copies)]
            for kind, (numbers, _) in stored.items()
        }
        same_scale = stored["int8"][1].to(dtype)
        wide = [floats.clone() for _ in range(max(1, n_copies // floats.element_size()))]
        for n_rows in ROWS:
            x = torch.randn(n_rows, n_in, device=device, dtype=dtype)
            errors = [_product_error(x, *stored[kind]) for kind in KINDS]
            fine &= all(error <= allowed for error, allowed in errors)
            works: tuple[Callable[[int], object], ...] = (
                lambda i, x=x, wide=wide: F.linear(x, wide[i % len(wide)]),
                *(
                    lambda i, x=x, each=many[kind], s=scale: quantized_linear(
                        x, each[i % len(each)], s
                    )
                    for kind, (_, scale) in stored.items()
                ),
                lambda i, x=x, each=many["int8"], s=same_scale: torch.ops.aten._weight_int8pack_mm(
                    x, each[i % len(each)], s
                ),
            )
            n = max(5, min(repeats, int(1e9 / (n_rows * n_out * n_in))))
            base, *others = _take_turns(works, n, device)
            ratios = " | ".join(f"{each / base:.2f}" for each in others)
            worst = " | ".join(f"{error:.1e}" for error, _ in errors)
            print(
                f"| {n_out:,} × {n_in:,} | {n_rows} | {base * 1e6:.0f} | {ratios} | {worst} |",
                flush=True,
            )
    return fine


def _product_error(
    x: torch.Tensor, numbers: torch.Tensor, scale: torch.Tensor
) -> tuple[float, float]:
    """The worst error over the largest output, and what is allowed.

    That is what rounding x explains, and twice the error of PyTorch's product of floats.
    """
    weight = dequantize_rows(numbers, scale, torch.float64)
    exact = F.linear(x.double(), weight)
    error = (quantized_linear(x, numbers, scale).double() - exact).abs()
    half_step = x.double().abs().amax(-1, keepdim=True) / 254
    is_rounded = numbers.dtype == torch.int8 and not x.is_cuda
    rounding = half_step * weight.abs().sum(1) if is_rounded else torch.zeros_like(exact)
    own = (F.linear(x, weight.to(x.dtype)).double() - exact).abs().max()
    allowed = rounding + 2 * own + 2 * torch.finfo(x.dtype).eps * exact.abs().max()
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
    """Mean error of the translator's logits over their spread, with some matrices quantized."""
    model = gf.load("translator")
    assert isinstance(model, EncoderDecoder) and model.tokenizer is not None
    source = torch.tensor([model.tokenizer.encode(f"<fr> {TEXT}")])
    (best,) = rank_translations(model, [TEXT], to="fr")
    tokens = torch.tensor([[*model.special.start, *best[0].tokens]])
    expected = model(source, tokens)
    print("\nMean error of the logits over their standard deviation (and the worst)")
    print(f"| quantized | {' | '.join(KINDS)} |")
    print("|---|---|---|")
    found: dict[str, float] = {}
    for matrices, marks in {**MATRICES, "all": ("",)}.items():
        shown = []
        for kind in KINDS:
            partly = gf.load("translator")
            for name in list_matrices(partly):
                if any(mark in name for mark in marks):
                    owner = partly.get_submodule(name.rpartition(".")[0])
                    owner.weight = as_parameter(QuantizedWeight.of(owner.weight, kind))
            error = (partly(source, tokens) - expected).abs() / expected.std()
            found[kind] = float(error.mean())
            shown.append(f"{found[kind]:.4f} ({float(error.max()):.3f})")
        print(f"| {matrices} | {' | '.join(shown)} |", flush=True)
    return max(found.values()) <= 0.05


def measure_bleu(data: Path, n: int) -> bool:
    """BLEU of float32, int8 and fp8 by beam search, on the same sentences."""
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
    print("\n| English to | sentences | float32 | int8 (same translations) | fp8 (same) |")
    print("|---|---|---|---|---|")
    fine = True
    whole = gf.load("translator")
    for (code, corpus), (sources, references) in pairs.items():
        scores, texts = [], []
        for model in (whole, *(gf.quantize(whole, kind) for kind in KINDS)):
            ranked = rank_translations(model, sources, to=code)
            texts.append([best[0].text for best in ranked])
            bleu = sacrebleu.corpus_bleu(
                texts[-1], [references], tokenize="zh" if code == "zh" else "13a"
            )
            scores.append(bleu.score)
        fine &= scores[0] - scores[1] <= 0.2
        shown = [f"{scores[0]:.2f}"]
        for score, found in zip(scores[1:], texts[1:], strict=True):
            same = sum(a == b for a, b in zip(texts[0], found, strict=True))
            shown.append(f"{score:.2f} ({same})")
        print(f"| {code}, {corpus} | {len(sources)} | {' | '.join(shown)} |", flush=True)
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
