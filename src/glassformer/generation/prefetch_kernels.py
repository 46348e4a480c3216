"""Asking the memory of a Hopper GPU for data before its use, in PTX (product_kernels.py).

Nothing waits for a prefetch and no register is held: data that will be read moves into the L2 cache
while the kernels before its use are bound by latency, and memory would be idle.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from typing import no_type_check

import triton
import triton.language as tl

_RUN = tl.constexpr("""{
    .reg .pred p;
    .reg .u32 thread;
    mov.u32 thread, %tid.x;
    setp.eq.u32 p, thread, 0;
    setp.gt.and.s32 p, $2, 0, p;
    @p cp.async.bulk.prefetch.L2.global [$1], $2;
    mov.u32 $0, 0;
}""")

_SECTOR = tl.constexpr("""{
    .reg .pred p;
    .reg .b64 sector;
    and.b64 sector, $1, -32;
    setp.ne.s32 p, $2, 0;
    @p prefetch.global.L2 [sector];
    mov.u32 $0, 0;
}""")


@no_type_check
@triton.jit
def prefetch_run(start, count):
    """Prefetch `count` elements from the pointer `start` on: a multiple of 16 bytes, or ≤ 0.

    One thread asks for all of them at once.
    """
    size = count * (start.dtype.element_ty.primitive_bitwidth // 8)
    tl.inline_asm_elementwise(
        _RUN, "=r,l,r", [start.to(tl.int64), size], dtype=tl.int32, is_pure=False, pack=1
    )


@no_type_check
@triton.jit
def prefetch_sectors(pointers, is_there):
    """Prefetch the 32 bytes in which each pointer lies."""
    tl.inline_asm_elementwise(
        _SECTOR,
        "=r,l,r",
        [pointers.to(tl.int64), is_there.to(tl.int32)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
