"""Interventions in a file: what is read changes a model as what was saved."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

import glassformer as gf
from glassformer.errors import InterventionError
from tracing.watched_architectures import built

C, H, L = 24, 6, 7


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    return built("llama", "sdpa")


@pytest.fixture(scope="module")
def texts() -> Tensor:
    return torch.randint(3, 30, (2, 1, L), generator=torch.Generator().manual_seed(5))


@pytest.fixture(scope="module")
def other(model: Any, texts: Tensor) -> gf.Trace:
    with gf.watch(model, residual=True) as trace, torch.no_grad():
        model(texts[1])
    return trace


def make_change(name: str, other: gf.Trace) -> Any:
    weights = torch.rand(L, L).softmax(-1)
    mask = torch.rand(L, L) > 0.3
    return {
        "plain": gf.Ablate("decoder.1.self", head=[0, 2]) & gf.Skip("decoder.0"),
        "steer": gf.Steer("decoder.0.mlp", torch.randn(C), factor=3.0, positions=slice(2, None)),
        "weights": gf.Freeze("decoder.0.self", weights, head=1),
        "frozen trace": gf.Freeze("decoder.0.self", other),
        "part": gf.Patch("decoder.0.mlp", other),
        "rows of a part": gf.Patch("decoder.0.self", other, positions=[4, 2]),
        "state": gf.Patch("decoder.0.mlp", other, what="state", positions=-1),
        "start": gf.Patch("decoder.start", other, what="state"),
        "heads": gf.Patch("decoder.1.self", other, head=2, positions=3),
        "mean": gf.Ablate("decoder.1.mlp", how="mean", of=other)
        & gf.Ablate("decoder.0.self", head=1, how="resample", of=other, seed=3),
        "mask": gf.Swap("decoder.0.self", mask=gf.Explicit(mask), scale=0.3),
        "tensors": gf.Swap("decoder.0.self", mask=mask, bias=torch.randn(L, L)),
        "alibi": gf.Swap("decoder.1.self", bias=gf.ALiBi.of_heads(H), positions="none"),
    }[name]


KINDS = (
    *("plain", "steer", "weights", "frozen trace", "part", "rows of a part", "state", "start"),
    *("heads", "mean", "mask", "tensors", "alibi"),
)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_read_changes_a_model_as_what_was_saved(
    name: str, model: Any, texts: Tensor, other: gf.Trace, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    saved = make_change(name, other)
    gf.save_changes(saved, tmp_path / "a.changes")
    read = gf.load_changes(tmp_path / "a.changes")
    assert str(read) == str(saved)
    found = []
    for change in (saved, read):
        with gf.change(model, change), torch.no_grad():
            found.append(model(texts[0]).logits)
    assert torch.equal(*found)
    with torch.no_grad():
        assert not torch.equal(found[0], model(texts[0]).logits)


@pytest.mark.parametrize("name", ["plain", "steer", "weights", "mask", "tensors", "alibi"])
def test_values_without_a_trace_are_equal_when_read(
    name: str, other: gf.Trace, tmp_path: Path
) -> None:
    saved = make_change(name, other)
    gf.save_changes(saved, tmp_path / "a.changes")
    read = gf.load_changes(tmp_path / "a.changes")
    assert list(read) == (list(saved) if name == "plain" else [saved])


def test_only_what_is_needed_is_saved(other: gf.Trace, tmp_path: Path) -> None:
    path = tmp_path / "a.changes"
    gf.save_changes(gf.Patch("decoder.0.mlp", other, positions=[1, 4]), path)
    assert {name: tuple(t.shape) for name, t in load_file(path).items()} == {"0": (1, 2, C)}
    several = [gf.Patch("decoder.1.self", other, head=h) for h in range(3)]
    gf.save_changes(several, path)
    assert {name.split("/")[0] for name in load_file(path)} == {"0"}  # one site for all


def test_a_trace_that_lacks_what_is_needed_is_an_error(model: Any, tmp_path: Path) -> None:
    with gf.watch(model, layers=[0]) as trace, torch.no_grad():
        model(torch.tensor([[5, 6]]))
    for change, said in (
        (gf.Patch("decoder.1.self", trace, head=1), "A site must be one of"),
        (gf.Patch("decoder.1.mlp", trace), "no residual stream"),
    ):
        with pytest.raises(gf.GlassformerError, match=said):
            gf.save_changes(change, tmp_path / "a.changes")
    assert not list(tmp_path.iterdir())


def test_another_file_is_neither_read_nor_replaced(other: gf.Trace, tmp_path: Path) -> None:
    path = tmp_path / "a.trace"
    other.save(path)
    with pytest.raises(InterventionError, match="must be a file of changes of glassformer"):
        gf.load_changes(path)
    with pytest.raises(InterventionError, match="glassformer did not write it"):
        (tmp_path / "notes.txt").write_text("mine")
        gf.save_changes(gf.Skip("decoder.1"), tmp_path / "notes.txt")
    with pytest.raises(InterventionError, match="is not there"):
        gf.load_changes(tmp_path / "none")
    (tmp_path / "cut").write_bytes(path.read_bytes()[:500])
    with pytest.raises(InterventionError, match="is damaged, or was not written to its end"):
        gf.load_changes(tmp_path / "cut")


@pytest.mark.plain  # the type hook would refuse first
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"version": 2}, "is a file of changes of version 2"),
        (
            {"changes": "steer(decoder.0.mlp, vector=$7)"},
            "refers to value 7 of a file; there are 3",
        ),
        ({"changes": "steer(decoder.0.mlp, vector=$1)"}, "must be a tensor of real numbers"),
        ({"changes": "skip(decoder.1, sequences=$0)"}, "must be whole numbers"),
        ({"changes": "swap(decoder.1.self, mask=$1)"}, "mask must be a mask value"),
        ({"changes": 3}, "changes"),
        ({"changes": "boom()"}, "is one of ablate"),
        ({"held": []}, "there are 0"),
        ({"held": [{"kind": "tensors"}]}, "kind"),
        ({"held": [{"kind": "site"}]}, "must have a run"),
        ({"held": [{"kind": "stream", "place": "decoder.0.mlp"}]}, r"must be \(B, L, C\)"),
        ({"held": [{"kind": "mask", "mask": {"kind": "Window", "left": "x"}}]}, "Window.left"),
        ({"held": [{"kind": "tensor"}] * 4}, "the tensor 3 is missing"),
        ({"more": 1}, "more"),
    ],
)
def test_a_crafted_header_is_refused_in_a_sentence(
    wrong: dict[str, Any], said: str, other: gf.Trace, tmp_path: Path
) -> None:
    path = tmp_path / "a.changes"
    steer = gf.Steer("decoder.0.mlp", torch.ones(C))
    patch = gf.Patch("decoder.1.mlp", other)
    gf.save_changes([steer, patch, gf.Freeze("decoder.1.self", torch.ones(L, L))], path)
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["glassformer.changes"])
    save_file(load_file(path), path, metadata={"glassformer.changes": json.dumps(header | wrong)})
    with pytest.raises(InterventionError, match=said) as refused:
        gf.load_changes(path)
    assert "\n" not in str(refused.value)
