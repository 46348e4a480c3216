"""The names of experiments and exercises, read off their folders: importing all takes long."""

from importlib.resources import files


def experiment_names() -> set[str]:
    """What `glassformer lab` runs: positions_picture.py is the experiment positions-picture."""
    names = _names("school", "lab", "experiments")
    return {
        name.removesuffix(".py").replace("_", "-")
        for name in names
        if name.endswith(".py") and not name.startswith("_")
    }


def exercise_names() -> set[str]:
    """What `glassformer practice` grades: the folder 07_split_heads is the exercise split_heads."""
    names = _names("course", "exercises")
    return {name.partition("_")[2] for name in names if name[:2].isdecimal()}


def _names(*folders: str) -> list[str]:
    folder = files("glassformer").joinpath(*folders)
    return [each.name for each in folder.iterdir()] if folder.is_dir() else []
