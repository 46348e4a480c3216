"""Models that transformers runs and glassformer cannot load: watched as they are, from a folder.

Nothing is fetched, no code of the folder is run, and weights are read from safetensors files alone.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from glassformer.analysis.traced_text import EmptyText
from glassformer.errors import CheckpointError, TraceError
from glassformer.generation.encoder_tasks import GAP
from glassformer.installation import install_command
from glassformer.tracing import Trace, change, watch
from glassformer.tracing.interventions import Changes

_MOST_NEW = 64  # tokens that an encoder-decoder writes
_MOST_TOKENS = 4096  # that are read, where the model says nothing
_CLASSES = {
    "CausalLM": "AutoModelForCausalLM",
    "LMHead": "AutoModelForCausalLM",
    "ConditionalGeneration": "AutoModelForSeq2SeqLM",
    "MaskedLM": "AutoModelForMaskedLM",
    "SequenceClassification": "AutoModelForSequenceClassification",
    "TokenClassification": "AutoModelForTokenClassification",
}


@dataclass(eq=False, frozen=True)
class ForeignModel:
    """A model of transformers with its tokenizer."""

    model: Any
    tokenizer: Any

    @property
    def is_translator(self) -> bool:
        return bool(getattr(self.model.config, "is_encoder_decoder", False))

    @property
    def continues(self) -> bool:
        return any(word in type(self.model).__name__ for word in ("CausalLM", "LMHead"))

    @property
    def gap(self) -> int:
        """The token of a gap that the model fills; −1 where it fills none."""
        fills = "MaskedLM" in type(self.model).__name__
        return self.tokenizer.mask_token_id if fills and self.tokenizer.mask_token else -1

    def trace(self, text: str, target: str | None, *, changes: Changes | None) -> Trace:
        """The run of a text, with the residual stream where it can be recorded."""
        if self.gap >= 0:
            text = text.replace(GAP, self.tokenizer.mask_token)
        inputs = self.tokenizer(text, return_tensors="pt").to(self.model.device)
        n = inputs["input_ids"].shape[1]
        limit = getattr(self.model.config, "max_position_embeddings", None) or _MOST_TOKENS
        if n == 0:
            raise EmptyText("A text to look at must have at least one token; got an empty one.")
        if n > limit:
            raise TraceError(
                f"A text to look at must have at most {limit:,} tokens with this model; got {n:,}. "
                "Look at a part of it."
            )
        with torch.no_grad():
            if self.is_translator:
                inputs["decoder_input_ids"] = self._write(inputs, target, changes)
            with self._record(changes) as trace:
                self.model(**inputs)
        return trace

    def write(self, text: str, n: int) -> str:
        """What follows a text: n tokens, each the most probable."""
        inputs = self.tokenizer(text, return_tensors="pt").to(self.model.device)
        with torch.no_grad():
            tokens = self.model.generate(**inputs, max_new_tokens=n, do_sample=False)
        new = tokens[0, inputs["input_ids"].shape[1] :]
        return self.tokenizer.decode(new, skip_special_tokens=True)

    def _record(self, changes: Changes | None) -> AbstractContextManager[Trace]:
        if changes is None:
            return watch(self.model, self.tokenizer, outputs=True, residual=True)
        return change(self.model, changes, self.tokenizer, outputs=True, residual=True)

    def _write(self, inputs: Any, target: str | None, changes: Changes | None) -> torch.Tensor:
        """The decoder's tokens: what the target says, or what the model writes by itself."""
        if target is not None:
            labels = self.tokenizer(text_target=target, return_tensors="pt")["input_ids"]
            start = self.model.config.decoder_start_token_id or 0
            first = torch.full_like(labels[:, :1], start)
            return torch.cat([first, labels[:, :-1]], 1).to(self.model.device)
        if changes is None:
            return self.model.generate(**inputs, max_new_tokens=_MOST_NEW, do_sample=False)
        with change(self.model, changes):
            return self.model.generate(**inputs, max_new_tokens=_MOST_NEW, do_sample=False)


def load_foreign(folder: Path, refused: CheckpointError) -> ForeignModel:
    """A folder that `gf.load` has refused, as transformers reads it."""
    if find_spec("transformers") is None:
        raise CheckpointError(
            f"{str(refused).rstrip('.')}. With transformers it may be readable: "
            f"{install_command('huggingface')}"
        )
    import transformers

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **options)
        classes = " ".join(config.architectures or ())
        name = next((auto for word, auto in _CLASSES.items() if word in classes), "AutoModel")
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        model = getattr(transformers, name).from_pretrained(folder, use_safetensors=True, **options)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        said = " ".join(str(error).split())[:300]
        raise CheckpointError(
            f"Neither glassformer nor transformers reads {folder}: {said}"
        ) from None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return ForeignModel(model.to(device).eval(), tokenizer)
