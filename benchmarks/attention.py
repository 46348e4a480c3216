"""What `gf.attention` costs beside a bare `F.scaled_dot_product_attention`, and what masks save.

python benchmarks/attention.py                     CPU: cost, few keys, short gradients in
                                                   bfloat16, and streaming at 65,536 tokens
python benchmarks/attention.py --device cuda       GPU: cost, and a window by flex and by mask
"""

import argparse
import sys

import torch
import torch.nn.functional as F

import glassformer as gf
from measure import compare, peak_mib

CPU_SHAPES = [
    (32, 4, 64, 64),
    (8, 4, 256, 64),
    (8, 8, 512, 64),
    (4, 8, 1024, 64),
    (1, 8, 2048, 64),
]
CUDA_SHAPES = [(8, 8, 512, 64), (8, 16, 2048, 64), (8, 16, 2048, 128), (1, 16, 16384, 128)]


def cost(device: str, repeats: int) -> bool:
    """Ours against the bare call, the same work in turns: at most 1.03 times as long."""
    print("cost of gf.attention, as a multiple of F.scaled_dot_product_attention")
    print("(noise: the bare call against itself; a ratio over 1.03 is measured again, longer)")
    print("B   H   L      D    mask    pass              ours      bare     ratio   noise")
    fine = True
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    for B, H, L, D in CPU_SHAPES if device == "cpu" else CUDA_SHAPES:
        for causal in (False, True):
            for name in ("forward", "forward, learns", "forward+backward"):
                learns, backward = name != "forward", name == "forward+backward"
                if learns and not backward and (device != "cpu" or not causal):
                    continue  # the same kernel as without gradients
                q, k, v = (
                    torch.randn(B, H, L, D, device=device, dtype=dtype, requires_grad=learns)
                    for _ in range(3)
                )
                mask = gf.Causal() if causal else None
                back = torch.randn_like(q)

                def ours(q=q, k=k, v=v, mask=mask, back=back, backward=backward):
                    out = gf.attention(q, k, v, mask=mask)
                    return torch.autograd.grad(out, (q, k, v), back) if backward else out

                def bare(q=q, k=k, v=v, causal=causal, back=back, backward=backward):
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
                    return torch.autograd.grad(out, (q, k, v), back) if backward else out

                found = compare(ours, bare, device, repeats=repeats)
                if found.ratio > 1.03:
                    found = compare(ours, bare, device, repeats=4 * repeats)
                fine &= found.ratio <= 1.03
                print(
                    f"{B:<3} {H:<3} {L:<6} {D:<4} {'causal' if causal else 'none':<7} "
                    f"{name:<16} "
                    f"{found.ours * 1e3:7.3f} ms {found.theirs * 1e3:7.3f} ms "
                    f"{found.ratio:7.3f} {found.noise:7.3f}"
                )
    return fine


def host_time(device: str, repeats: int) -> bool:
    """What a call costs the host: tiny tensors, a hundred calls in turn, results compared first."""
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    q, k, v = torch.randn(3, 1, 2, 16, 64, device=device, dtype=dtype).unbind(0)
    fine, mask = True, gf.Causal()
    for name, options, bare_options in (
        ("none", {}, {}),
        ("causal", {"mask": mask}, {"is_causal": True}),
    ):

        def ours(options=options):
            return [gf.attention(q, k, v, **options) for _ in range(100)]

        def bare(options=bare_options):
            return [F.scaled_dot_product_attention(q, k, v, **options) for _ in range(100)]

        expected = bare()[0]
        fine &= all(torch.equal(out, expected) for out in ours())
        found = compare(ours, bare, "cpu", repeats=repeats)  # of the host's time, on any device
        print(
            f"host time of a call, {name:<6}: ours {found.ours * 1e4:.1f} µs, bare "
            f"{found.theirs * 1e4:.1f} µs, ratio {found.ratio:.3f}, noise {found.noise:.3f}"
        )
    if device == "cuda":
        torch.cuda.synchronize()
    print()
    return fine


