"""AdamW as one kernel: against PyTorch's in float64, and PyTorch's own where it does not apply."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from closeness import assert_same
from glassformer.training import Optimizer, clip_gradients
from glassformer.training.fused_adam import FusedAdam, _number_blocks, can_fuse
from triton_interpreter import DEVICE, check_in_interpreter, needs_kernels

SHAPES = [(7, 13), (1,), (2051,), (3, 2048), (4099,), (5,)]  # a program has 2048 numbers
SETTINGS = {"betas": (0.9, 0.98), "eps": 1e-9}


def make_groups(p: list[nn.Parameter]) -> list[dict]:
    return [{"params": p[:3], "weight_decay": 0.1}, {"params": p[3:], "weight_decay": 0.0}]


def make_optimizers(n: int, **settings) -> tuple[list[list[nn.Parameter]], list]:
    """Ours, PyTorch's and PyTorch's in float64, or the first of these; and their parameters."""
    weights = [torch.randn(shape).to(DEVICE) for shape in SHAPES]
    dtypes = [torch.float32, torch.float32, torch.float64][:n]
    lists = [[nn.Parameter(each.to(dtype, copy=True)) for each in weights] for dtype in dtypes]
    settings = {"lr": 0.01, **SETTINGS, **settings}
    ours = FusedAdam(make_groups(lists[0]), **settings)
    others = (torch.optim.AdamW(make_groups(p), fused=True, **settings) for p in lists[1:])
    return lists, [ours, *others]


def set_gradients(lists: list[list[nn.Parameter]], *, without: tuple[int, ...] = ()) -> None:
    for i, places in enumerate(zip(*lists, strict=True)):
        gradient = torch.randn(SHAPES[i]).to(DEVICE)
        for place in places:
            place.grad = None if i in without else gradient.to(place.dtype, copy=True)


def scale_gradients(parameters: list[nn.Parameter], factor: float) -> None:
    for each in parameters:
        if each.grad is not None:
            each.grad *= torch.tensor(factor).to(each.dtype)  # the factor of float32


def read_states(optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    """Every parameter, then its moments."""
    for group in optimizer.param_groups:
        for each in group["params"]:
            yield each.detach()
            yield optimizer.state[each]["exp_avg"]
            yield optimizer.state[each]["exp_avg_sq"]


def assert_as_exact_as_theirs(
    ours: torch.optim.Optimizer, theirs: torch.optim.Optimizer, exact: torch.optim.Optimizer
) -> None:
    for a, b, right in zip(*map(read_states, (ours, theirs, exact)), strict=True):
        ulp = torch.finfo(torch.float32).eps * right.abs().max()
        assert not a.isnan().any()
        assert (a - right).abs().max() <= 2 * (b - right).abs().max() + 2 * ulp


@pytest.mark.plain
def test_the_interpreter_agrees_with_pytorch() -> None:
    check_in_interpreter(__file__, only="kernel")


@needs_kernels
@pytest.mark.parametrize("eps", [1e-9, 0.3])
@pytest.mark.parametrize("betas", [(0.9, 0.98), (0.0, 0.999)])
@pytest.mark.parametrize("factor", [None, 0.37])
def test_the_kernel_by_the_definition(eps, betas, factor):
    lists, optimizers = make_optimizers(3, eps=eps, betas=betas)
    ours, parameters = optimizers[0], lists[0]
    for step in range(5):
        set_gradients(lists, without=(1, 3) if step in (0, 2) else ())
        if factor is not None:
            ours.factor = torch.tensor(factor).to(DEVICE)
            for others in lists[1:]:
                scale_gradients(others, factor)
        before = [None if p.grad is None else p.grad.clone() for p in parameters]
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = 0.01 * (step + 1)
            optimizer.step()
        assert ours.factor is None
        for parameter, gradient in zip(parameters, before, strict=True):
            assert gradient is None or torch.equal(parameter.grad, gradient)
    assert ours._tables  # the kernel did it
    assert_as_exact_as_theirs(*optimizers)
    assert [ours.state[each]["step"] for each in parameters] == [5, 3, 5, 3, 5, 5]


@needs_kernels
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.99999), (0.0, 0.98)])
def test_the_kernel_corrects_bias_to_a_millionth(betas):
    """Of each parameter by its own number of steps."""
    counts = [0, 1, 4, 5, 33, 500, 12345, 1_000_000]
    parameters = [nn.Parameter(torch.zeros(1, device=DEVICE)) for _ in counts]
    optimizer = FusedAdam(parameters, lr=1.0, betas=betas, eps=1e-30)
    for parameter, count in zip(parameters, counts, strict=True):
        parameter.grad = torch.ones_like(parameter)
        optimizer.state[parameter] = {
            "step": torch.tensor(float(count), device=DEVICE),
            "exp_avg": torch.ones_like(parameter),
            "exp_avg_sq": torch.ones_like(parameter),
        }
    optimizer.step()
    assert optimizer._tables
    for parameter, count in zip(parameters, counts, strict=True):
        first, second = (1 - beta ** (count + 1) for beta in betas)
        assert float(parameter.detach()) == pytest.approx(-(second**0.5) / first, rel=1e-6)


@needs_kernels
def test_states_pass_between_the_kernel_and_pytorch():
    lists, (ours, theirs) = make_optimizers(2)
    for turn in range(4):
        set_gradients(lists)
        ours.step()
        theirs.step()
        for a, b in zip(read_states(ours), read_states(theirs), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)
        states = copy.deepcopy((ours.state_dict(), theirs.state_dict()))
        assert states[0]["param_groups"] == states[1]["param_groups"]
        assert [list(s["state"][0]) for s in states] == [["step", "exp_avg", "exp_avg_sq"]] * 2
        if turn % 2:
            ours.load_state_dict(states[1])
            theirs.load_state_dict(states[0])
    assert ours._tables


@needs_kernels
def test_the_kernel_is_given_a_new_table_only_for_new_addresses():
    (parameters,), (optimizer,) = make_optimizers(1)
    set_gradients([parameters])
    optimizer.step()
    (first,) = optimizer._tables
    optimizer.step()
    assert optimizer._tables[0] is first
    for parameter in parameters:
        parameter.grad = parameter.grad.clone()
    optimizer.step()
    assert optimizer._tables[0] is not first
    assert optimizer._tables[0].blocks_there is first.blocks_there
    parameters[0].grad = None
    optimizer.step()
    assert len(optimizer._tables[0].rows) == len(parameters) - 1
    optimizer.param_groups[0]["lr"] = 0.02  # other settings, another launch
    optimizer.step()
    assert [len(table.rows) for table in optimizer._tables] == [2, 3]


@needs_kernels
def test_the_kernel_marks_what_it_changes():
    weight = nn.Parameter(torch.ones(3, device=DEVICE))
    optimizer = FusedAdam([weight], lr=0.1)
    product = weight.square().sum()
    weight.grad = torch.ones_like(weight)
    optimizer.step()
    assert optimizer._tables
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def misalign(parameters: list[nn.Parameter]) -> None:
    parameters[2].data = torch.cat([parameters[2].data[:1], parameters[2].data])[1:]


def turn_gradients(parameters: list[nn.Parameter]) -> None:
    for parameter in parameters:
        if parameter.ndim == 2:
            parameter.grad = parameter.grad.t().contiguous().t()


@needs_kernels
@pytest.mark.parametrize(
    "change", [misalign, turn_gradients, {"amsgrad": True}, {"lr": torch.tensor(0.02)}]
)
def test_what_is_not_for_the_kernel_is_pytorchs(change):
    if change is turn_gradients and DEVICE == "cuda":
        pytest.skip("PyTorch's own step refuses such gradients on a GPU")
    lists, (ours, theirs) = make_optimizers(2)
    set_gradients(lists)
    for parameters, optimizer in zip(lists, (ours, theirs), strict=True):
        if isinstance(change, dict):
            for group in optimizer.param_groups:
                group.update(change)
        else:
            change(parameters)
    scale_gradients(lists[1], 0.3)
    ours.factor = torch.tensor(0.3).to(DEVICE)
    ours.step()
    theirs.step()
    assert not ours._tables and ours.factor is None
    for a, b in zip(read_states(ours), read_states(theirs), strict=True):
        assert_same(a, b)


@needs_kernels
@pytest.mark.parametrize("clipping", [False, True])
def test_the_kernel_skips_what_a_scaler_skips(clipping):
    lists, optimizers = make_optimizers(2)
    scalers = [torch.amp.GradScaler(DEVICE, init_scale=64.0) for _ in range(2)]
    for turn in range(4):
        set_gradients(lists)
        for scaler, optimizer, places in zip(scalers, optimizers, lists, strict=True):
            if turn == 2:
                places[3].grad[1, 5] = torch.inf
            scale_gradients(places, scaler.scale(torch.ones((), device=DEVICE)).item())
            if clipping:
                scaler.unscale_(optimizer)
                clip_gradients(places, 1.0, optimizer=optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        for a, b in zip(*map(read_states, optimizers), strict=True):
            torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)
    assert bool(optimizers[0]._tables) == clipping  # unscaling is PyTorch's
    assert [scaler.get_scale() for scaler in scalers] == [32.0, 32.0]
    assert float(optimizers[0].state[lists[0][0]]["step"]) == 3.0


@needs_kernels
def test_the_kernel_is_chosen_for_adamw_in_float32():
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6)).to(DEVICE)
    for settings in ({"weight_decay": 0.1}, {"kind": "adam", "weight_decay": 0.0}):
        built = Optimizer(**settings).build(model)
        assert type(built) is FusedAdam
        assert built.param_groups[0]["weight_decay"] == settings["weight_decay"]
    assert type(Optimizer(kind="adam", weight_decay=0.1).build(model)) is torch.optim.Adam
    assert type(Optimizer().build(model.double())) is torch.optim.AdamW


@needs_kernels
def test_the_kernel_is_for_plain_parameters_alone():
    plain = nn.Parameter(torch.randn(4, 6, device=DEVICE))
    special = type("Special", (nn.Parameter,), {})(torch.randn(4, device=DEVICE))
    assert can_fuse([plain, plain[0]])
    assert not can_fuse([])
    assert not can_fuse([plain, plain.double()])
    assert not can_fuse([plain.t()])
    assert not can_fuse([plain.to_sparse()])
    assert not can_fuse([plain, torch.randn(4, device="meta")])
    assert not can_fuse([plain, special])  # such as DTensor


def test_the_factor_is_that_of_clipping_for_one_step():
    model = nn.Linear(5, 3)
    optimizer = FusedAdam(model.parameters(), lr=0.1)
    model(torch.randn(7, 5) * 30).square().sum().backward()
    before = [p.grad.clone() for p in model.parameters()]
    norm = clip_gradients(model.parameters(), 2.0, optimizer=optimizer)
    assert_same(norm, torch.nn.utils.get_total_norm(before))
    assert all(torch.equal(p.grad, g) for p, g in zip(model.parameters(), before, strict=True))
    assert_same(optimizer.factor, 2.0 / (norm + 1e-6))
    for most, factor in ((1e9, 1.0), (0.0, None)):
        clip_gradients(model.parameters(), most, optimizer=optimizer)
        assert optimizer.factor == factor
    clip_gradients(model.parameters(), 2.0, optimizer=optimizer)
    optimizer.zero_grad()
    assert optimizer.factor is None


def test_a_step_without_gradients_changes_nothing():
    weight = nn.Parameter(torch.ones(2))
    optimizer = FusedAdam([weight], lr=0.1)
    assert optimizer.step() is None and optimizer.step(lambda: 3.0) == 3.0
    assert torch.equal(weight.data, torch.ones(2))
    assert not optimizer.state


def test_every_program_has_a_block():
    blocks = _number_blocks([5, 0, 4, 1], 2)
    assert blocks.tolist() == [[0, 0], [0, 1], [0, 2], [2, 0], [2, 1], [3, 0]]
    assert _number_blocks([0], 2).shape == (0, 2)


@pytest.mark.gpu
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("replaced", [False, True])
def test_a_gpu_updates_as_pytorch_does_and_is_not_waited_for(replaced):
    lists, optimizers = make_optimizers(3)
    for step in range(6):
        if replaced or step == 0:
            set_gradients(lists)
        for places, optimizer in zip(lists[1:], optimizers[1:], strict=True):
            kept = [each.grad.clone() for each in places]
            clip_gradients(places, 1.0, optimizer=optimizer)
            optimizer.step()
            for each, gradient in zip(places, kept, strict=True):
                each.grad = gradient
        torch.cuda.set_sync_debug_mode("error")
        try:
            clip_gradients(lists[0], 1.0, optimizer=optimizers[0])
            optimizers[0].step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert optimizers[0]._tables
    assert_as_exact_as_theirs(*optimizers)
