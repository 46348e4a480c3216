"""The steps of a row, in order: formula, shapes, source line, and how exact each is."""

from typing import Any

from glassformer.analysis.block_rows import BlockRow
from glassformer.functional.arithmetic import RowArithmetic
from glassformer.render.tokens import is_cross
from glassformer.tracing import Site
from glassformer.tracing.norm_form import NormForm
from glassformer.workbench.rooms.step_sources import find_line

_LAYER = "(x − mean) / √(var + ε) · gain"
_RMS = "x / √(mean(x²) + ε) · gain"
_RECORDED = {  # the results that a trace holds: what a step is compared with
    "head_norm": "q",
    "rotate": "q",
    "keys": "k",
    "values": "v",
    "sum": "out",
    "output": "added",
    "ff_down": "ff_added",
}


def list_steps(site: Site, row: RowArithmetic, block: BlockRow | None) -> list[dict[str, Any]]:
    """All steps that this row goes through; without a block, those of attention itself."""
    listing = _Listing(site, row, block)
    if block is not None:
        listing.add_reading(block)
    listing.add_attention(row)
    if block is not None:
        listing.add_writing(block)
    return listing.steps


class _Listing:
    """Collects steps; knows the sizes of the letters."""

    def __init__(self, site: Site, row: RowArithmetic, block: BlockRow | None) -> None:
        assert row.q is not None and row.v is not None
        self.block = block
        self.is_cross = is_cross(site)
        self.has_bias, self.has_mask = site.bias is not None, site.mask is not None
        self.sizes = {"H": site.n_heads, "D": len(row.q), "E": row.v.shape[1], "S": len(row.dots)}
        if block is not None:
            self.sizes |= {"C": len(block.x), "X": block.inputs.shape[1]}
            if block.feed_forward is not None:
                self.sizes["F"] = len(block.feed_forward.hidden)
        self.steps: list[dict[str, Any]] = []

    def add(
        self, name: str, formula: str, shapes: list[tuple[str, str]], variant: str = ""
    ) -> None:
        file, line, code = find_line(name, variant or ("cross" if self.is_cross else ""))
        recorded = _RECORDED.get(name)
        if name == "project" and self.block is not None:
            is_last = self.block.q_norm is None and self.block.rotation is None
            recorded = "q" if is_last else None
        found = None if self.block is None or recorded is None else recorded
        self.steps.append(
            {
                "id": name,
                "formula": formula,
                "shapes": [
                    {
                        "name": tensor,
                        "letters": letters.split(),
                        "numbers": [self._size(letter) for letter in letters.split()],
                    }
                    for tensor, letters in shapes
                ],
                "source": {"file": file, "line": line, "code": code},
                "difference": None
                if found is None or self.block is None
                else self.block.differences[found][0],
                "is_changed": self.block is not None and found in self.block.changed(),
            }
        )

    def _size(self, letter: str) -> int:
        if letter == "H·E":
            return self.sizes["H"] * self.sizes["E"]
        return self.sizes[letter]

    def add_reading(self, block: BlockRow) -> None:
        """From the stream to q, k and v."""
        self.add("x", "x", [("x", "C")])
        if block.norm is not None:
            self.add("norm", f"n = {_write_norm(block.norm)}", [("x", "C"), ("n", "C")])
        n = "x" if block.norm is None else "n"
        self.add(
            "project",
            f"q = W_Q {n}{_plus(block.q.bias, 'b_Q')}",
            [("W_Q", "D C"), (n, "C"), ("q", "D")],
        )
        if block.q_norm is not None:
            self.add("head_norm", "q ← q / √(mean(q²) + ε) · gain", [("q", "D"), ("q", "D")])
        if block.rotation is not None:
            self.add(
                "rotate",
                "(a, b) ← (a cos θ − b sin θ, b cos θ + a sin θ)",
                [("q", "D"), ("q", "D")],
                block.rotation.layout,
            )
        source = "context_j" if self.is_cross else f"{n}_j"
        width = "C" if block.inputs.shape[1] == self.sizes["C"] else "X"
        keys = f"W_K {source}{_plus(block.k.bias, 'b_K')}"
        keys = keys if block.k_norm is None else f"norm({keys})"
        self.add(
            "keys",
            f"k_j = {keys}" if block.rotation is None else f"k_j = R_j ({keys})",
            [("W_K", f"D {width}"), (source, width), ("k", "S D")],
        )
        self.add(
            "values",
            f"v_j = W_V {source}{_plus(block.v.bias, 'b_V')}",
            [("W_V", f"E {width}"), (source, width), ("v", "S E")],
        )

    def add_attention(self, row: RowArithmetic) -> None:
        """From q, k and v to the weighted sum, as `glassformer steps` prints it."""
        self.add("dots", "q · k_j = Σ_i q_i k_ji", [("q", "D"), ("k", "S D"), ("q·k", "S")])
        self.add("scale", "(q · k_j) · scale", [("q·k", "S"), ("scores", "S")])
        if row.softcap is not None:
            self.add("softcap", "c · tanh(score_j / c)", [("scores", "S"), ("scores", "S")])
        if self.has_bias:
            self.add("bias", "score_j + bias_j", [("scores", "S"), ("bias", "S"), ("scores", "S")])
        if self.has_mask:
            self.add("mask", "score_j, −∞ where hidden", [("scores", "S"), ("scores", "S")])
        self.add("exp", "e_j = exp(score_j − max)", [("scores", "S"), ("e", "S")])
        self.add("weights", "w_j = e_j / Σ_i e_i", [("e", "S"), ("weights", "S")])
        self.add("sum", "out = Σ_j w_j v_j", [("weights", "S"), ("v", "S E"), ("out", "E")])

    def add_writing(self, block: BlockRow) -> None:
        """From the head's output to the stream, and the feed-forward network after it."""
        self.add("merge", "[out_0 … out_H]", [("out", "H E"), ("merged", "H·E")])
        self.add(
            "output",
            f"y = W_O merged{_plus(block.o.bias, 'b_O')}",
            [("W_O", "C H·E"), ("merged", "H·E"), ("y", "C")],
        )
        self.add("residual", "x + y", [("x", "C"), ("y", "C"), ("x", "C")])
        if block.after_norm is not None:
            self.add("after_norm", f"x = {_write_norm(block.after_norm)}", [("x", "C"), ("x", "C")])
        network = block.feed_forward
        if network is None:
            return
        is_post = network.norm is None
        gated = "gated" if network.gate is not None else ""
        if network.norm is not None:
            self.add("ff_norm", f"n = {_write_norm(network.norm)}", [("x", "C"), ("n", "C")])
        n = "x" if is_post else "n"
        act = network.module.activation
        self.add(
            "ff_up",
            f"u = W_up {n}{_plus(network.module.up.bias, 'b_up')}",
            [("W_up", "F C"), (n, "C"), ("u", "F")],
            gated,
        )
        hidden = f"h = {act}(W_gate {n}) · u" if gated else f"h = {act}(u)"
        self.add("ff_hidden", hidden, [("u", "F"), ("h", "F")], gated)
        self.add(
            "ff_down",
            f"y = W_down h{_plus(network.module.down.bias, 'b_down')}",
            [("W_down", "C F"), ("h", "F"), ("y", "C")],
        )
        residual = [("x", "C"), ("y", "C"), ("x", "C")]
        self.add("ff_residual", "x + y", residual, "post" if is_post else "")
        if network.after is not None:
            norm = _write_norm(network.after)
            self.add("ff_after_norm", f"x = {norm}", [("x", "C"), ("x", "C")])


def _write_norm(norm: NormForm) -> str:
    bias = "" if norm.bias is None else " + bias"
    return f"{_LAYER if norm.is_centred else _RMS}{bias}"


def _plus(bias: Any, name: str) -> str:
    return "" if bias is None else f" + {name}"