def window(device: str, repeats: int) -> bool:
    """A causal window of 512 keys at 16,384 tokens: skipped blocks against a dense mask."""
    B, H, L, D, width = 1, 16, 16384, 64, 512
    q, k, v = torch.randn(3, B, H, L, D, device=device, dtype=torch.bfloat16).unbind(0)
    mask = gf.Causal() & gf.Window(left=width - 1)
    dense = mask.dense(L, device=device)
    sparse = compare(
        lambda: gf.attention(q, k, v, mask=mask, backend="flex"),
        lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=dense),
        device,
        repeats=repeats,
    )
    chosen = gf.explain(q, k, v, mask=mask)
    auto = compare(
        lambda: gf.attention(q, k, v, mask=mask),
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        device,
        repeats=repeats,
    )
    print(f"causal window of {width} at {L} tokens, {H} heads of {D}")
    print(f"flex {sparse.ours * 1e3:.3f} ms, dense mask {sparse.theirs * 1e3:.3f} ms: ", end="")
    print(f"{1 / sparse.ratio:.1f} times faster")
    print(f"gf.attention chooses {chosen.backend}: {auto.ours * 1e3:.3f} ms; ", end="")
    print(f"full causal attention {auto.theirs * 1e3:.3f} ms\n")
    return 1 / sparse.ratio >= 3


def short_gradients(repeats: int) -> bool:
    """Short sequences in bfloat16 on the CPU, with gradients: never slower than the bare call."""
    print("bfloat16, forward + backward, 4 heads of 64, as a multiple of the bare call")
    fine = True
    for B, L in ((512, 8), (256, 16), (128, 32), (64, 64), (32, 128), (16, 256)):
        q, k, v = (torch.randn(B, 4, L, 64).bfloat16().requires_grad_() for _ in range(3))
        back = torch.randn_like(q)

        def ours(q=q, k=k, v=v, back=back):
            return torch.autograd.grad(gf.attention(q, k, v), (q, k, v), back)

        def bare(q=q, k=k, v=v, back=back):
            out = F.scaled_dot_product_attention(q, k, v)
            return torch.autograd.grad(out, (q, k, v), back)

        found = compare(ours, bare, "cpu", repeats=repeats)
        fine &= found.ratio <= 1.03
        print(f"{B:4} × {L:<4} {found.ratio:7.3f} (noise {found.noise:.3f})")
    print()
    return fine


def few_keys(repeats: int) -> None:
    """Below 16 keys on the CPU a dense mask keeps NaN visible: what that costs."""
    print("float32, forward, few keys, as a multiple of the bare call")
    for B, H, L, S, D in ((1, 8, 1, 8, 64), (1, 8, 8, 8, 64), (1, 8, 1, 20, 64), (64, 4, 8, 8, 64)):
        q, k, v = (torch.randn(B, H, n, D) for n in (L, S, S))
        for mask in (None, gf.Causal()) if L == S else (None,):
            found = compare(
                lambda q=q, k=k, v=v, mask=mask: gf.attention(q, k, v, mask=mask),
                lambda q=q, k=k, v=v, mask=mask: F.scaled_dot_product_attention(
                    q, k, v, is_causal=mask is not None
                ),
                "cpu",
                repeats=10 * repeats,
            )
            kind = "causal" if mask is not None else "none"
            print(
                f"{B:3} × {H} heads, {L} × {S:<3} {kind:<7} {found.ours * 1e6:8.1f} µs, bare "
                f"{found.theirs * 1e6:8.1f} µs, ratio {found.ratio:.3f} (noise {found.noise:.3f})"
            )
    print()


def streaming() -> bool:
    """65,536 queries × 65,536 keys on the CPU: at most 1 GiB beyond the inputs."""
    fine = True
    for name, mask in (("no mask", "None"), ("causal & window", "gf.Causal() & gf.Window(511)")):
        spent, mib = peak_mib(
            "q, k, v = torch.randn(3, 1, 1, 65536, 64).unbind(0);"
            "gf.attention(*(x[:, :, :8] for x in (q, k, v)), backend='streaming')",
            f"gf.attention(q, k, v, mask={mask}, backend='streaming')",
        )
        fine &= mib <= 1024
        print(f"streaming 65,536 × 65,536, {name}: {mib:.0f} MiB beyond the inputs, {spent:.1f} s")
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--only", choices=["host"], help="measure nothing else")
    args = parser.parse_args()
    print(f"torch {torch.__version__}, {args.device}", end="")
    print(f" ({torch.cuda.get_device_name()})\n" if args.device == "cuda" else "\n")
    fine = host_time(args.device, args.repeats)
    if args.only == "host":
        return 0 if fine else 1
    fine &= cost(args.device, args.repeats)
    if args.device == "cuda":
        fine &= window(args.device, args.repeats)
    else:
        few_keys(args.repeats)
        fine &= short_gradients(args.repeats) & streaming()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
