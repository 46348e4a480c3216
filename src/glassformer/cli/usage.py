"""Usage errors, as one sentence in the reader's language."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, cast

import typer
from typer.core import TyperGroup

from glassformer.languages import Language

# Typer's own class, or that of the click which older versions use; its name there is private.
UsageError = cast(type[Exception], typer.BadParameter.__mro__[1])
_NUMBERS = {"integer": "usage.whole", "float": "usage.number", "number": "usage.number"}


def describe(error: Any, root: Any, words: Sequence[str], language: Language) -> str:
    """What is wrong with the words, the nearest name there is, and which help to read."""
    say = language.say
    command, path = find_command(root, words)
    key, values = _find_reason(error, command, words)
    values = {name: say(value) if name == "kind" else value for name, value in values.items()}
    sentence = say(key, command=path, **values)
    near = _find_nearest(error, command, values)
    if near is not None:
        sentence += say("usage.near", near=near)
    return sentence + say("usage.see", command=path)


def find_command(root: Any, words: Sequence[str]) -> tuple[Any, str]:
    """The command that the words name, and its path; not every error carries it."""
    command, path = root, "glassformer"
    for word in words:
        if not isinstance(command, TyperGroup) or word not in command.commands:
            break
        command, path = command.commands[word], f"{path} {word}"
    return command, path


def _find_reason(error: Any, command: Any, words: Sequence[str]) -> tuple[str, dict[str, str]]:
    name = getattr(error, "option_name", None)
    if name is not None and hasattr(error, "possibilities"):
        return "usage.option", {"name": name}
    if name is not None:
        is_flag = any(word.startswith(f"{name}=") for word in words)
        return "usage.flag" if is_flag else "usage.empty", {"name": name}
    param = getattr(error, "param", None)
    if param is not None and not error.message:
        return "usage.missing", {"name": _name(param)}
    number = re.search(f"valid ({'|'.join(_NUMBERS)})", error.message)
    if param is not None and number is not None:
        got, kind = _find_value(param, words), _NUMBERS[number[1]]
        return "usage.value", {"name": _name(param), "kind": kind, "got": got}
    if isinstance(command, TyperGroup):
        return "usage.command", {"name": _find_quoted(error.message)}
    extra = re.search(r"extra argument.*\((.*)\)", error.message)
    if extra is not None:
        return "usage.extra", {"name": extra[1]}
    return "usage.other", {"why": error.format_message()}


def _find_nearest(error: Any, command: Any, values: dict[str, str]) -> str | None:
    if isinstance(command, TyperGroup) and "name" in values:
        known = list(command.commands)
    elif hasattr(error, "possibilities"):
        known = [name for param in command.params for name in param.opts if name.startswith("--")]
    else:
        return None
    return next(iter(get_close_matches(values["name"], known, n=1)), None)


def _name(param: Any) -> str:
    """An option by its long name, an argument by what the help calls it."""
    if param.param_type_name == "argument":
        return param.metavar.strip("[]{}")
    return max(param.opts, key=len)


def _find_value(param: Any, words: Sequence[str]) -> str:
    """The value that was typed for an option."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name in param.opts:
            return value if equals else following
    return "…"


def _find_quoted(message: str) -> str:
    found = re.search(r"'(.*?)'", message)
    return found[1] if found else message
