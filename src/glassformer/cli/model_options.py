"""What commands on saved models share: options, loading with a sign of life, input."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from glassformer.cli.completion import complete_choice, complete_model
from glassformer.errors import ConfigError, DataError
from glassformer.languages import Language

if TYPE_CHECKING:
    from glassformer.models.checkpoints import Model

QUANTIZED = ("int8", "fp8")
DTYPES = ("float32", "float16", "bfloat16", *QUANTIZED)


def model_option(language: Language, *, default: str | None = None) -> Any:
    """--model, which names saved weights; the `default` ones, where it is left out."""
    text = language.say("saved.model")
    if default is not None:
        text = language.say("saved.usual", model=text, usual=default)
    return typer.Option("--model", "-m", metavar="MODEL", help=text, autocompletion=complete_model)


def device_option(language: Language) -> Any:
    """--device, by default the GPU where there is one."""
    return typer.Option("--device", metavar="cpu|cuda", help=language.say("saved.device"))


def dtype_option(language: Language) -> Any:
    """--dtype, by default float32 on the CPU and as saved elsewhere."""
    return typer.Option(
        "--dtype",
        metavar="|".join(DTYPES),
        help=language.say("saved.dtype"),
        autocompletion=complete_choice(*DTYPES),
    )


def json_option(language: Language) -> Any:
    """--json, for programs."""
    return typer.Option("--json", help=language.say("saved.json"))


def compile_ahead(device: str | None) -> None:
    """Have kernels for a CPU compiled while torch is imported, if they never were."""
    from glassformer.compilation import STACK, build_ahead

    if device in (None, "cpu"):
        build_ahead(STACK)


def load_model(
    source: str | None,
    device: str | None,
    dtype: str | None,
    language: Language,
    *,
    as_saved: bool = False,
    default: str | None = None,
) -> "Model":
    """The model that --model names, or the `default` one, with a line on standard error meanwhile.

    Without a dtype it is float32 on the CPU, and as saved elsewhere or with `as_saved`; "int8"
    or "fp8" quantizes that.
    """
    import torch

    from glassformer.models import quantize
    from glassformer.models.checkpoints import load

    source = default if source is None else source
    if source is None:
        raise ConfigError(language.say("saved.error.model"))
    if dtype is not None and dtype not in DTYPES:
        raise ConfigError(
            language.say("saved.error.dtype", known=", ".join(DTYPES), got=repr(dtype))
        )
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise ConfigError(language.say("saved.error.device", got=repr(device))) from None
    if kind not in ("cpu", "cuda") or (kind == "cuda" and not torch.cuda.is_available()):
        raise ConfigError(language.say("saved.error.device", got=repr(device)))
    wanted = None if dtype in QUANTIZED else dtype
    if wanted is None and kind == "cpu" and not as_saved:
        wanted = "float32"
    with Console(stderr=True).status(language.say("saved.loading", source=source)):
        # An LSTM translates and writes; what looks at attention says that it has none.
        found: Any = load(source, dtype=wanted and getattr(torch, wanted), device=device)
    _announce_run(source, language)
    return quantize(found, dtype) if dtype in QUANTIZED else found


def _announce_run(source: str, language: Language) -> None:
    """Say on standard error which weights of a training run were loaded."""
    from glassformer.models.checkpoints.run_weights import is_run, select_weights

    folder = Path(source).expanduser()
    if not is_run(folder):
        return
    say = language.say
    which = {
        "best": say("saved.run.best", run=source),
        "latest": say("saved.run.latest", run=source),
        "model": say("saved.run.model", run=source),
    }
    typer.echo(which[select_weights(folder).name], err=True)


def text_or_input(text: str | None, language: Language) -> str:
    """The text on the command line, or what is piped in where there is none."""
    if text is not None:
        return text
    if sys.stdin is None or sys.stdin.isatty():
        raise ConfigError(language.say("saved.error.text"))
    return _piped().rstrip("\n")


def _piped() -> str:
    """What is piped in, as UTF-8 whatever the locale says."""
    from glassformer.text.lines import check_text

    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:  # already text
        return sys.stdin.read()
    raw = stream.read()
    check_text(raw[:65_536], "The text that is piped in")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"The text that is piped in must be UTF-8; byte {error.start} is not."
        ) from None


def texts_or_lines(texts: list[str] | None, language: Language) -> list[str]:
    """The texts on the command line, or the lines of what is piped in; empty lines are none."""
    if texts:
        return texts
    lines = [line for line in text_or_input(None, language).splitlines() if line.strip()]
    if not lines:
        raise ConfigError(language.say("saved.error.text"))
    return lines
