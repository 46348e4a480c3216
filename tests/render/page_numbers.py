"""Numbers that the page must reproduce: Python writes them, the tests in web/ read them.

`python tests/render/page_numbers.py` writes web/tests/numbers.json anew.
"""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import glassformer as gf
from glassformer.functional.biases import ExplicitBias, RelativeBuckets
from glassformer.languages import Language
from glassformer.render.page.document import page_html
from glassformer.tracing import Run, Site, Trace, TracedText

FILE = Path(__file__).parents[2] / "web" / "tests" / "numbers.json"
B, H, K, L, S, D, E = 2, 4, 2, 3, 5, 7, 6
CELL = {"sequence": 1, "head": 3, "query": 2, "key": 1}


def numbers() -> dict[str, Any]:
    """A trace as the page has it, its operands before packing, and what follows from it."""
    made = sites()
    texts = {"tokens": TracedText(torch.arange(B * S).view(B, S), [])}
    html = page_html(Trace([Run(made, texts)]), Language("en"))
    sites_of_page = page_data(html)["runs"][0]["sites"]
    packed = {site["name"]: page_data(html, f"site-0-{n}") for n, site in enumerate(sites_of_page)}
    return {
        "page": {**page_data(html), "languages": {}},
        "tensors": page_data(html, "tensors"),
        "packed": list(packed.values()),
        "operands": {name: made["plain"].__dict__[name].tolist() for name in "qkv"},
        "cell": CELL,
        "sites": {name: _derived(made[name], packed[name]) for name in made},
    }


def page_data(html: str, element: str = "page") -> Any:
    """What an element of a page carries: all that is shown at once, or the operands of a site."""
    begin = html.index(f'id="{element}">') + len(f'id="{element}">')
    return json.loads(html[begin : html.index("</script>", begin)])


def unpacked(rows: dict[str, str], shape: tuple[int, ...]) -> Tensor:
    """Operands as the page computes with them."""
    whole = np.frombuffer(base64.b64decode(rows["int16"]), "<i2").reshape(shape)
    steps = np.frombuffer(base64.b64decode(rows["steps"]), "<f4").reshape(shape[:-1])
    return torch.tensor((whole * steps[..., None].astype("f8")).astype("f4")).double()


def sites() -> dict[str, Site]:
    """One site for each kind of mask and bias."""
    rng = np.random.default_rng(0)  # unlike torch's, the same bits on every processor

    def draw(*shape: int) -> Tensor:
        return torch.tensor(rng.standard_normal(shape), dtype=torch.float32)

    q, k, v = draw(B, H, L, D), draw(B, K, S, D), draw(B, K, S, E)
    ids = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]])
    drawn = gf.Explicit(torch.tensor(rng.random((B, 1, L, S))) > 0.4)
    matrix = gf.Explicit(torch.tensor(rng.random((L, S))) > 0.6)
    each: dict[str, dict[str, Any]] = {
        "plain": {},
        "scaled": {"scale": 0.9, "softcap": 2.0},
        "causal": {"mask": gf.Causal()},
        "offset": {"mask": gf.Causal(offset=torch.tensor([0, 1]))},
        "window": {"mask": gf.Window(left=1, right=1)},
        "prefix": {"mask": gf.Causal() | gf.Prefix(torch.tensor([4, 2]))},
        "padding": {"mask": gf.Padding([5, 3]) & gf.Causal()},
        "padded left": {"mask": gf.Padding([3, 2], of="both", side="left")},
        "documents": {"mask": gf.Documents(ids)},
        "asking": {"mask": gf.Documents([0, 0, 1, 1, 2], query_ids=[0, 2, 3])},
        "explicit": {"mask": drawn},
        "not": {"mask": ~matrix},
        "alibi": {"bias": gf.ALiBi.of_heads(H), "mask": gf.Causal()},
        "buckets": {"bias": RelativeBuckets(draw(8, H), max_distance=9)},
        "one way": {"bias": RelativeBuckets(draw(4, H), False, 5, offset=1)},
        "bias": {"bias": ExplicitBias(draw(1, H, L, S)) + draw(L, S)},
    }
    return {name: Site(name=name, q=q, k=k, v=v, **options) for name, options in each.items()}


def _derived(site: Site, packed: dict[str, Any]) -> dict[str, Any]:
    shapes = {"q": (B, H, L, D), "k": (B, K, S, D), "v": (B, K, S, E)}
    exact = replace(
        site, _kept={}, **{name: unpacked(packed[name], shape) for name, shape in shapes.items()}
    )
    found = exact.statistics()
    weights = torch.stack([exact.weights(sequence=b) for b in range(B)])
    visible = torch.stack([exact.visible(sequence=b) for b in range(B)]).double()
    derived = {"weights": weights, **{n: getattr(found, n) for n in STATISTICS}}
    derived |= {"visible": visible, "sharpness": _sharpness(exact)}
    cell = exact.arithmetic(**{n: CELL[n] for n in ("head", "query", "key", "sequence")})
    return {
        **{name: _rounded(values.tolist()) for name, values in derived.items()},
        "arithmetic": {
            name: _rounded(value)
            for name, value in cell.as_dict().items()
            if name not in ("batch", "head")
        },
    }


def _sharpness(site: Site) -> Tensor:
    return torch.stack([site.sharpness(sequence=b) for b in range(B)])


STATISTICS = ("entropy", "peak", "distance", "received")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, float):
        return round(value, 8) if np.isfinite(value) else None
    return value


if __name__ == "__main__":
    FILE.write_text(json.dumps(numbers(), separators=(",", ":")) + "\n")
