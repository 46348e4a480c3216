"""Text and tokens: tokenizers, and the tokens with a part to play.

Reading order: special, tokenizer (what every tokenizer can do, and the one of `tokenizer.json`),
marian (two SentencePiece models and a vocabulary), folder (which of them a folder holds), ggml (the
one in the header of a GGUF file), pieces (how tokens read), chat (a question in the form a model
was trained on). Imports errors; knows no model.
"""

from glassformer.text.folder import read_tokenizer
from glassformer.text.special import SpecialTokens
from glassformer.text.tokenizer import Tokenizer

__all__ = ["SpecialTokens", "Tokenizer", "read_tokenizer"]
