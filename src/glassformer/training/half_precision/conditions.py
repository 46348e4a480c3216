"""When kernels of ours stand in for PyTorch's operations in training in half precision on a GPU.

They know nothing but reverse differentiation, once. Whatever else follows a computation, from hooks
to `torch.func`, gets PyTorch's operations, and so does a gradient that is differentiated again.
"""

import torch
from torch import Tensor, nn
from torch._C import _are_functorch_transforms_active
from torch.autograd import forward_ad
from torch.nn.modules import module as everywhere

HALF = (torch.bfloat16, torch.float16)


def takes_kernels(x: Tensor) -> bool:
    """Whether x is a GPU's, and nothing but autograd follows it."""
    return x.is_cuda and _is_followed_by_autograd_alone(x)


def learns_plainly(module: nn.Module, x: Tensor) -> bool:
    """Whether a module learns in half precision on a GPU, and nobody looks at its calls."""
    if not takes_kernels(x) or not torch.is_grad_enabled():
        return False
    if "forward" in vars(module) or _has_hooks(module):
        return False
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
    return dtype in HALF


def is_differentiated_again() -> bool:
    """Asked in a backward pass: whether what it computes has gradients, too (`create_graph`)."""
    return not torch.compiler.is_dynamo_compiling() and torch.is_grad_enabled()


def _has_hooks(module: nn.Module) -> bool:
    return any(
        (
            module._forward_hooks,
            module._forward_pre_hooks,
            module._backward_hooks,
            module._backward_pre_hooks,
            everywhere._global_forward_hooks,
            everywhere._global_forward_pre_hooks,
            everywhere._global_backward_hooks,
            everywhere._global_backward_pre_hooks,
        )
    )


def _is_followed_by_autograd_alone(x: Tensor) -> bool:
    if type(x) not in (Tensor, nn.Parameter):  # such as DTensor
        return False
    if torch.compiler.is_dynamo_compiling():  # which traces the rest as it is
        return True
    return not _are_functorch_transforms_active() and forward_ad._current_level < 0
