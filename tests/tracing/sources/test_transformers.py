"""Watching models of transformers: nothing changes, and what is seen is what was computed."""

import copy
import threading
from typing import Any

import pytest
import torch
import transformers
from transformers.models.llama import modeling_llama

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import RecordingWarning, TraceError
from glassformer.tracing import Site, Trace, patches, watch
from glassformer.tracing.mask_rules import MaskRule
from glassformer.tracing.site_steps import Step
from glassformer.tracing.text_labels import label_tokens
from tiny_models import DECODER, tiny
from tracing.watched_architectures import (
    ARCHITECTURES,
    LAYERS,
    LENGTHS,
    NEW,
    TOLERANCE,
    VISION,
    Architecture,
    built,
    generate_apart,
    inputs,
    same,
)

V = 37

CACHES = {"beams": {"num_beams": 3}, "fixed": {"cache_implementation": "static"}}


@pytest.mark.parametrize("kind", CACHES)
@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3", "gpt-oss", "bart", "t5"])
def test_caches_and_beams(name: str, kind: str) -> None:
    """Beams are followed to where they went; keys that a cache lacks or has too many are found."""
    implementation = "eager" if name == "gpt-oss" else "sdpa"
    apart, trace = generate_apart(name, implementation, **CACHES[kind])
    assert apart < TOLERANCE
    tokens = trace.run.texts["tokens"].tokens
    assert len(tokens) == (6 if kind == "beams" else 2)
    if kind == "beams":
        assert len({tuple(each) for each in tokens.tolist()}) > 2
    for site in trace:
        assert len(site.q) == len(tokens)
        assert run_fits(site, trace)


def run_fits(site: Site, trace: Trace) -> bool:
    B, _, L, S = site.shape
    texts = trace.run.texts
    return texts[site.queries].tokens.shape == (B, L) and texts[site.keys].tokens.shape == (B, S)


def test_long_texts_carry_no_matrix() -> None:
    """Masks are recognised: what is kept is linear in the length, while generating too."""
    model = tiny("llama")
    with watch(model) as trace:
        model.generate(torch.tensor([[3, 4, 5]]), max_new_tokens=4, min_new_tokens=4)
    assert repr(trace["decoder.1.self"].mask) == "Causal()"
    with watch(model) as trace:
        generate_from(model, [[3, 4, 5], [6, 7, 8]], [[1, 1, 1], [0, 1, 1]])
    assert repr(trace["decoder.0.self"].mask) == "Causal() & Padding(lengths=[7, 6], side='left')"
    with watch(tiny("mistral")) as trace:
        generate_from(trace_model := tiny("mistral"), [[3, 4, 5, 6, 7]], [[1] * 5])
        del trace_model
    assert not trace.runs  # another model than the watched one


def generate_from(model: Any, tokens: list, mask: list) -> torch.Tensor:
    given = {"input_ids": torch.tensor(tokens), "attention_mask": torch.tensor(mask)}
    return model.generate(**given, max_new_tokens=5, min_new_tokens=5)


def test_tokens_that_are_tried_and_thrown_away_are_forgotten() -> None:
    """Assisted generation crops its cache: rows of what was refused must go."""
    model, prompt = tiny("llama"), torch.tensor([[3, 4, 5, 3, 4, 5, 3]])
    options = {"max_new_tokens": 8, "min_new_tokens": 8, "prompt_lookup_num_tokens": 3}
    plain = model.generate(prompt, **options)
    with watch(model) as trace:
        assert torch.equal(model.generate(prompt, **options), plain)
    tokens = trace.run.texts["tokens"].tokens
    assert tokens.tolist() == plain[:, : tokens.shape[1]].tolist()
    with watch(model) as whole, torch.no_grad():
        model(tokens)
    assert_alike(trace, whole)


def assert_alike(ours: Trace, theirs: Trace) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        for sequence in range(a.shape[0]):
            assert_close(a.weights(sequence=sequence), b.weights(sequence=sequence), 1e-5)


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_passes_that_continue_a_cache_are_one_run(name: str) -> None:
    model, tokens = tiny(name), torch.randint(3, V, (2, 9))
    with watch(model) as trace, torch.no_grad():
        first = model(tokens[:, :6], use_cache=True)
        assert trace["decoder.0.self"].shape == (2, 6, 6, 6)  # while it is still open
        cache = first.past_key_values
        model(tokens[:, 6:8], past_key_values=cache)
        model(tokens[:, 8:], past_key_values=cache)
    assert "reorder_cache" not in vars(cache)
    with watch(model) as whole, torch.no_grad():
        model(tokens)
    assert len(trace.runs) == len(whole.runs) == 1
    assert torch.equal(trace.run.texts["tokens"].tokens, tokens)
    assert_alike(trace, whole)


