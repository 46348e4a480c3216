"""Which language to speak: what was asked for, else what the surroundings say."""

from collections.abc import Mapping

from glassformer.errors import ConfigError
from glassformer.languages.catalogue import Language

# POSIX, environment variables: the first of these that is set and not empty decides.
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


def detect(environ: Mapping[str, str], choice: str | None = None) -> Language:
    """The explicit choice, else GLASSFORMER_LANG, else Chinese in a Chinese locale, else English.

    >>> detect({"LANG": "zh_CN.UTF-8"})
    Language(code='zh')
    >>> detect({"LANG": "zh_CN.UTF-8"}, choice="en")
    Language(code='en')
    """
    asked = environ.get("GLASSFORMER_LANG") or None if choice is None else choice
    if asked is not None:
        return Language(asked)
    locale = next((environ[name] for name in _LOCALE if environ.get(name)), "")
    return Language("zh" if locale.lower().startswith("zh") else "en")


def flag(language: Language, environ: Mapping[str, str]) -> str:
    """What a command must be told to speak a language: nothing where it would anyway.

    >>> flag(Language("zh"), {"LANG": "zh_CN.UTF-8"}), flag(Language("zh"), {"LANG": "de_AT.UTF-8"})
    ('', ' --lang zh')
    """
    try:
        is_usual = detect(environ) == language
    except ConfigError:  # GLASSFORMER_LANG names one that there is not
        is_usual = False
    return "" if is_usual else f" --lang {language.code}"
