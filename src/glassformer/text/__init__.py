"""Text and tokens: tokenizers, special tokens, corpora, and token files.

Reading order: special_tokens, tokenizer (the interface, and `tokenizer.json`; tokenizer_file checks
it), marian (two SentencePiece models and a vocabulary), tokenizer_folder (which of them a folder
holds), ggml (the tokenizer in the header of a GGUF file), pieces (tokens as labels), chat (chat
templates). New tokenizers: vocabularies, tokenizer_training. Reading files: compression, lines,
rows, corpus, corpus_report. What a translator was trained on: coverage, unreadable_spans,
shortlist. Tokens on disk: spool, store, table_building. Imports errors, settings, parsing and
storage; knows no model.
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
