"""Asking a GPU's memory for data before its use, in PTX.

Nothing waits for a prefetch and no register is held: data that will be read moves into the L2 cache
while the kernel before its use still runs.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false

from typing import no_type_check

import triton
import triton.language as tl

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
