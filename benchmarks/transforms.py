"""What PyTorch's transforms do to `gf.attention` and to `F.scaled_dot_product_attention`.

    python benchmarks/transforms.py                        every kind of mask and bias, on the CPU
    python benchmarks/transforms.py --compiler inductor    compiled for real: minutes
    python benchmarks/transforms.py --device cuda
    python benchmarks/transforms.py --quick                the cut that runs in the tests

Each cell compares values with the definition in float64 and reads "ours theirs": ✓ right, ✗ an
error, ! a wrong value or dtype, – a case that `F.scaled_dot_product_attention` cannot express.
Compiled functions run at two lengths, exported ones at another than they were traced with.
Exits with 1 where ours is wrong, or fails where theirs is right.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import glassformer as gf
from glassformer.functional import reference
from glassformer.functional.masks import Not

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
B, H, D = 2, 4, 8
SHORT, LONG = 7, 23  # fewer and more keys than a vector register holds
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}  # of the largest value, or of 1


def options(kind: str, q: Tensor, k: Tensor) -> dict[str, Any]:
    """The arguments of a case, from the sizes alone, so that lengths may stay dynamic."""
    L, S = q.shape[2], k.shape[2]
    rows, cols = (torch.arange(n, device=q.device) for n in (L, S))
    lengths = torch.tensor([3, 5], device=q.device)[: q.shape[0]]
    buckets = torch.linspace(-1, 1, 32 * H, device=q.device).view(32, H)
    offset = torch.tensor(1, device=q.device)
    return {
        "none": dict,
        "causal": lambda: {"mask": gf.Causal()},
        "causal, offset": lambda: {"mask": gf.Causal(offset=offset)},
        "window": lambda: {"mask": gf.Window(left=2, right=1)},
        "prefix": lambda: {"mask": gf.Causal() | gf.Prefix(3)},
        "padding": lambda: {"mask": gf.Padding(lengths)},
        "documents": lambda: {"mask": gf.Documents(cols // 3) & gf.Causal()},
        "explicit": lambda: {"mask": (rows[:, None] + cols) % 3 != 0},
        "rows hidden": lambda: {
            "mask": Not(gf.Padding(lengths)) & gf.Explicit(rows[:, None] < cols)
        },
        "explicit bias": lambda: {"bias": torch.sin(rows[:, None] - cols.to(q.dtype))},
        "relative buckets": lambda: {"bias": gf.RelativeBuckets(buckets), "mask": gf.Causal()},
        "ALiBi": lambda: {"bias": gf.ALiBi.of_heads(H, device=q.device), "mask": gf.Causal()},
        "scale < 0": lambda: {"mask": gf.Causal(), "scale": -0.7},
        "scale = 0": lambda: {"mask": gf.Causal(), "scale": 0.0},
        "grouped heads": lambda: {"mask": gf.Causal()},
        "more keys": lambda: {"mask": gf.Causal()},
        "softcap": lambda: {"mask": gf.Causal(), "softcap": 2.0},
    }[kind]()


KINDS = (
    "none",
    "causal",
    "causal, offset",
    "window",
    "prefix",
    "padding",
    "documents",
    "explicit",
    "rows hidden",
    "explicit bias",
    "relative buckets",
    "ALiBi",
    "scale < 0",
    "scale = 0",
    "grouped heads",
    "more keys",
    "softcap",
)
QUICK_KINDS = ("causal", "padding", "softcap")
QUICK_TRANSFORMS = ("dynamic", "export", "vmap of grad", "jvp", "autocast, mixed", "fake", "meta")


def attend_by(who: str, kind: str) -> Attend:
    """A case as a function of q, k and v: "ours", "theirs", or "exact", the definition."""

    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return gf.attention(q, k, v, **options(kind, q, k))

    def exact(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return reference.attention(q, k, v, **options(kind, q, k))

    def theirs(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        given = options(kind, q, k)
        mask, bias = given.pop("mask", None), given.pop("bias", None)
        if isinstance(mask, gf.Causal) and mask.offset is None and kind != "more keys" and not bias:
            mask, given["is_causal"] = None, True
        elif isinstance(mask, gf.Mask):
            mask = _dense(mask, q, k)
        if bias is not None:
            bias = bias if isinstance(bias, Tensor) else _dense(bias, q, k).to(q.dtype)
            mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
        grouped = kind == "grouped heads"
        return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=grouped, **given)

    return {"ours": ours, "exact": exact, "theirs": theirs}[who]


def _dense(formula: Any, q: Tensor, k: Tensor) -> Tensor:
    from glassformer.functional.cells import Extent, Tile

    extent = Extent(q.shape[0], H, q.shape[2], k.shape[2])
    cells = formula.tile(Tile.whole(extent, q.device))
    return cells.expand(*cells.shape[:-2], q.shape[2], k.shape[2])


def operands(kind: str, n: int, device: str, *, batch: int = B, width: int = D) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n)
    heads = H // 2 if kind == "grouped heads" else H
    keys = n + 4 if kind == "more keys" else n
    shapes = ((batch, H, n, width), (batch, heads, keys, width), (batch, heads, keys, width))
    return [torch.randn(*shape, generator=generator).to(device) for shape in shapes]


def loss(attend: Attend) -> Callable[..., Tensor]:
    """A number whose second derivatives do not vanish."""
    return lambda q, k, v: attend(q, k, v).sin().sum()


class Setting(NamedTuple):
    kind: str
    device: str
    compiler: str

    def operands(self, n: int, **sizes: int) -> list[Tensor]:
        return operands(self.kind, n, self.device, **sizes)


Results = Iterable[Tensor]


def compiled(attend: Attend, at: Setting, **how: bool) -> Results:
    torch._dynamo.reset()
    function = torch.compile(attend, backend=at.compiler, **how)
    return [function(*at.operands(n)) for n in (SHORT, LONG)]


def compiled_gradients(attend: Attend, at: Setting) -> Results:
    torch._dynamo.reset()
    return autograd(torch.compile(attend, backend=at.compiler, fullgraph=True), at)


def exported(attend: Attend, at: Setting) -> Results:
    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return attend(q, k, v)

    n = torch.export.Dim("n", min=6, max=4096)
    keys = n + 4 if at.kind == "more keys" else n
    shapes = ({2: n}, {2: keys}, {2: keys})
    found = []
    for traced, run in ((SHORT, LONG), (LONG, SHORT)):
        program = torch.export.export(Module(), tuple(at.operands(traced)), dynamic_shapes=shapes)
        found.append(program.module()(*at.operands(run)))
    return found


def autograd(attend: Attend, at: Setting) -> Results:
    inputs = [x.requires_grad_() for x in at.operands(LONG)]
    return torch.autograd.grad(loss(attend)(*inputs), inputs)


def double_backward(attend: Attend, at: Setting) -> Results:
    inputs = [x.requires_grad_() for x in at.operands(LONG)]
    first = torch.autograd.grad(loss(attend)(*inputs), inputs, create_graph=True)
    return torch.autograd.grad(sum(g.square().sum() for g in first), inputs)


def vmapped(transform: Callable[[Callable], Callable]) -> Callable[[Attend, Setting], Results]:
    def run(attend: Attend, at: Setting) -> Results:
        pairs = zip(at.operands(LONG), at.operands(LONG), strict=True)
        stacked = [torch.stack([x, y.flip(0)]) for x, y in pairs]
        found = torch.func.vmap(transform(attend))(*stacked)
        return found if isinstance(found, tuple) else (found,)

    return run


def gradients(attend: Attend) -> Callable[..., tuple[Tensor, ...]]:
    return torch.func.grad(loss(attend), argnums=(0, 1, 2))


def jvp(attend: Attend, at: Setting) -> Results:
    primals = tuple(at.operands(LONG))
    return torch.func.jvp(attend, primals, tuple(x.cos() for x in primals))


def hessian(attend: Attend, at: Setting) -> Results:
    q, k, v = at.operands(5, batch=1, width=2)
    return (torch.func.hessian(lambda q, k: loss(attend)(q, k, v), argnums=1)(q, k),)


def jacobian(attend: Attend, at: Setting) -> Results:
    q, k, v = at.operands(5, batch=1, width=2)
    return (torch.func.jacrev(attend)(q, k, v),)


def autocast(attend: Attend, at: Setting, *dtypes: torch.dtype) -> Results:
    inputs = [x.to(dtype) for x, dtype in zip(at.operands(LONG), dtypes, strict=True)]
    with torch.autocast(at.device, dtype=torch.bfloat16):
        return (attend(*inputs),)


def faked(attend: Attend, at: Setting) -> Results:
    with FakeTensorMode() as mode:
        return [attend(*(mode.from_tensor(x) for x in at.operands(n))) for n in (SHORT, LONG)]


def on_meta(attend: Attend, at: Setting) -> Results:
    return [attend(*(x.to("meta") for x in at.operands(n))) for n in (SHORT, LONG)]


SINGLE, HALF = torch.float32, torch.bfloat16
TRANSFORMS: dict[str, Callable[[Attend, Setting], Results]] = {
    "compile": lambda f, at: compiled(f, at, dynamic=False),
    "fullgraph": lambda f, at: compiled(f, at, dynamic=False, fullgraph=True),
    "dynamic": lambda f, at: compiled(f, at, dynamic=True, fullgraph=True),
    "compiled gradients": compiled_gradients,
    "export": exported,
    "vmap": vmapped(lambda f: f),
    "grad": lambda f, at: gradients(f)(*at.operands(LONG)),
    "vmap of grad": vmapped(gradients),
    "jacrev": jacobian,
    "jvp": jvp,
    "hessian": hessian,
    "double backward": double_backward,
    "autocast": lambda f, at: autocast(f, at, SINGLE, SINGLE, SINGLE),
    "autocast, mixed": lambda f, at: autocast(f, at, SINGLE, HALF, HALF),
    "fake": faked,
    "meta": on_meta,
}


def expected(name: str, at: Setting) -> Results:
    """The same by the definition in float64 and plain autograd, where the transform allows it."""
    exact = attend_by("exact", at.kind)

    def in_float64(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return exact(q.double(), k.double(), v.double())

    if name in ("compile", "fullgraph", "dynamic", "fake", "meta"):
        return [in_float64(*at.operands(n)) for n in (SHORT, LONG)]
    if name == "export":
        return [in_float64(*at.operands(n)) for n in (LONG, SHORT)]
    if name == "compiled gradients":
        return autograd(in_float64, at)
    if name.startswith("autocast"):
        return (in_float64(*(x.bfloat16() for x in at.operands(LONG))),)
    return TRANSFORMS[name](in_float64, at)


class Outcome(NamedTuple):
    sign: str  # ✓ right, ✗ an error, ! wrong
    note: str = ""


def judge(name: str, who: str, at: Setting) -> Outcome:
    """Run one cell of the table and compare what comes out."""
    if who == "theirs" and at.kind == "softcap":
        return Outcome("–")
    try:
        found = list(TRANSFORMS[name](attend_by(who, at.kind), at))
    except Exception as error:  # any failure of a transform is a result
        return Outcome("✗", f"{type(error).__name__}: {str(error).strip().splitlines()[0][:110]}")
    right = list(expected(name, at))
    dtype = torch.bfloat16 if name.startswith("autocast") else torch.float32
    for got, exact in zip(found, right, strict=True):
        if got.shape != exact.shape or got.dtype != dtype:
            return Outcome("!", f"{got.dtype} {tuple(got.shape)}, not {dtype} {tuple(exact.shape)}")
        if got.is_meta or name == "fake":
            continue
        largest = max(exact.abs().max().item(), 1.0)
        error = (got.double() - exact).abs().max().item()
        if not error <= TOLERANCE[dtype] * largest:  # NaN is wrong
            return Outcome("!", f"off by {error:.2g} where values reach {largest:.2g}")
    return Outcome("✓")


def is_worse(ours: Outcome, theirs: Outcome) -> bool:
    return ours.sign == "!" or (ours.sign == "✗" and theirs.sign == "✓")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compiler", default="aot_eager", help="backend of torch.compile")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--transform", choices=list(TRANSFORMS), action="append")
    parser.add_argument("--quick", action="store_true", help="a small cut, as in the tests")
    args = parser.parse_args(arguments)
    kinds = args.kind or (QUICK_KINDS if args.quick else KINDS)
    names = args.transform or (QUICK_TRANSFORMS if args.quick else list(TRANSFORMS))
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, {args.device}, compiled by {args.compiler}\n")
    print(f"| ours theirs | {' | '.join(names)} |")
    print("|" + "---|" * (len(names) + 1))
    notes: dict[str, list[str]] = {}
    worse = 0
    for kind in kinds:
        at, cells = Setting(kind, args.device, args.compiler), []
        for name in names:
            ours, theirs = (judge(name, who, at) for who in ("ours", "theirs"))
            cells.append(f"{ours.sign} {theirs.sign}")
            worse += is_worse(ours, theirs)
            for who, outcome in (("ours", ours), ("theirs", theirs)):
                if outcome.note:
                    mark = "WORSE " if who == "ours" and is_worse(ours, theirs) else ""
                    notes.setdefault(f"{mark}{who}, {name}: {outcome.note}", []).append(kind)
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)
    print()
    for note, where in notes.items():
        print(f"{note}\n    ({', '.join(where)})")
    total = len(kinds) * len(names)
    print(f"\n{total} cells, {worse} where ours is wrong or fails where theirs is right")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