def test_a_cache_from_before_has_keys_without_queries() -> None:
    model, tokens = tiny("llama"), torch.randint(3, V, (2, 9))
    with torch.no_grad():
        cache = model(tokens[:, :6], use_cache=True).past_key_values
        with watch(model) as trace:
            model(tokens[:, 6:], past_key_values=cache)
        with watch(model) as whole:
            model(tokens)
    site = trace["decoder.1.self"]
    assert site.shape == (2, 6, 3, 9)
    assert run_fits(site, trace)
    assert_close(site.weights(), whole["decoder.1.self"].weights(rows=slice(6, 9)), 1e-5)


def test_runs_follow_each_other() -> None:
    model = tiny("bart")
    with watch(model) as trace, torch.no_grad():
        for length in (4, 3):
            source = torch.full((1, length), 5)
            model(source, decoder_input_ids=torch.full((1, length - 1), 6))
    sizes = [
        [run.texts[name].tokens.shape[1] for name in ("source", "tokens")] for run in trace.runs
    ]
    assert sizes == [[4, 3], [3, 2]]
    assert trace["decoder.2.cross"].shape == (1, 3, 2, 3)
    assert trace["decoder.2.cross"].keys == "source"


def test_leaving_restores_everything() -> None:
    """Also after an exception, however many watch, and in whatever order they leave."""
    model = tiny("llama")
    tokens = torch.randint(3, V, (1, 5))
    before = state(model)
    with torch.no_grad():
        plain = model(tokens)
        with pytest.raises(ZeroDivisionError), watch(model):
            assert patches._taps and state(model) == before  # the model itself is left alone
            raise ZeroDivisionError
        assert state(model) == before
        outer, inner = watch(model, outputs=True), watch(model, layers=[1])
        first = outer.__enter__()
        second = inner.__enter__()
        assert same(model(tokens), plain)
        outer.__exit__(None, None, None)
        assert same(model(tokens), plain)
        inner.__exit__(None, None, None)
    assert state(model) == before
    assert len(first.runs) == 1 and len(second.runs) == 2
    assert first.names == ["decoder.0.self", "decoder.1.self"]
    assert second.names == ["decoder.1.self"]
    assert_same(first["decoder.1.self"].q, second["decoder.1.self"].q)
    assert not patches._taps and not patches._replaced


def test_a_pass_that_fails_does_not_disturb_the_next() -> None:
    model, tokens = tiny("bart"), torch.tensor([[3, 4, 5]])
    with watch(model) as trace, torch.no_grad():
        with pytest.raises(IndexError):
            model(tokens, decoder_input_ids=torch.tensor([[V]]))
        plain = model(tokens, decoder_input_ids=torch.tensor([[3, 4]]))
    with torch.no_grad():
        assert same(model(tokens, decoder_input_ids=torch.tensor([[3, 4]])), plain)
    assert trace["decoder.2.cross"].shape == (1, 3, 2, 3)
    assert [sorted(run.texts) for run in trace.runs] == [["source", "tokens"]] * 2


def state(model: Any) -> Any:
    """All that watching touches."""
    hooks = [
        (len(m._forward_hooks), len(m._forward_pre_hooks), len(m._forward_hooks_always_called))
        for m in model.modules()
    ]
    named = model.config._attn_implementation_internal
    settings = model.generation_config.to_dict()
    return hooks, type(named), str(named), settings, str(model.config)


def test_parts_with_implementations_of_their_own() -> None:
    model = built("clip", "eager")
    model.set_attn_implementation({"vision_config": "sdpa"})
    named = [c._attn_implementation for c in (model.config, model.config.vision_config)]
    given = inputs(model, "text and image")
    with torch.no_grad():
        plain = model(**given)
        with watch(model, outputs=True) as trace:
            assert same(model(**given), plain)
    assert [c._attn_implementation for c in (model.config, model.config.vision_config)] == named
    assert all(site.difference_from_output() < 1e-5 for site in trace)
    assert trace["vision.0.self"].queries == "vision"


def test_only_the_thread_that_watches_is_seen() -> None:
    model, tokens = tiny("gpt2"), torch.randint(3, V, (1, 5))
    found = []

    def elsewhere() -> None:
        with torch.no_grad():
            found.append(model(tokens))

    with watch(model) as trace, torch.no_grad():
        plain = model(tokens)
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
    assert same(found[0], plain)
    assert len(trace.runs) == 1


