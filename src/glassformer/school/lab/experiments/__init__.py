"""One claim per file: how it is measured, judged and drawn; its texts stand beside it as TOML.

The order in which to read them is that of `NAMES` in catalogue. None imports another.
"""
