"""Every text a person reads, in English and Chinese: one catalogue per language.

en.json and zh.json are flat: dotted key → text with {named} placeholders, so that Python and a web
page can read the same file. A catalogue is opened when its first text is asked for.
Reading order: catalogue, choice. Imports nothing of glassformer but its errors.
"""

from glassformer.languages.catalogue import CODES, Language, text
from glassformer.languages.choice import detect, flag

__all__ = ["CODES", "Language", "detect", "flag", "text"]
