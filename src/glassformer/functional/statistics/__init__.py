"""Statistics of attention, without forming its matrix.

Reading order: summary (the public functions), streaming (tile by tile, on any device), cuda and
kernels (two Triton kernels), kernel_lse (the log-sum-exp of PyTorch's fused kernels), pooling.
"""
