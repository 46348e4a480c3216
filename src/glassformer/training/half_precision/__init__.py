"""Training in half precision on a GPU: kernels for what is bound by memory between the products.

Reading order: layers (which modules of a model learn by them), conditions (when they stand in for
PyTorch's operations), gelu, bias_sums, residual_norm, and their kernels, which import triton.
"""
