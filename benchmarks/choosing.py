"""Whether `gf.attention` chooses the fastest backend: every possible one, in turns, on many calls.

python benchmarks/choosing.py                       CPU, float32; --dtype bfloat16
python benchmarks/choosing.py --device cuda         GPU, bfloat16; PyTorch's kernels one by one, too
"""

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

import glassformer as gf
from glassformer.errors import BackendError
from glassformer.functional.biases import Bias
from glassformer.functional.masks import Mask
from measure import seconds

LARGEST = 1 << 28  # scores that a matrix may have: the definition and dense masks need some copies
PYTORCH_KERNELS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION")


class Call(NamedTuple):
    """One call of attention: B sequences, H heads on K key-value heads, L queries, S keys."""

    name: str
    B: int
    H: int
    K: int
    L: int
    S: int
    D: int
    mask: Mask | None = None
    bias: Bias | None = None
    softcap: float | None = None

    def __str__(self) -> str:
        heads = f"{self.H}" if self.H == self.K else f"{self.H}/{self.K}"
        tokens = f"{self.L}" if self.L == self.S else f"{self.L}/{self.S}"
        return f"{self.name:<18} {self.B:>3} × {heads:<5} × {tokens:<10} × {self.D:<3}"


def calls(device: str) -> Iterator[Call]:
    """Shapes of training, of reading a prompt and of decoding, with every kind of mask and bias."""
    factor = 1 if device == "cpu" else 4  # a GPU gets longer texts
    causal = gf.Causal()
    for B, H, L, D in ((32, 4, 64, 64), (8, 8, 256, 64), (1, 12, 1024, 64), (1, 8, 4096, 128)):
        length = L * factor
        yield Call("no mask", B, H, H, length, length, D)
        yield Call("causal", B, H, H, length, length, D, causal)
    for L, width in ((256, 64), (1024, 128), (1024, 512), (4096, 256)):
        length, left = L * factor, width * factor - 1
        yield Call("window", 1, 8, 8, length, length, 64, causal & gf.Window(left))
    for L in (64, 256, 1024, 2048):
        length = L * factor
        ends = torch.arange(length, device=device) * 4 // length
        yield Call("documents", 2, 8, 8, length, length, 64, causal & gf.Documents(ends))
        yield Call("prefix", 2, 8, 8, length, length, 64, causal | gf.Prefix(length // 2))
        lengths = torch.tensor([length, length // 3], device=device)
        yield Call("padding", 2, 8, 8, length, length, 64, gf.Padding(lengths))
        yield Call("causal, padding", 2, 8, 8, length, length, 64, causal & gf.Padding(lengths))
        slopes = gf.ALiBi(torch.tensor([2.0**-n for n in range(1, 9)], device=device))
        yield Call("causal, ALiBi", 2, 8, 8, length, length, 64, causal, slopes)
        buckets = gf.RelativeBuckets(torch.randn(32, 8, device=device))
        yield Call("buckets", 2, 8, 8, length, length, 64, None, buckets)
        yield Call("causal, softcap", 2, 8, 8, length, length, 64, causal, softcap=50.0)
    yield Call("softcap", 1, 8, 8, 16, 16, 64, causal, softcap=50.0)
    for L, S in ((1, 256), (1, 4096), (8, 1024), (128, 1024), (512, 4096)):
        tokens = L if L == 1 else L * factor
        yield Call("after a past", 4, 8, 8, tokens, S * factor, 64, causal if L > 1 else None)
        seen = torch.tensor([S * factor // n for n in (1, 2, 3, 4)], device=device)
        padding = gf.Padding(seen, side="left")
        mask = causal & padding if L > 1 else padding
        yield Call("padding and past", 4, 8, 8, tokens, S * factor, 64, mask)
    for L in (64, 512, 2048):
        yield Call("grouped, causal", 1, 16, 4, L * factor, L * factor, 64, causal)


def candidates(call: Call, q: Tensor, k: Tensor, v: Tensor, *, learns: bool) -> dict[str, Callable]:
    """Each way to compute the call: a function of nothing, that gives the output."""
    options = {"mask": call.mask, "bias": call.bias, "softcap": call.softcap}
    found: dict[str, Callable] = {"chosen": lambda: gf.attention(q, k, v, **options)}
    n_scores = call.B * call.H * call.L * call.S
    for name, refusal in gf.explain(q, k, v, **options).refusals.items():
        if refusal is not None or (name == "reference" and n_scores > LARGEST):
            continue
        if name == "sdpa" and q.is_cuda:
            for kernel in PYTORCH_KERNELS:
                found[f"sdpa {kernel.split('_')[0].lower()}"] = with_kernel(
                    kernel, lambda: gf.attention(q, k, v, **options, backend="sdpa")
                )
        found[name] = lambda name=name: gf.attention(q, k, v, **options, backend=name)
    if not learns:
        return found
    gradient = torch.randn_like(q)
    return {
        name: lambda work=work: torch.autograd.grad(work(), (q, k, v), gradient)
        for name, work in found.items()
    }


def with_kernel(kernel: str, work: Callable) -> Callable:
    """The same with one of PyTorch's kernels; it raises where that kernel cannot."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run():
        with sdpa_kernel(getattr(SDPBackend, kernel)):
            return work()

    return run


def check(call: Call, works: dict[str, Callable], tolerance: float) -> dict[str, Callable]:
    """Those that run; each result is first compared with the definition's.

    Where the matrix is too large for the definition, with that of streaming.
    """
    outputs: dict[str, tuple[Tensor, ...]] = {}
    for name, work in works.items():
        try:
            found = work()
        except (RuntimeError, BackendError):  # a kernel that cannot compute or compile this call
            if name.startswith("sdpa ") or name == "flex":
                continue
            raise
        outputs[name] = found if isinstance(found, tuple) else (found,)
    exact = outputs.get("reference", outputs.get("streaming"))
    assert exact is not None
    for name, output in outputs.items():
        worst = max(
            ((a.double() - b.double()).abs().max() / b.double().abs().max().clamp_min(1.0)).item()
            for a, b in zip(output, exact, strict=True)
        )
        if not worst <= tolerance:
            raise SystemExit(f"{call}: {name} differs by {worst:.2e}, more than {tolerance:.0e}")
    return {name: works[name] for name in outputs}


def time_in_turns(works: dict[str, Callable], device: str, spend: float) -> dict[str, float]:
    """Medians in seconds, each work as often as fits into `spend` seconds, 5 times at least."""
    ahead = None if device == "cpu" else torch.empty(1 << 29, dtype=torch.float32, device=device)
    for _ in range(2):
        start = time.perf_counter()
        for work in works.values():
            seconds(work, device, ahead)
        once = time.perf_counter() - start
    rounds = max(5, min(200, int(spend / once)))
    runs: dict[str, list[float]] = {name: [] for name in works}
    names = [*works]
    for i in range(rounds):  # each is the first in turn: what comes after a slow one is slower
        first = i % len(names)
        for name in names[first:] + names[:first]:
            runs[name].append(seconds(works[name], device, ahead))
    return {name: statistics.median(times) for name, times in runs.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--only", help="calls whose name contains this")
    parser.add_argument("--spend", type=float, default=2.0, help="seconds for each call")
    parser.add_argument("--pass", dest="which", choices=["forward", "backward"], help="only one")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    dtype = getattr(torch, args.dtype or ("float32" if args.device == "cpu" else "bfloat16"))
    tolerance = 2e-4 if dtype == torch.float32 else 3e-2
    warnings.simplefilter("ignore")  # PyTorch's, of kernels that cannot compute a call
    print(f"torch {torch.__version__}, {args.device}, {dtype}, {torch.get_num_threads()} threads")
    print("what a call takes as chosen, the fastest way, and how much longer the choice takes\n")
    losses = []
    for call in calls(args.device):
        if args.only and args.only not in call.name:
            continue
        for which in ("forward", "backward") if args.which is None else (args.which,):
            learns = which == "backward"
            torch.manual_seed(0)
            q, k, v = (
                torch.randn(
                    call.B, heads, n, call.D, device=args.device, dtype=dtype, requires_grad=learns
                )
                for heads, n in ((call.H, call.L), (call.K, call.S), (call.K, call.S))
            )
            context: AbstractContextManager = nullcontext() if learns else torch.no_grad()
            with context:
                chosen = gf.explain(q, k, v, mask=call.mask, bias=call.bias, softcap=call.softcap)
                works = check(call, candidates(call, q, k, v, learns=learns), tolerance)
                times = time_in_turns(works, args.device, args.spend)
            took = times.pop("chosen")
            best = min(times, key=lambda name: times[name])
            # As the same backend chosen by name takes: what is left is the choice, not its check.
            loss = min(took, times[chosen.backend]) / times[best]
            losses.append(loss)
            others = ", ".join(f"{name} {t / times[best]:.2f}" for name, t in times.items())
            print(
                f"{call} {which:<8} {chosen.backend:<9} {took * 1e3:9.3f} ms, best {best:<9} "
                f"{times[best] * 1e3:9.3f} ms, {loss:5.2f}  ({others})",
                flush=True,
            )
    within = sum(loss <= 1.1 for loss in losses)
    print(f"\n{within} of {len(losses)} choices are within 10 % of the fastest; ", end="")
    print(f"median {statistics.median(losses):.3f}, worst {max(losses):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
