"""The `glassformer` command: one file per command, every text from the catalogues.

Reading order: app (the language, the commands, errors), help, usage, terminal; then the commands:
demo (with its numbers in worked_examples and translated_example), mask (with expression, which
reads masks), serve.
May import everything; nothing imports it.
"""

from glassformer.cli.app import main

__all__ = ["main"]