def test_a_copy_made_meanwhile_computes_the_same() -> None:
    model, tokens = tiny("llama"), torch.randint(3, V, (1, 5))
    with watch(model) as trace, torch.no_grad():
        plain = model(tokens)
        copied = copy.deepcopy(model)
    with torch.no_grad():
        assert same(copied(tokens), plain)
    assert len(trace.runs) == 1


def test_only_some_layers_and_on_another_device() -> None:
    model = tiny("t5")
    with watch(model, layers={1}, device="cpu", outputs=True) as trace, torch.no_grad():
        model(torch.tensor([[3, 4, 5]]), decoder_input_ids=torch.tensor([[1, 7]]))
    assert trace.names == ["encoder.1.self", "decoder.1.self", "decoder.1.cross"]
    assert all(site.difference_from_output() < 1e-5 for site in trace)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_masks_of_ones_own(implementation: str) -> None:
    """A mask of rank 4 is taken as it is: booleans, or numbers that are added."""
    model, tokens = built("llama", implementation), torch.randint(3, V, (2, 4))
    drawn = gf.Explicit.from_drawing("■ ■ · · / ■ ■ · · / ■ ■ ■ · / ■ · ■ ■").tensor.expand(
        2, 1, 4, 4
    )
    added = torch.where(drawn, torch.randn(2, 1, 4, 4), torch.finfo(torch.float32).min)
    masks = [added] if implementation == "eager" else [added, drawn]
    for mask in masks:
        with torch.no_grad(), watch(model, outputs=True) as trace:
            model(tokens, attention_mask=mask)
        for site in trace:
            assert site.difference_from_output() < 1e-5
            assert site.weights()[:, ~drawn[0, 0]].abs().max() == 0
            assert (site.bias is None) == (mask is drawn)


def test_low_precision_and_dropout() -> None:
    model, tokens = built("llama", "eager").bfloat16(), torch.randint(3, V, (2, 4))
    with torch.no_grad(), watch(model, outputs=True) as trace:
        model(tokens)
    assert not trace.run.refusals
    assert trace["decoder.0.self"].q.dtype == torch.bfloat16
    model = built("gpt2", "eager").train()
    torch.manual_seed(3)
    plain = model(tokens)
    torch.manual_seed(3)
    with watch(model) as trace:
        out = model(tokens, labels=tokens)
    assert torch.equal(out.logits, plain.logits)
    out.loss.backward()
    assert not trace.run.refusals and not trace["decoder.0.self"].q.requires_grad


def test_sinks_are_a_key_before_the_others() -> None:
    model = built("gpt-oss", "eager")
    given = inputs(model, "text")
    with torch.no_grad(), watch(model, outputs=True) as trace:
        model(**given)
    site = trace["decoder.1.self"]
    assert site.shape == (2, 6, 7, 8)
    assert_close(site.weights().sum(-1), torch.ones(6, 7), 1e-5)
    assert trace.labels(site.keys)[0] == "(sink)" and site.queries == "tokens"
    assert site.difference_from_output() < 1e-5


SPARSE = Architecture(
    "DeepseekV32Config",
    {**ARCHITECTURES["deepseek-v3"].fields, "index_topk": 3, "index_n_heads": 2,
     "index_head_dim": 6},
    "DeepseekV32ForCausalLM",
)  # fmt: skip
SUNK = Architecture("GraniteSWAConfig", {**DECODER, **LAYERS}, "GraniteSWAForCausalLM")
TWICE = Architecture("DiffLlamaConfig", DECODER, "DiffLlamaForCausalLM")


@pytest.mark.parametrize("name", ["sparse-sdpa", "sparse-eager", "sunk-eager"])
def test_what_passes_is_what_was_computed(name: str) -> None:
    """Keys chosen by an indexer, which asks implementations for their names, and sinks that a model
    applies after its softmax: here the model's outputs are the judge."""
    plan = SPARSE if name.startswith("sparse") else SUNK
    model = built(plan, name.partition("-")[2])
    tokens = torch.randint(3, V, (2, 7))
    options = {"max_new_tokens": 5, "min_new_tokens": 5}
    plain = model.generate(tokens, **options)
    with watch(model, outputs=True) as trace:
        assert torch.equal(model.generate(tokens, **options), plain)
    assert len(trace.runs) == 1 and len(trace) == 2
    for site in trace:
        assert site.shape == (2, 6, 11, 11 + (plan is SUNK))
        assert site.difference_from_output() < 1e-5


