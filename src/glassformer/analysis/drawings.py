"""Where the methods `figure` and `page` of results lead."""

from importlib import import_module
from typing import Any


def drawing_module() -> Any:
    """The module that draws; it lies above this folder, and needs more than torch."""
    return import_module("glassformer.render.result_views")
