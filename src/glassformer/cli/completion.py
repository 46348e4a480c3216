"""Shell completion: typer's two options in the reader's language, and the names we can complete."""

from collections.abc import Callable, Iterable
from typing import Any

from glassformer.cli.known_names import (
    chapter_names,
    exercise_names,
    experiment_names,
    model_names,
    preset_names,
)
from glassformer.languages import Language


def translate_completion_options(command: Any, language: Language) -> None:
    """Give typer's own options, which are declared in English, a help text of ours."""
    texts = {
        "--install-completion": language.say("app.completion.install"),
        "--show-completion": language.say("app.completion.show"),
    }
    for param in command.params:
        for name in set(param.opts) & set(texts):
            param.help = texts[name]


def _complete(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """What typer calls on Tab: the names that begin with what is typed; files where none does."""

    def complete(incomplete: str) -> list[str]:
        return sorted(name for name in names() if name.startswith(incomplete))

    return complete


def complete_choice(*names: str) -> Callable[[str], list[str]]:
    """What typer calls on Tab for an option with a few values."""
    return _complete(lambda: names)


complete_model = _complete(model_names)
complete_config = _complete(lambda: [*model_names(), *preset_names()])
complete_setting = _complete(lambda: [f"model.preset={name}" for name in preset_names()])
complete_chapter = _complete(chapter_names)
complete_experiment = _complete(experiment_names)
complete_exercise = _complete(exercise_names)
