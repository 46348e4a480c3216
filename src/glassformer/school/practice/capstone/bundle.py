"""Several files as one program, so that they run as one file does: same process, same limits."""

from collections.abc import Iterable

from glassformer.school.practice.exercise import Exercise

_HEAD = """import types


def _load(file, source):
    module = types.ModuleType("learner")
    module.__file__ = file
    exec(compile(source, file, "exec"), module.__dict__)
    return module

"""


def bundle(sources: Iterable[tuple[Exercise, str]]) -> str:
    """A source that loads each file as a module of its own and keeps what its exercise asks for.

    >>> from glassformer.school.practice import find_exercise
    >>> exercise = find_exercise("split_heads")
    >>> module = {}
    >>> exec(bundle([(exercise, exercise.solution)]), module)
    >>> module["split_heads"].__name__
    'split_heads'
    """
    lines = [_HEAD]
    for exercise, source in sources:
        lines.append(f"_module = _load({exercise.file_name!r}, {source!r})")
        lines += [f"{name} = _module.{name}" for name in exercise.entry]
    return "\n".join(lines) + "\n"
