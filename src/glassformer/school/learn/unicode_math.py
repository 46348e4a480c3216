"""Formulas for a reader without a browser: TeX in, one line of Unicode for each line out."""

import re
from collections.abc import Iterator

from glassformer.errors import ConfigError

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\s+|.", re.DOTALL)
_SIGNS = {
    "cdot": "·", "times": "×", "to": "→", "mapsto": "↦", "le": "≤", "ge": "≥", "ne": "≠",
    "approx": "≈", "infty": "∞", "sum": " Σ", "prod": "Π", "ldots": "…", "dots": "…", "in": "∈",
    "cdots": "⋯", "odot": "⊙", "pm": "±", "log": "log", "exp": "exp", "max": "max", "min": "min",
    "sin": "sin", "cos": "cos", "tanh": "tanh", "top": "ᵀ", "lfloor": "⌊", "rfloor": "⌋",
    "sqrt": "√", "quad": "\0", "qquad": "\0", "alpha": "α", "beta": "β", "gamma": "γ",
    "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "theta": "θ", "lambda": "λ", "mu": "μ",
    "sigma": "σ", "tau": "τ", "omega": "ω", "pi": "π", "mid": "|", "lbrace": "{", "rbrace": "}",
    "propto": "∝", "partial": "∂", "circ": "∘", "Delta": "Δ", "lVert": "‖", "rVert": "‖",
    "succ": "≻",
}  # fmt: skip
_BARE = {",": " ", ";": " ", ":": " ", "!": "", " ": " ", "{": "{", "}": "}", "%": "%", "_": "_"}
_WORDS = ("text", "mathrm", "operatorname", "mathbf", "mathit")
_DOUBLE = str.maketrans("NRE", "ℕℝ𝔼")  # of \mathbb
_RAISED = dict(zip("0123456789+-=()inT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿᵀ", strict=True)) | {"−": "⁻"}
_LOWERED = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
) | {"−": "₋"}
_LOOSE = re.compile(r"[\s+−·/×=]")
_ROWS = re.compile(r"^\s*\\begin\{aligned\}(.*)\\end\{aligned\}\s*$", re.DOTALL)


def split_rows(tex: str) -> list[list[str]]:
    r"""The lines of a formula, each in the columns that & separates.

    >>> split_rows(r"\begin{aligned} a &= b \\ c &= d \end{aligned}")
    [['a', '= b'], ['c', '= d']]
    """
    aligned = _ROWS.match(tex)
    rows = aligned[1].split(r"\\") if aligned else [tex]
    return [[cell.strip() for cell in row.split("&")] for row in rows if row.strip()]


def to_unicode(tex: str) -> str:
    r"""A formula as text that a terminal can show.

    >>> to_unicode(r"\mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V")
    'softmax(Q Kᵀ / √dₖ) V'
    >>> to_unicode(r"x_{i,j}^2 \le 10^{-4}")
    'x_(i,j)² ≤ 10⁻⁴'
    """
    cells = [[_Reader(cell).read() for cell in row] for row in split_rows(tex)]
    widths = [max(len(row[i]) for row in cells if len(row) > i) for i in range(len(cells[0]))]
    lines = []
    for row in cells:
        parts = [cell.ljust(widths[i]) for i, cell in enumerate(row)]
        lines.append(" ".join(parts).rstrip())
    return "\n".join(lines)


class _Reader:
    """Reads a formula from left to right, group by group."""

    def __init__(self, tex: str) -> None:
        self.tex = tex
        self.tokens = iter(_TOKEN.findall(tex))

    def read(self) -> str:
        text = re.sub(r"\s+", " ", self._until(None)).strip()
        text = re.sub(r"([(\[∂]) ", r"\1", text)
        return re.sub(r" ?\0 ?", "     ", re.sub(r" ([)\],])", r"\1", text))  # \quad is meant

    def _until(self, end: str | None) -> str:
        parts: list[str] = []
        for token in self.tokens:
            if token == end:
                return "".join(parts)
            parts.append(self._one(token))
        if end is not None:
            raise ConfigError(f"Every brace of a formula must be closed; got {self.tex!r}.")
        return "".join(parts)

    def _one(self, token: str) -> str:
        if token == "{":
            return self._until("}")
        if token == "^":
            return _shift(self._argument(), _RAISED, "^")
        if token == "_":
            return _shift(self._argument(), _LOWERED, "_")
        if token == "-":
            return "−"
        if token.startswith("\\"):
            return self._command(token[1:])
        return " " if token.isspace() else token

    def _command(self, name: str) -> str:
        if name in ("left", "right"):
            return ""
        if name in _WORDS:
            return self._argument()
        if name == "mathbb":
            return self._argument().translate(_DOUBLE)
        if name == "frac":
            above, below = self._argument(), self._argument()
            return f"{_parenthesize(above, '+−=')} / {_parenthesize(below)}"
        if name == "sqrt":
            return f"√{_parenthesize(self._argument())}"
        if name in _SIGNS or name in _BARE:
            sign = (_SIGNS | _BARE)[name]
            return f" {sign} " if sign in "·×→≤≥≠≈∈⊙∝≻" else sign
        raise ConfigError(f"A formula must use commands that we can write as text; got \\{name}.")

    def _argument(self) -> str:
        token = next(self._solid(), "")
        return self._one(token)

    def _solid(self) -> Iterator[str]:
        return (token for token in self.tokens if not token.isspace())


def _shift(text: str, signs: dict[str, str], mark: str) -> str:
    if text in ("ᵀ", "′"):
        return text
    if text and all(sign in signs for sign in text):
        return "".join(signs[sign] for sign in text)
    return f"{mark}{text}" if len(text) == 1 or text.isalpha() else f"{mark}({text})"


def _parenthesize(text: str, loose: str | None = None) -> str:
    """With brackets, where without them it would be read in another way."""
    text = text.strip()
    is_loose = any(sign in text for sign in loose) if loose else bool(_LOOSE.search(text))
    return f"({text})" if is_loose else text
