"""Numbers that the room Steps must reproduce: Python writes them, the tests in web/ read them.

`python tests/workbench/steps_numbers.py` writes web/tests/steps.json anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import glassformer as gf
from glassformer.functional import reference
from glassformer.functional.arithmetic import RowArithmetic
from glassformer.models import Config, Norms, Positions
from glassformer.models.presets import build
from glassformer.workbench.memory import Memory, Reading
from glassformer.workbench.rooms.steps import describe_steps, pack_feed_forward
from glassformer.workbench.wire.requests import ReadingRequest
from glassformer.workbench.wire.steps import FeedForwardRequest, StepsRequest

FILE = Path(__file__).parents[2] / "web" / "tests" / "steps.json"
SIZES: dict[str, Any] = {
    "vocab_size": 17, "dim": 12, "n_layers": 2, "n_heads": 3, "max_len": 16, "hidden_dim": 5,
}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "grouped": {
        "family": "decoder", "n_kv_heads": 1, "biases": "none", "gated": True,
        "activation": "silu", "softcap": 2.5, "norms": Norms(kind="rms", heads=True),
        "positions": Positions(kind="rotary"), "site": "decoder.1.self",
    },
    "post-norm": {
        "family": "encoder", "norms": Norms(place="post", final=False),
        "positions": Positions(kind="relative", n_buckets=8), "site": "encoder.0.self",
    },
    "cross": {
        "family": "encoder_decoder", "activation": "gelu", "site": "decoder.1.cross",
        "positions": Positions(kind="sinusoidal"),
    },
    "interleaved": {
        "family": "decoder", "activation": "gelu_tanh", "site": "decoder.0.self",
        "positions": Positions(kind="rotary", layout="interleaved"),
    },
}  # fmt: skip
HEAD, QUERY = 1, 3


def numbers() -> dict[str, Any]:
    """Each case as the server answers it, and what the library makes of edits and gradients."""
    return {name: _case(name, **settings) for name, settings in CASES.items()}


def _case(name: str, *, site: str, **settings: Any) -> dict[str, Any]:
    rng = np.random.default_rng(len(name))  # unlike torch's, the same bits on every processor
    model = build(Config(**(SIZES | settings))).double().eval()
    for parameter in model.parameters():
        parameter.data = torch.tensor(rng.normal(0, 0.4, tuple(parameter.shape)))
    tokens, source = torch.arange(6)[None] + 2, torch.arange(5)[None] + 7
    given = (source, tokens) if settings["family"] == "encoder_decoder" else (tokens,)
    with gf.watch(model, outputs=True, residual=True) as trace, torch.no_grad():
        model(*given)
    memory = Memory()
    asked = ReadingRequest(model=name, text="")
    memory._readings[asked] = Reading(asked, model, trace, None)
    place = StepsRequest(model=name, text="", site=site, head=HEAD, query=QUERY)
    answer = describe_steps(place, memory, lambda _: None)
    matrices = pack_feed_forward(
        FeedForwardRequest(model=name, text="", site=site), memory, lambda _: None
    )
    row = trace[site].row(HEAD, QUERY)
    return {
        "answer": answer,
        "matrices": matrices,
        "row": {each: _plain(getattr(row, each)) for each in ("dots", "scores", "weights", "out")},
        "edits": [
            _edit_stream(model, trace, site, rng),
            _edit_query(row, rng),
            _edit_score(row),
        ],
        "gradients": _gradients(row, rng),
    }


def _edit_stream(model: Any, trace: gf.Trace, site: str, rng: Any) -> dict[str, Any]:
    """A number of the stream changed before the part that attends, and the block run again."""
    stack, layer, kind = site.split(".")
    block = getattr(model, stack).blocks[int(layer)]
    stream = trace.residual(stack)
    before = dict(zip([part.name for part in stream.parts], stream.states(), strict=False))
    x = before[site][1].clone()
    place, value = 4, float(rng.normal())
    x[0, QUERY, place] = value
    seen: dict[str, Tensor] = {}
    layer_of = block.cross if kind == "cross" else block.attention

    def keep(_module: Any, args: Any, options: Any, out: Tensor) -> None:
        scoring = {n: options[n] for n in ("mask", "bias", "scale", "softcap")}
        seen["weights"] = reference.attention_weights(args[0], args[1], **scoring)[0, HEAD, QUERY]
        seen["sum"] = out[0, HEAD, QUERY]

    hook = layer_of.core.register_forward_hook(keep, with_kwargs=True)
    config, own = model.config, getattr(model, stack)
    with torch.no_grad():
        if kind == "cross":
            block.cross(
                block.cross_norm(x), model.encoder.final_norm(trace.residual("encoder").end)
            )
        else:
            is_rotary = config.positions.kind == "rotary"
            tables = config.rotary().tables(torch.arange(x.shape[1])) if is_rotary else None
            block(x, mask=trace[site].mask, bias=own._bias(x.device, None), tables=tables)
        hook.remove()
        outs = trace[site].out[0, :, QUERY].clone()  # the other heads are held
        outs[HEAD] = seen["sum"]
        seen |= _write(block, layer_of, x[0, QUERY], outs.flatten())
    return {"edits": f"x.{place}={value}", "expected": {n: _plain(v) for n, v in seen.items()}}


def _write(block: Any, layer: Any, x: Tensor, outs: Tensor) -> dict[str, Tensor]:
    """From the merged heads to the end of the block, as its `forward` has it."""
    y = layer.out(outs)
    feed, norm = block.feed_forward, block.feed_forward_norm
    if block.norm_place == "pre":
        down = feed(norm(x + y))
        return {"output": y, "ff_down": down, "end": x + y + down}
    x = block.attention_norm(x + y)
    return {"output": y, "ff_down": feed(x), "end": norm(x + feed(x))}


def _edit_query(row: RowArithmetic, rng: Any) -> dict[str, Any]:
    assert row.q is not None and row.k is not None
    value = float(rng.normal())
    q = row.q.clone()
    q[2] = value
    return _expect("q", 2, value, _again(row, row.k @ q))


def _edit_score(row: RowArithmetic) -> dict[str, Any]:
    dots = row.dots.clone()
    dots[1] = 7.5
    return _expect("dots", 1, 7.5, _again(row, dots))


def _again(row: RowArithmetic, dots: Tensor) -> RowArithmetic:
    return RowArithmetic.of_dots(
        dots, scale=row.scale, softcap=row.softcap, bias=row.bias, allowed=row.allowed, v=row.v
    )


def _expect(step: str, place: int, value: float, row: RowArithmetic) -> dict[str, Any]:
    expected = {"weights": _plain(row.weights), "sum": _plain(row.out)}
    return {"edits": f"{step}.{place}={value}", "expected": expected}


def _gradients(row: RowArithmetic, rng: Any) -> dict[str, Any]:
    """What autograd makes of a gradient of the output."""
    assert row.q is not None and row.k is not None and row.v is not None
    q, k, v = (t.detach().clone().requires_grad_() for t in (row.q, row.k, row.v))
    dots = k @ q
    scaled = dots * row.scale
    capped = scaled if row.softcap is None else row.softcap * torch.tanh(scaled / row.softcap)
    scores = (capped + row.bias).masked_fill(~row.allowed, -torch.inf)
    weights = scores.softmax(-1)
    kept = {"dots": dots, "scores": scores, "weights": weights}
    for tensor in kept.values():
        tensor.retain_grad()
    out = torch.tensor(rng.normal(size=row.v.shape[1]))
    (weights @ v @ out).backward()
    found = {"q": q, "keys": k, "values": v, **kept}
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores.detach())
    return {
        "out": _plain(out),
        "jacobian": _plain(torch.as_tensor(jacobian)),
        **{name: _plain(tensor.grad) for name, tensor in found.items()},
    }


def _plain(tensor: Tensor | None) -> Any:
    """Nested lists, None for −∞."""
    assert tensor is not None
    values = tensor.detach().double()
    if values.ndim > 1:
        values = values.flatten()
    return [None if each == -np.inf else each for each in values.tolist()]


if __name__ == "__main__":
    FILE.write_text(json.dumps(numbers()) + "\n")
