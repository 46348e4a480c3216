"""What can be known about tensors while PyTorch traces or transforms the code.

Inside `torch.compile`, `torch.export`, `torch.func` and on fake tensors there are no values to
read, sizes may be symbolic, and a gradient may be differentiated again. No function here reads the
values of a tensor.
"""

import torch
from torch import Tensor
from torch._C import _functorch  # pyright: ignore[reportAttributeAccessIssue]
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

_OWN = (Tensor, torch.nn.Parameter)


def is_traced(tensor: Tensor) -> bool:
    """Whether the code is being traced or transformed, so that no value can be read."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or tensor.is_meta
        or isinstance(tensor, FakeTensor)
    )


def is_readable(tensor: Tensor) -> bool:
    """Whether this tensor has values that Python can read now."""
    if torch.compiler.is_compiling() or tensor.is_meta or isinstance(tensor, FakeTensor):
        return False
    return not _functorch.is_functorch_wrapped_tensor(tensor)


def is_unobserved(*tensors: Tensor) -> bool:
    """Whether these are PyTorch's own tensors in memory, and nobody records its operations."""
    return (
        torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
        and all(type(x) in _OWN and not x.is_neg() and not _is_batched(x) for x in tensors)
    )


def _is_batched(x: Tensor) -> bool:
    # Of torch.autograd.grad(is_grads_batched=True), which is_traced does not see.
    return _functorch.is_legacy_batchedtensor(x)


def is_being_captured() -> bool:
    """Whether a CUDA graph is captured: what is computed now is overwritten when it runs."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def needs_more_derivatives() -> bool:
    """Whether forward-mode or second derivatives are being computed, as far as can be known.

    A second `torch.autograd.grad` cannot be foreseen.
    """
    if torch.compiler.is_compiling():
        return False
    if forward_ad._current_level >= 0:
        return True
    if not torch._C._are_functorch_transforms_active():
        return False
    levels = _functorch.get_interpreter_stack() or ()
    return sum(level.key() == _functorch.TransformType.Grad for level in levels) > 1


def is_known_true(condition: bool | torch.SymBool) -> bool:
    """Whether a condition on sizes is true; in an export, whether it is true for all lengths.

    A plain `if` would restrict the exported program to one side of the condition.
    """
    if torch.compiler.is_exporting():
        from torch.fx.experimental.symbolic_shapes import statically_known_true

        return statically_known_true(condition)
    return True if condition else False  # noqa: SIM210  # in a graph, bool() keeps the symbol
