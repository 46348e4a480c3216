"""One file per kin of architectures: its table of names, and its config read and written.

`architecture` says what an architecture is; the order here is the one in which a layout is sought
for a model that was not loaded from one.
"""

from glassformer.models.checkpoints.architectures.architecture import Architecture, Foreign
from glassformer.models.checkpoints.architectures.bart import BART, MARIAN
from glassformer.models.checkpoints.architectures.bert import BERT, ROBERTA, XLM_ROBERTA
from glassformer.models.checkpoints.architectures.deepseek import DEEPSEEK_V2, DEEPSEEK_V3
from glassformer.models.checkpoints.architectures.gpt2 import GPT2
from glassformer.models.checkpoints.architectures.llama import LLAMA, MISTRAL, QWEN2, QWEN3
from glassformer.models.checkpoints.architectures.mixtral import MIXTRAL, QWEN3_MOE
from glassformer.models.checkpoints.architectures.modernbert import MODERNBERT
from glassformer.models.checkpoints.architectures.t5 import T5
from glassformer.models.checkpoints.architectures.vit import VIT

ARCHITECTURES: dict[str, Architecture] = {
    each.model_type: each
    for each in (
        BERT,
        ROBERTA,
        XLM_ROBERTA,
        MODERNBERT,
        GPT2,
        LLAMA,
        MISTRAL,
        QWEN2,
        QWEN3,
        MIXTRAL,
        QWEN3_MOE,
        DEEPSEEK_V2,
        DEEPSEEK_V3,
        BART,
        MARIAN,
        T5,
        VIT,
    )
}

__all__ = ["ARCHITECTURES", "Architecture", "Foreign"]
