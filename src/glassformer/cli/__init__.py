"""The `glassformer` command: one file per command, every text from the catalogues.

Reading order: entry (Ctrl-C during start-up), torch_import, app (the language, the commands,
errors), help, usage, terminal; then one command, such as mask. Modules import torch, and what
needs it, inside the command that computes. May import everything; nothing imports it.
"""

from glassformer.cli.entry import main

__all__ = ["main"]