def test_attention_that_is_called_twice_has_two_sites() -> None:
    model, tokens = built(TWICE, "sdpa"), torch.randint(3, V, (2, 7))
    with watch(model, outputs=True) as trace, torch.no_grad():
        model(tokens)
    layers = ("decoder.0.self", "decoder.1.self")
    assert trace.names == [name for layer in layers for name in (layer, f"{layer}.part2")]
    assert not trace.run.refusals
    assert max(site.difference_from_output() for site in trace) < TOLERANCE


def test_pictures_in_texts() -> None:
    """Two towers: the picture is seen once, the text grows."""
    config = transformers.LlavaConfig(
        vision_config={**VISION, "model_type": "clip_vision_model"},
        text_config={**DECODER, "model_type": "llama"},
        image_token_id=36,
        vision_feature_layer=-1,
    )
    config._attn_implementation = "sdpa"
    model = transformers.LlavaForConditionalGeneration(config).eval()
    tokens = torch.tensor([[3, 36, 36, 36, 36, 5]])
    given = {"input_ids": tokens, "pixel_values": torch.randn(1, 3, 8, 8)}
    options = {"max_new_tokens": 4, "min_new_tokens": 4}
    plain = model.generate(**given, **options)
    with watch(model, outputs=True) as trace:
        assert torch.equal(model.generate(**given, **options), plain)
    assert trace.names == ["vision.0.self", "vision.1.self", "decoder.0.self", "decoder.1.self"]
    assert trace["vision.1.self"].shape == (1, 3, 5, 5)
    assert trace["decoder.1.self"].shape == (1, 6, 9, 9)
    assert all(site.difference_from_output() < 1e-5 and run_fits(site, trace) for site in trace)


def test_traces_can_be_saved(tmp_path: Any) -> None:
    for name in ("gpt-oss", "t5", "clip"):
        model = built(name, "eager")
        given = inputs(model, ARCHITECTURES[name].reads)
        with torch.no_grad(), watch(model) as trace:
            model(**given)
        trace.save(tmp_path / "a.trace")
        loaded = Trace.load(tmp_path / "a.trace")
        assert loaded.names == trace.names
        assert loaded.model["library"] == "transformers"
        for ours, theirs in zip(loaded, trace, strict=True):
            assert_same(ours.q, theirs.q)  # weights are rounded as the layout in memory has it
            assert_close(ours.weights(sequence=1), theirs.weights(sequence=1), 1e-5)
            assert (ours.queries, ours.keys) == (theirs.queries, theirs.keys)


def fast_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    pieces = ["<s>", "<pad>", "</s>", "Ġthe", "Ġcat", "ä", "½", "ł"]
    backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel()
    backend.decoder = decoders.ByteLevel()
    backend.enable_padding()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", pad_token="<pad>", eos_token="</s>"
    )


def test_labels_come_from_the_tokenizer() -> None:
    tokenizer = fast_tokenizer()
    model = tiny("gpt2")
    with watch(model, tokenizer) as trace, torch.no_grad():
        model(torch.tensor([[0, 3, 4, 5, 6, 7]]))
    assert trace.labels() == ["<s>", "␣the", "␣cat", "你", "…", "…"]
    assert tokenizer.backend_tokenizer.padding is not None  # nothing of its owner's was changed

    class Slow:
        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [f"▁{i}" for i in ids]

    class Processor:
        tokenizer = Slow()

    assert label_tokens(Processor(), [3, 4]) == ["␣3", "␣4"]
    assert label_tokens(gf_tokenizer(), [1, 0]) == ["cat", "the"]


def gf_tokenizer() -> Any:
    from tokenizers import Tokenizer, models

    from glassformer.text.tokenizer import JsonTokenizer

    return JsonTokenizer(Tokenizer(models.WordLevel({"the": 0, "cat": 1}, unk_token="the")))


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_options_that_attention_does_not_read_are_let_through(implementation: str) -> None:
    """Models hand what they are given down to all of their parts."""
    model, tokens = built("llama", implementation), torch.randint(3, V, (1, 5))
    given = {"vision_feature_select_strategy": "full", "pixel_values": torch.zeros(1), "mystery": 1}
    with watch(model, outputs=True) as trace, torch.no_grad():
        model(tokens, labels=tokens, **given)
    assert not trace.run.refusals
    assert all(site.difference_from_output() < 1e-5 for site in trace)


