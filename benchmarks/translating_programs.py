"""One encoder-decoder in three programs: ours, transformers, CTranslate2, in several precisions.

Our model is the origin of all: `gf.save(…, layout="marian")` writes the folder that transformers
reads, and `write_ctranslate2` what CTranslate2 reads. Each program takes and gives token ids.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

import glassformer as gf
from glassformer.functional import sinusoidal
from glassformer.generation import beam_search, generate_tokens
from glassformer.models import EncoderDecoder

Texts = Sequence[Sequence[int]]


class Program(Protocol):
    name: str

    def translate(self, sources: Texts, *, beams: int, forced: int | None) -> list[list[int]]:
        """The best translations; `forced` is their length, and otherwise they end by themselves."""
        ...

    def score(self, sources: Texts, targets: Texts) -> list[list[float]]:
        """The log-probability of each token of given translations."""
        ...


class Ours:
    def __init__(self, model: EncoderDecoder, name: str = "glassformer float32") -> None:
        self.name, self.model = name, model
        self.special = model.special

    def translate(self, sources: Texts, *, beams: int, forced: int | None) -> list[list[int]]:
        end, never = self.special.end, self.special.never
        settings: dict[str, Any] = {
            "source": sources,
            "max_new_tokens": forced or 200,
            "stop": () if forced else end,
            "never": (*never, *end) if forced else never,
        }
        starts = [self.special.start] * len(sources)
        if beams == 1:
            return generate_tokens(self.model, starts, **settings)
        found = beam_search(self.model, starts, beams=beams, **settings)
        return [list(best[0].tokens) for best in found]

    @torch.no_grad()
    def score(self, sources: Texts, targets: Texts) -> list[list[float]]:
        return [
            _pick(self.model(torch.tensor([s]), torch.tensor([[*self.special.start, *t[:-1]]])), t)
            for s, t in zip(sources, targets, strict=True)
        ]


class Transformers:
    name = "transformers float32"

    def __init__(
        self,
        folder: Path,
        special: Any,
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        from transformers import MarianMTModel

        self.special = special
        self.name = f"transformers {str(dtype).removeprefix('torch.')}"
        model: Any = MarianMTModel.from_pretrained(folder)
        self.model = model.eval().to(device, dtype)

    def translate(self, sources: Texts, *, beams: int, forced: int | None) -> list[list[int]]:
        from transformers import GenerationConfig

        assert forced is not None, "transformers has no model of the shipped translator's kind"
        settings = GenerationConfig(
            min_new_tokens=forced,
            max_new_tokens=forced,
            num_beams=beams,
            do_sample=False,
            decoder_start_token_id=self.special.start[0],
            eos_token_id=list(self.special.end),
            pad_token_id=self.special.pad,
            suppress_tokens=list(self.special.never),
        )
        lengths = torch.tensor([len(source) for source in sources])
        given = torch.full((len(sources), int(lengths.max())), self.special.pad)
        for row, source in zip(given, sources, strict=True):
            row[: len(source)] = torch.tensor(list(source))
        visible = (torch.arange(given.shape[1]) < lengths[:, None]).long()
        device = self.model.device
        with torch.no_grad():
            found = self.model.generate(
                given.to(device), attention_mask=visible.to(device), generation_config=settings
            )
        return found[:, 1:].tolist()

    @torch.no_grad()
    def score(self, sources: Texts, targets: Texts) -> list[list[float]]:
        return [
            _pick(
                self.model(
                    input_ids=torch.tensor([s]),
                    decoder_input_ids=torch.tensor([[*self.special.start, *t[:-1]]]),
                ).logits,
                t,
            )
            for s, t in zip(sources, targets, strict=True)
        ]


class CTranslate2:
    def __init__(
        self,
        folder: Path,
        special: Any,
        *,
        compute_type: str,
        threads: int,
        device: str = "cpu",
        batch_tokens: int = 0,
    ) -> None:
        """`folder` has one model in int8 and one in float32, from which float16 is made.

        `batch_tokens` are the source tokens of a batch, which it chooses by length; 0: all texts.
        """
        import ctranslate2

        self.name, self.special = f"CTranslate2 {compute_type}", special
        self.batches = {"max_batch_size": batch_tokens, "batch_type": "tokens"}
        self.translator = ctranslate2.Translator(
            str(folder / ("int8" if compute_type == "int8" else "float32")),
            device=device,
            compute_type=compute_type,
            inter_threads=1,
            intra_threads=threads,
        )

    def translate(self, sources: Texts, *, beams: int, forced: int | None) -> list[list[int]]:
        found = self.translator.translate_batch(
            _spell(sources),
            beam_size=beams,
            max_decoding_length=forced or 200,
            min_decoding_length=forced or 1,
            suppress_sequences=_spell([[t] for t in self.special.never]),
            **self.batches,
        )
        return [[int(token) for token in best.hypotheses[0]] for best in found]

    def score(self, sources: Texts, targets: Texts) -> list[list[float]]:
        found = self.translator.score_batch(_spell(sources), _spell(targets))
        return [one.log_probs[: len(t)] for one, t in zip(found, targets, strict=True)]


def _pick(logits: torch.Tensor, target: Sequence[int]) -> list[float]:
    chosen = torch.tensor([list(target)])[..., None]
    return logits.log_softmax(-1).gather(-1, chosen).flatten().tolist()


def _spell(texts: Texts) -> list[list[str]]:
    """CTranslate2's tokens are words; here they are the numbers."""
    return [[str(token) for token in text] for text in texts]


