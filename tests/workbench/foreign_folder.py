"""A folder of an architecture that gf.load has no table for, and that transformers reads."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["<unk>", "the", "cat", "sat", "on", "mat", "."]


def save_foreign(folder: Path) -> None:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>").save_pretrained(folder)
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=len(WORDS),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=16,
        bos_token_id=0,
        eos_token_id=0,
    )
    GPTNeoXForCausalLM(config).save_pretrained(folder)