def test_options_that_attention_reads_are_known_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = modeling_llama.eager_attention_forward

    def tempered(module: Any, *args: Any, mystery: float = 1.0, **options: Any) -> Any:
        return usual(module, *args, **{**options, "scaling": options["scaling"] * mystery})

    model, tokens = built("llama", "eager").train(), torch.randint(3, V, (1, 5))
    model.model.layers[1].self_attn.attention_dropout = 0.1  # what is thinned cannot be compared
    monkeypatch.setattr(modeling_llama, "eager_attention_forward", tempered)
    with watch(model) as trace, torch.no_grad():
        model(tokens, mystery=3.0)
    with pytest.raises(TraceError, match=r"decoder.1.self could not .* passes mystery to its"):
        trace["decoder.1.self"]
    with pytest.raises(TraceError, match=r"decoder.0.self could not .* something else with q, k"):
        trace["decoder.0.self"]
    with watch(model) as trace, torch.no_grad():
        model(tokens, mystery=1.0)
    assert trace.names == ["decoder.0.self"]


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed:UserWarning")  # of CPUs without bfloat16
@pytest.mark.parametrize("name", ["qwen3", "llama", "gpt-oss", "t5"])
def test_autocast_rounds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of one kind, arithmetic of another: that is rounding, and no reason to refuse.

    What is more than rounding is refused as always.
    """
    model = built(name, "eager")
    for part in model.parameters():  # sharp attention: rounded scores show
        part.data.mul_(8.0)
    given = inputs(model, "text")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        plain = model(**given)
        with watch(model, outputs=True) as trace:
            assert same(model(**given), plain)
        assert not trace.run.refusals and len(trace) > 1
        if name == "llama":
            sharpen_eager_attention(monkeypatch, by=-1.0)
            with watch(model) as trace:
                model(**given)
            assert set(trace.run.refusals) == {"decoder.0.self", "decoder.1.self"}


def sharpen_eager_attention(monkeypatch: pytest.MonkeyPatch, by: float = 1.5) -> None:
    usual = modeling_llama.eager_attention_forward

    def sharpened(module: Any, query: torch.Tensor, *args: Any, **options: Any) -> Any:
        return usual(module, by * query, *args, **options)

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", sharpened)


def test_eager_attention_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = built("llama", "eager"), torch.randint(3, V, (1, 5))
    sharpen_eager_attention(monkeypatch)
    with watch(model) as trace, torch.no_grad():
        model(tokens)
    with pytest.raises(TraceError, match=r"its own eager attention does something else .* row of"):
        trace["decoder.1.self"]


def test_a_branch_around_the_interface_is_reported() -> None:
    """GPT-2 asks for "eager" by its name; the answer must be the same, or outputs would change."""
    config = transformers.GPT2Config(
        n_embd=12, n_layer=2, n_head=3, vocab_size=V, reorder_and_upcast_attn=True
    )
    config._attn_implementation = "eager"
    model, tokens = transformers.GPT2LMHeadModel(config).eval(), torch.randint(3, V, (1, 5))
    with torch.no_grad():
        plain = model(tokens)
        warned = pytest.warns(RecordingWarning, match=r"it ran 1 time\(s\), but no att")
        with warned as shown, watch(model) as trace:
            seen = model(tokens)
    assert same(seen, plain) and len(shown) == 1
    with pytest.raises(TraceError, match=r"decoder.0.self could not be .* but no attention went"):
        trace["decoder.0.self"]


@pytest.mark.plain
def test_refusals() -> None:
    llama = tiny("llama")
    with (
        pytest.raises(TraceError, match=r"nn.MultiheadAttention; Linear is none of these. Use rec"),
        watch(torch.nn.Linear(2, 2)),
    ):
        pass
    llama.config._attn_implementation_internal = "flash_attention_2"
    with (
        pytest.raises(TraceError, match=r"eager and sdpa; this model uses flash_attention_2. Use"),
        watch(llama),
    ):
        pass
    model = tiny("gpt2")
    with (
        torch.no_grad(),
        pytest.warns(RecordingWarning, match=r"no attention of layers \[7\] went through"),
        watch(model, layers=[7]),
    ):
        model(torch.tensor([[3, 4]]))
    with watch(model) as trace:
        pass
    assert not trace.runs
    assert max(LENGTHS) + NEW < 24


@pytest.mark.plain
def test_steps_that_cannot_be_joined() -> None:
    step = Step(
        q=torch.randn(1, 1, 1, 2),
        k=torch.randn(1, 1, 5, 2),
        v=torch.randn(1, 1, 5, 2),
        rule=MaskRule(L=1, S=5),
        stop=3,
    )
    with pytest.raises(TraceError, match=r"must be hidden; of 5, some behind the first 3 are open"):
        step.drop_unwritten()
