"""transformers against vLLM: one model differs by rounding, a changed one where it was changed."""

import json
import shutil
from collections.abc import Callable
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from safetensors.torch import load_file, save_file

import glassformer as gf
from engines.vllm.served_models import (
    build_engine,
    close_engine,
    generate,
    make_prompts,
    save_reference,
)
from glassformer.cli import main

TEXT = make_prompts()[6]  # 90 tokens, read in two parts


def change_values(model: Path) -> None:
    """Other weights of the values in layer 1."""
    weights = load_file(model / "model.safetensors")
    weights["model.layers.1.self_attn.v_proj.weight"] *= 1.1
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


def change_base(model: Path) -> None:
    """Another base of the rotary positions, as a wrong config would have it."""
    config = json.loads((model / "config.json").read_text())
    config["rope_parameters"]["rope_theta"] = 500_000.0
    (model / "config.json").write_text(json.dumps(config))


class Case(NamedTuple):
    change: Callable[[Path], None]
    name: str  # of the site
    operands: tuple[str, ...]
    kind: str
    values: dict[str, Any]


CASES = {
    "other values": Case(change_values, "decoder.1.self", ("v",), "scaled", {"factor": 1.1}),
    "another rotary base": Case(
        change_base,
        "decoder.0.self",
        ("q", "k"),
        "rotated",
        {"law": "base", "first": 10_000.0, "second": 500_000.0},
    ),
}


@pytest.fixture(scope="module")
def reference(
    folders: dict[str, Path], elsewhere: Pool, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("reference") / "transformers.trace"
    elsewhere.apply(save_reference, (folders["llama"], TEXT, path))
    return path


def trace_engine(model: Path, path: Path) -> gf.Trace:
    engine = build_engine(model, enforce_eager=True)
    with gf.watch(engine, outputs=True) as trace:
        generate(engine, [TEXT], n_tokens=1)
    close_engine(engine)
    trace.save(path)
    return gf.Trace.load(path)


def test_one_model_differs_by_rounding_alone(
    folders: dict[str, Path], reference: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = gf.bisect(
        gf.Trace.load(reference), trace_engine(folders["llama"], tmp_path / "b.trace")
    )
    assert found.origin is None, str(found)
    assert found.has_outputs and found.largest < 1e-5
    words = ["compare", str(reference), str(tmp_path / "b.trace"), "--bisect", "--lang", "en"]
    assert main(words) == 0
    assert "rounding in float32" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", CASES)
def test_planted_difference_is_named(
    name: str, folders: dict[str, Path], reference: Path, tmp_path: Path
) -> None:
    case, model = CASES[name], tmp_path / "model"
    shutil.copytree(folders["llama"], model)
    case.change(model)
    found = gf.bisect(gf.Trace.load(reference), trace_engine(model, tmp_path / "b.trace"))
    origin = found.origin
    assert origin is not None
    assert (origin.name, origin.operands) == (case.name, case.operands), str(found)
    for operand in case.operands:
        kind = origin.kinds[operand]
        assert kind.name == case.kind
        for key, value in case.values.items():
            assert kind.values[key] == (
                pytest.approx(value, rel=0.02) if isinstance(value, float) else value
            )
