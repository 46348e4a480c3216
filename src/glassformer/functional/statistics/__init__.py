"""Statistics of attention, without forming its matrix.

Reading order: summary (the public functions), packed (sequences in one row, keys in a paged cache),
measuring (which kernel), streaming (tile by tile, on any device), limits (masks as numbers), cuda
and kernels (two Triton kernels), cpu and kernel.c (one in C), kernel_lse (the log-sum-exp of
PyTorch's fused kernels), pooling.
"""
