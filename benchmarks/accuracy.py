"""How exact is every backend? Each against the definition in float64, output and gradients.

    python benchmarks/accuracy.py                      every case on the CPU
    python benchmarks/accuracy.py --device cuda --jobs 12
    python benchmarks/accuracy.py --quick              the cut that runs in the tests

A case passes if  err(backend) ≤ factor · err(definition in the same dtype) + 2 ulp,  with factor 2
for outputs and 3 for gradients, each error the largest over the whole tensor and ulp that of its
largest value; float32 passes within 1e-5 too, and float64, where the definition is its own oracle,
within 1e-12. A backend that refuses a case says why; that is listed and is no breach.
Exits with 1 on any breach.
"""

import argparse
import itertools
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from contextlib import nullcontext as nothing
from dataclasses import dataclass

import torch
from torch import Tensor

import glassformer as gf
from glassformer.functional import reference
from glassformer.functional.dispatch import BACKENDS

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
# B, H, K, L, S, D, E. Lengths cross the blocks of 128 that kernels work in.
SHAPES = {
    "L = S": (2, 3, 3, 157, 157, 16, 16),
    "L < S": (2, 3, 3, 67, 211, 16, 16),
    "L > S": (2, 3, 3, 211, 67, 16, 16),
    "grouped": (2, 6, 2, 139, 163, 16, 16),
    "E ≠ D": (2, 3, 3, 131, 173, 16, 24),
}
TILES_BUDGET = 1 << 20  # small, so that streaming has many tiles to get wrong


