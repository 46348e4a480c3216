"""Text and tokens: tokenizers, the tokens with a part to play, corpora, and token files.

Reading order: special, tokenizer (what every tokenizer can do, and the one of `tokenizer.json`),
marian (two SentencePiece models and a vocabulary), folder (which of them a folder holds), ggml (the
one in the header of a GGUF file), pieces (how tokens read), chat (a question in the form a model
was trained on). New tokenizers: vocabularies, learning. Reading files: report, compressed, lines,
rows, corpus. Tokens on the disk: spool, store, building. Imports errors; knows no model.
"""

from glassformer.text.corpus import Corpus, Example, read_lines, read_pairs
from glassformer.text.corpus_report import CorpusReport
from glassformer.text.special_tokens import SpecialTokens
from glassformer.text.store import TokenStore, TokenTable, write_store, write_table
from glassformer.text.table_building import Built, Encoding, build_table
from glassformer.text.tokenizer import Tokenizer
from glassformer.text.tokenizer_folder import read_tokenizer
from glassformer.text.tokenizer_training import learn_tokenizer

__all__ = [
    "Built",
    "Corpus",
    "CorpusReport",
    "Encoding",
    "Example",
    "SpecialTokens",
    "TokenStore",
    "TokenTable",
    "Tokenizer",
    "build_table",
    "learn_tokenizer",
    "read_lines",
    "read_pairs",
    "read_tokenizer",
    "write_store",
    "write_table",
]
