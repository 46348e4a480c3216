"""One text or many: a string in gives one result, a list of strings gives a list of results."""

from typing import Any, TypeVar

from glassformer.errors import ConfigError

Texts = TypeVar("Texts", str, list[str])  # input and output have the same type


def list_texts(text: Any) -> list[str]:
    """The texts as a list, whether one or many were given.

    >>> list_texts("one"), list_texts(["one", "two"])
    (['one'], ['one', 'two'])
    """
    texts = [text] if isinstance(text, str) else text
    if not isinstance(texts, list):
        raise ConfigError(f"text must be a string or a list of strings; got {_name_type(text)}.")
    for each in texts:
        if not isinstance(each, str):
            raise ConfigError(
                f"text must be a string or a list of strings; got a list with {_name_type(each)}."
            )
    if not texts:
        raise ConfigError("At least one text is required; got an empty list.")
    return texts


def match_input(text: Texts, results: list[str]) -> Texts:
    """One result for a string, all of them for a list."""
    if isinstance(text, list):
        return results
    return results[0]


def _name_type(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"