def make_mask(kind: str, B: int, L: int, S: int, device: str) -> gf.Mask | None:
    generator = torch.Generator().manual_seed(7)
    causal, window = gf.Causal(), gf.Window(left=29, right=11)
    lengths = torch.tensor([min(L, S) - 5, min(L, S) // 2], device=device)
    padding, both = gf.Padding(lengths), gf.Padding(lengths, of="both")
    ids = (torch.arange(S, device=device) // 41)[None].expand(B, S).contiguous()
    asking = (torch.arange(L, device=device) // 37)[None].expand(B, L).contiguous()
    documents = gf.Documents(ids, query_ids=asking)
    explicit = torch.rand(B, 1, L, S, generator=generator) > 0.6
    explicit[:, :, 5] = False  # a row where nothing is allowed
    kinds = {
        "none": None,
        "causal": causal,
        "window": window,
        "padding": padding,
        "prefix": gf.Prefix(23),
        "documents": documents,
        "explicit": gf.Explicit(explicit.to(device)),
        "causal & window": causal & gf.Window(left=29),
        "causal & padding": causal & padding,
        "causal | prefix": causal | gf.Prefix(23),
        "documents & causal": documents & causal,
        "~window & padding of both": ~window & both,
    }
    return kinds[kind]


MASKS = (
    "none",
    "causal",
    "window",
    "padding",
    "prefix",
    "documents",
    "explicit",
    "causal & window",
    "causal & padding",
    "causal | prefix",
    "documents & causal",
    "~window & padding of both",
)
SCORINGS = ("plain", "alibi", "relative buckets", "explicit bias", "softcap")


def make_scoring(kind: str, H: int, L: int, S: int, dtype: torch.dtype, device: str) -> dict:
    generator = torch.Generator().manual_seed(11)
    table = torch.randn(32, H, generator=generator).to(device, dtype).requires_grad_()
    dense = torch.randn(1, H, L, S, generator=generator).to(device, dtype).requires_grad_()
    return {
        "plain": {},
        "alibi": {"bias": gf.ALiBi.of_heads(H, device=device)},
        "relative buckets": {"bias": gf.RelativeBuckets(table)},
        "explicit bias": {"bias": gf.ExplicitBias(dense)},
        "softcap": {"softcap": 1.5},
    }[kind]


@dataclass(frozen=True)
class Case:
    backend: str
    dtype: str
    shape: str
    mask: str
    scoring: str
    device: str

    def __str__(self) -> str:
        extra = "" if self.scoring == "plain" else f", {self.scoring}"
        return f"{self.backend}, {self.dtype}, {self.shape}, {self.mask}{extra}"


@dataclass(frozen=True)
class Outcome:
    case: Case
    refused: str | None = None
    ratios: dict[str, float] | None = None  # error over what is allowed, for out and each gradient
    differentiable: bool = True

    @property
    def worst(self) -> float:
        return max(self.ratios.values()) if self.ratios else 0.0

    @property
    def breach(self) -> bool:
        return self.ratios is not None and not self.worst <= 1  # NaN is a breach


def measure(case: Case) -> Outcome:
    """One case: the backend, the definition in the same dtype, and the definition in float64."""
    B, H, K, L, S, D, E = SHAPES[case.shape]
    dtype, device = DTYPES[case.dtype], case.device
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).to(device, dtype)

    leaves = [drawn(B, H, L, D), drawn(B, K, S, D), drawn(B, K, S, E)]
    back = drawn(B, H, L, E)
    mask = make_mask(case.mask, B, L, S, device)
    options = {"mask": mask, **make_scoring(case.scoring, H, L, S, dtype, device)}

    differentiable = True
    fast = _run(case.backend, leaves, back, options)
    if isinstance(fast, str) and "gradients" in fast:
        differentiable = False
        with torch.no_grad():
            fast = _run(case.backend, leaves, None, options)
    if isinstance(fast, str):
        return Outcome(case, refused=fast)

    exact_options = {**options, **_in_float64(options)}
    exact = _run("reference", [x.double() for x in leaves], back.double(), exact_options)
    plain = _run("reference", leaves, back, options)
    assert isinstance(exact, dict) and isinstance(plain, dict)
    ratios = {}
    for name, got in fast.items():
        allowed = _allowed(name, dtype, plain[name], exact[name])
        error = (got.double() - exact[name]).abs().max().item()
        ratios[name] = error / allowed
    return Outcome(case, ratios=ratios, differentiable=differentiable)


def _run(backend: str, leaves: list[Tensor], back: Tensor | None, options: dict) -> dict | str:
    inputs = [x.detach().clone().requires_grad_(back is not None) for x in leaves]
    bias = options.get("bias")
    learned = [t for t in bias.tensors() if t.requires_grad] if bias is not None else []
    try:
        with gf.memory_budget(TILES_BUDGET):
            if backend == "reference":
                out = reference.attention(*inputs, **options)
            else:
                out = gf.attention(*inputs, **options, backend=backend)
    except gf.errors.BackendError as error:
        return str(error).split("exactly: ")[1].split(". Leave")[0]
    results = {"out": out.detach()}
    if back is not None:
        grads = torch.autograd.grad(out, [*inputs, *learned], back)
        names = ["dq", "dk", "dv", *(f"dbias{i}" for i in range(len(learned)))]
        results |= dict(zip(names, grads, strict=True))
    return results


def _in_float64(options: dict) -> dict:
    bias = options.get("bias")
    if isinstance(bias, gf.RelativeBuckets):
        return {"bias": gf.RelativeBuckets(bias.table.detach().double().requires_grad_())}
    if isinstance(bias, gf.ExplicitBias):
        return {"bias": gf.ExplicitBias(bias.tensor.detach().double().requires_grad_())}
    return {}


def _allowed(name: str, dtype: torch.dtype, plain: Tensor, exact: Tensor) -> float:
    largest = exact.abs().max().item()
    if dtype == torch.float64:
        return 1e-12 * max(largest, 1.0)
    factor = 2 if name == "out" else 3
    error = (plain.double() - exact).abs().max().item()
    allowed = factor * error + 2 * torch.finfo(dtype).eps * largest
    if dtype == torch.float32:
        allowed = max(allowed, 1e-5 * max(largest, 1.0))
    return max(allowed, torch.finfo(dtype).tiny)


def cases(device: str, backends: list[str], *, quick: bool) -> list[Case]:
    """Every backend × dtype × shape × mask, and each other kind of scoring with a causal mask."""
    masks = ("none", "causal", "causal & padding", "~window & padding of both") if quick else MASKS
    shapes = ("L < S", "grouped") if quick else tuple(SHAPES)
    dtypes = ("float32", "bfloat16") if quick else tuple(DTYPES)
    plain = itertools.product(backends, dtypes, shapes, masks, ("plain",), (device,))
    scored = itertools.product(backends, dtypes, shapes, ("causal",), SCORINGS[1:], (device,))
    return [Case(*c) for c in (*plain, *scored)]


def measure_group(group: list[Case]) -> list[Outcome]:
    warnings.simplefilter("ignore")
    if group[0].device == "cpu":
        torch.set_num_threads(1)
    return [measure(case) for case in group]


def table(outcomes: list[Outcome]) -> str:
    """The worst ratio of error to what is allowed, for every backend, dtype and shape."""
    worst: dict = defaultdict(float)
    count: dict = defaultdict(int)
    partial: set = set()
    for o in outcomes:
        row = (o.case.backend, o.case.dtype)
        if o.ratios is not None:
            worst[row, o.case.shape] = max(worst[row, o.case.shape], o.worst)
            if o.breach:
                worst[row, o.case.shape] = float("nan")
            count[row] += 1
            if not o.differentiable:
                partial.add(row)
    shapes = list(dict.fromkeys(o.case.shape for o in outcomes))
    lines = ["backend    dtype     " + "".join(f"{s:>10}" for s in shapes) + "   cases"]
    for row in dict.fromkeys((o.case.backend, o.case.dtype) for o in outcomes):
        if not count[row]:
            lines.append(f"{row[0]:<10} {row[1]:<9} refused")
            continue
        cells = "".join(f"{worst[row, s]:>10.2f}" for s in shapes)
        note = "  outputs only" if row in partial else ""
        lines.append(f"{row[0]:<10} {row[1]:<9}{cells}{count[row]:>8}{note}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--backend", choices=list(BACKENDS), action="append")
    parser.add_argument("--quick", action="store_true", help="a small cut, as in the tests")
    parser.add_argument("--seconds", type=float, default=3600, help="stop and report after")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    args = parser.parse_args(arguments)
    backends = args.backend or ["sdpa", "native", "flex", "streaming"]
    groups: dict = defaultdict(list)
    for case in cases(args.device, backends, quick=args.quick):
        groups[case.backend, case.dtype, case.mask, case.scoring].append(case)
    outcomes: list[Outcome] = []
    show = sys.stderr.isatty()
    end = time.monotonic() + args.seconds
    with (
        multiprocessing.get_context("spawn").Pool(args.jobs) if args.jobs > 1 else nothing() as pool
    ):
        done = pool.imap_unordered(measure_group, groups.values()) if pool else None
        for group in groups.values():
            if time.monotonic() > end:
                break
            try:
                outcomes += done.next(end - time.monotonic()) if done else measure_group(group)
            except multiprocessing.TimeoutError:
                break
            if show:
                print(f"\r{len(outcomes)} cases", end="", file=sys.stderr, flush=True)
    order = {case: i for i, group in enumerate(groups.values()) for case in group}
    outcomes.sort(key=lambda o: order[o.case])
    total = sum(len(group) for group in groups.values())
    if len(outcomes) < total:
        print(f"\nINCOMPLETE: {len(outcomes)} of {total} cases within {args.seconds:.0f} seconds")
    print(f"\nworst error / allowed error, on {args.device}, torch {torch.__version__}\n")
    print(table(outcomes))
    refused = dict.fromkeys((o.case.backend, o.refused) for o in outcomes if o.refused)
    for backend, reason in refused:
        n = sum(o.refused == reason and o.case.backend == backend for o in outcomes)
        print(f"\n{backend} refuses {n} cases: {reason}")
    breaches = [o for o in outcomes if o.breach]
    for o in breaches:
        print(f"BREACH {o.case}: { ({k: round(v, 2) for k, v in o.ratios.items()}) }")
    passed = len([o for o in outcomes if o.ratios is not None]) - len(breaches)
    print(
        f"\n{passed} passed, {len(breaches)} failed, "
        f"{len(outcomes) - passed - len(breaches)} refused"
    )
    return 1 if breaches or len(outcomes) < total else 0


if __name__ == "__main__":
    sys.exit(main())
