"""Small models whose tokens are letters, to see text go in and come out."""

import torch
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from glassformer.models import Config, Output, build
from glassformer.text import SpecialTokens
from glassformer.text.tokenizer import JsonTokenizer

SPECIAL = ["<pad>", "<s>", "</s>", "[MASK]"]
WORDS = [*SPECIAL, *"abcdefghijklmnopqrstuvwxyz", " "]


def letters() -> JsonTokenizer:
    """Each letter is a token."""
    backend = Backend(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens([AddedToken(each, special=True) for each in SPECIAL])
    return JsonTokenizer(backend, chat_template="q {{ messages[0]['content'] }} a ")


def letter_model(family: str, **changes):
    torch.manual_seed(2)
    config = {
        "family": family,
        "vocab_size": len(WORDS),
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "max_len": 40,
        "output": Output(tied=False),
        **changes,
    }
    built = build(Config(**config)).eval()
    for part in built.parameters():
        torch.nn.init.normal_(part, std=0.5)
    built.tokenizer = letters()
    built.special = SpecialTokens(begin=1, end=(2,), pad=0, mask=3, start=(1,), never=(0, 1, 3))
    return built
