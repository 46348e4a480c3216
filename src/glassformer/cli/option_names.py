"""What the library says to Python callers, in the words of the command line.

A library error names keyword arguments; whoever typed a command knows options:

    beams must be at least 1 …; got beams=0      --beams must be at least 1 …; got --beams 0
"""

import re
from collections.abc import Sequence
from typing import Any

# Options that have another name than the library's argument; only those of the command count.
_ALIASES = {
    "max_new_tokens": "--max-new",
    "n_heads": "--heads",
    "n_kv_heads": "--kv-heads",
    "n_layers": "--layers",
    "k": "--top",
    "kind": "--figure",
}
# Advice that only a Python caller can follow.
_PYTHON_ADVICE = (
    r"; load\(…, allow_non_finite=True\) loads it anyway",
    r",? or set model\.tokenizer",
    r" Set model\.special\.\w+\.",
    r",? or select layers: watch\(…, layers=…\)",
    r",? or set head_dim(?=\.)",
    r" Use None for no limit on that side\.",
)
# Advice that an option makes precise.
_SHELL_ADVICE = {"Choose one of them.": "--to"}
_VALUE = r"""(True|'[^']*'|"[^"]*"|[-+]?[\w.+-]*\w)"""


def name_options(sentence: str, params: Sequence[Any]) -> str:
    """The sentence with the options of a command, given by their typer parameters."""
    for advice in _PYTHON_ADVICE:
        sentence = re.sub(advice, "", sentence)
    known = _known_options(params)
    for advice, option in _SHELL_ADVICE.items():
        if option in known.values():
            sentence = sentence.replace(advice, f"{advice[:-1]} with {option}.")
    for name, option in known.items():
        sentence = re.sub(rf"\b{name}={_VALUE}", lambda m, o=option: _assigned(o, m[1]), sentence)
        # A name that is also an English word stands for the option only where a rule begins.
        place = r"\b" if "_" in name else r"(?:^|(?<=; )|(?<=\. ))"
        ending = r"\b" if "_" in name else r"(?= must)"
        sentence = re.sub(rf"(?<!--){place}{name}{ending}", option, sentence)
    return sentence


def _known_options(params: Sequence[Any]) -> dict[str, str]:
    options = {opt for param in params for opt in param.opts if opt.startswith("--")}
    known = {option[2:].replace("-", "_"): option for option in options}
    return known | {name: option for name, option in _ALIASES.items() if option in options}


def _assigned(option: str, value: str) -> str:
    if value == "None":
        return f"no {option}"
    return option if value == "True" else f"{option} {value.strip(chr(39) + chr(34))}"
