"""The entry point of the `glassformer` command: everything else is imported under its guard."""

import os
import sys
from collections.abc import Sequence

from glassformer.cli.torch_import import torch_without_gc

INTERRUPTED = 130  # 128 + SIGINT, as shells have it


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        from glassformer.cli.app import run_words

        with torch_without_gc():
            return run_words(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:  # while modules were still being imported
        say_interrupted()
        return INTERRUPTED


def say_interrupted() -> None:
    """One line on standard error, in the reader's language."""
    from glassformer.errors import ConfigError
    from glassformer.languages import Language, detect

    try:
        language = detect(os.environ)
    except ConfigError:  # GLASSFORMER_LANG is none of ours
        language = Language("en")
    sys.stderr.write(f"glassformer: {language.say('app.interrupted')}\n")