def write_ctranslate2(model: EncoderDecoder, folder: Path) -> None:
    """Save a model as CTranslate2 reads it, matrix by matrix: once in float32, once in int8."""
    for quantization in ("float32", "int8"):
        spec = _describe(model)
        spec.validate()
        spec.optimize(quantization=quantization)
        (folder / quantization).mkdir(parents=True)
        spec.save(str(folder / quantization))


def _describe(model: EncoderDecoder) -> Any:
    from ctranslate2.specs import common_spec, transformer_spec

    config = model.config
    rotary = config.positions.kind == "rotary"
    activation = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}[config.activation]
    shared: dict[str, Any] = {
        "pre_norm": config.norms.place == "pre",
        "activation": common_spec.Activation[activation],
    }
    if rotary:
        shared |= {
            "rotary_dim": 0,
            "rotary_interleave": config.positions.layout == "interleaved",
            "rotary_base": config.positions.base,
        }
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.n_layers, config.n_heads, **shared),
        transformer_spec.TransformerDecoderSpec(config.decoder_layers, config.n_heads, **shared),
    )
    if rotary:
        del spec.encoder.position_encodings
    _fill_stack(spec.encoder, model.encoder, rotary=rotary)
    _fill_stack(spec.decoder, model.decoder, rotary=rotary)
    for embeddings in (spec.encoder.embeddings[0], spec.decoder.embeddings):
        embeddings.weight = _plain(model.embedding.weight)
    for part in (spec.encoder, spec.decoder):
        part.scale_embeddings = config.scaled_embedding
    spec.decoder.projection.weight = _plain(model.embedding.weight)
    if config.output.bias:
        spec.decoder.projection.bias = _plain(model.head.bias)
    words = [str(token) for token in range(config.vocab_size)]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.unk_token = spec.config.bos_token = str(model.special.pad)
    spec.config.eos_token = str(model.special.end[0])
    spec.config.decoder_start_token = str(model.special.start[0])
    spec.config.layer_norm_epsilon = config.norms.eps
    return spec


def _fill_stack(spec: Any, stack: Any, *, rotary: bool) -> None:
    if not rotary:
        places = torch.arange(stack.config.max_len)
        positions = stack.config.positions
        spec.position_encodings.encodings = _plain(
            sinusoidal(places, stack.config.dim, base=positions.base, layout=positions.layout)
        )
    if stack.config.norms.final:
        _fill_norm(spec.layer_norm, stack.final_norm)
    for part, block in zip(spec.layer, stack.blocks, strict=True):
        _fill_linear(part.self_attention.linear[0], block.attention.qkv)
        _fill_linear(part.self_attention.linear[1], block.attention.out)
        _fill_norm(part.self_attention.layer_norm, block.attention_norm)
        if block.has_cross:
            _fill_linear(part.attention.linear[0], block.cross.q)
            _fill_linear(part.attention.linear[1], block.cross.kv)
            _fill_linear(part.attention.linear[2], block.cross.out)
            _fill_norm(part.attention.layer_norm, block.cross_norm)
        _fill_linear(part.ffn.linear_0, block.feed_forward.up)
        _fill_linear(part.ffn.linear_1, block.feed_forward.down)
        _fill_norm(part.ffn.layer_norm, block.feed_forward_norm)


def _fill_linear(spec: Any, layer: Any) -> None:
    spec.weight, spec.bias = _plain(layer.weight), _plain(layer.bias)


def _fill_norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = _plain(norm.weight), _plain(norm.bias)


def _plain(tensor: torch.Tensor) -> Any:
    # A copy: quantization writes into what it is given.
    return tensor.detach().float().clone(memory_format=torch.contiguous_format).numpy()


def build_base() -> EncoderDecoder:
    """The base shape of Vaswani et al. (2017), as Marian has it, with random weights."""
    from glassformer.models.config import Norms, Output, Positions
    from glassformer.text import SpecialTokens

    torch.manual_seed(0)
    config = gf.Config(
        family="encoder_decoder",
        vocab_size=32_000,
        dim=512,
        n_layers=6,
        n_decoder_layers=6,
        n_heads=8,
        hidden_dim=2048,
        max_len=512,
        biases="all",
        positions=Positions(kind="sinusoidal", layout="half"),
        norms=Norms(place="post", final=False),
        output=Output(tied=True, bias=True),
        scaled_embedding=True,
    )
    model = gf.build(config).eval()
    assert isinstance(model, EncoderDecoder)
    model.special = SpecialTokens(start=(0,), end=(1,), pad=0, never=(0,))
    return model
