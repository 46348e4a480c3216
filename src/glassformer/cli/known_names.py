"""The names of models, chapters, experiments and exercises, read from the package's files.

Importing the modules that define them would load torch, for a name that is only completed or
checked.
"""

import ast
from importlib.resources import files
from importlib.resources.abc import Traversable


def model_names() -> list[str]:
    """The included models: a folder with a config.json each.

    >>> model_names()
    ['reader', 'storyteller', 'translator', 'writer']
    """
    folder = _folder("models", "pretrained")
    return sorted(each.name for each in folder.iterdir() if each.joinpath("config.json").is_file())


def preset_names() -> list[str]:
    """The presets, in the order of their table.

    >>> preset_names()[:2]
    ['transformer-base', 'transformer-big']
    """
    source = _folder("models", "presets.py").read_text("utf-8")
    (table,) = [
        node.value.keys
        for node in ast.parse(source).body
        if isinstance(node, ast.AnnAssign)
        and ast.unparse(node.target) == "PRESETS"
        and isinstance(node.value, ast.Dict)
    ]
    return [ast.literal_eval(key) for key in table if key is not None]


def read_card(name: str) -> str:
    """The card of an included model: data, licence, recipe, scores, limits."""
    return _folder("models", "pretrained", name, "CARD.md").read_text("utf-8")


def chapter_names() -> list[str]:
    """What `glassformer learn` shows, in order: the file 01-why.md is the chapter why.

    >>> chapter_names()[:2]
    ['why', 'weights']
    """
    names = sorted(each.name for each in _folder("course", "chapters", "en").iterdir())
    return [name.removesuffix(".md").partition("-")[2] for name in names if name.endswith(".md")]


def experiment_names() -> set[str]:
    """What `glassformer lab` runs: positions_picture.py is the experiment positions-picture."""
    names = [each.name for each in _folder("school", "lab", "experiments").iterdir()]
    return {
        name.removesuffix(".py").replace("_", "-")
        for name in names
        if name.endswith(".py") and not name.startswith("_")
    }


def exercise_names() -> set[str]:
    """What `glassformer practice` grades: the folder 07_split_heads is the exercise split_heads."""
    names = [each.name for each in _folder("course", "exercises").iterdir()]
    return {name.partition("_")[2] for name in names if name[:2].isdecimal()}


def _folder(*parts: str) -> Traversable:
    return files("glassformer").joinpath(*parts)
