"""Generation in its less common forms: embeddings, guidance, a model that generates inside one."""

import pytest
import torch
import transformers

import glassformer as gf
from closeness import assert_close
from glassformer.tracing import Trace, watch
from letter_models import letter_model
from tiny_models import tiny

V = 37
NEW = {"max_new_tokens": 4, "min_new_tokens": 4}


def assert_alike(ours: Trace, theirs: Trace) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        for sequence in range(a.shape[0]):
            assert_close(a.weights(sequence=sequence), b.weights(sequence=sequence), 1e-5)


class Slow:
    """A tokenizer."""

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"▁{i}" for i in ids]


@pytest.mark.parametrize("reads", [True, False])
def test_embeddings_are_a_text_without_tokens(reads: bool) -> None:
    model, prompt = tiny("llama"), torch.tensor([[3, 4, 5], [6, 7, 8]])
    embedded = model.get_input_embeddings()(prompt).detach()
    plain = model.generate(inputs_embeds=embedded, **NEW)
    with watch(model, Slow() if reads else None, outputs=True) as trace:
        assert torch.equal(model.generate(inputs_embeds=embedded, **NEW), plain)
    assert len(trace.runs) == 1 and not trace.run.refusals
    written = [f"␣{t}" if reads else str(t) for t in plain[1, :3].tolist()]
    assert trace.labels(sequence=1) == ["(embedding)"] * 3 + written
    with watch(model) as whole, torch.no_grad():
        model(torch.cat([prompt, plain[:, :3]], dim=1))
    assert_alike(trace, whole)


def test_embeddings_of_an_encoder_and_beams() -> None:
    model, source = tiny("bart"), torch.tensor([[3, 4, 5], [6, 7, 8]])
    embedded = model.get_input_embeddings()(source).detach()
    options = {**NEW, "num_beams": 2}
    plain = model.generate(inputs_embeds=embedded, **options)
    with watch(model, outputs=True) as trace:
        assert torch.equal(model.generate(inputs_embeds=embedded, **options), plain)
    assert len(trace.runs) == 1 and not trace.run.refusals
    assert trace.labels("source") == ["(embedding)"] * 3
    assert trace["decoder.1.cross"].shape == (4, 3, 4, 3)
    assert all(site.difference_from_output() < 1e-5 for site in trace)


def test_guidance_is_two_runs() -> None:
    """Passes with and without the prompt alternate, each with a cache of its own."""
    model = tiny("llama")
    prompt, without = torch.randint(3, V, (2, 5)), torch.randint(3, V, (2, 3))
    options = {**NEW, "guidance_scale": 1.5, "negative_prompt_ids": without}
    plain = model.generate(prompt, **options)
    with watch(model) as trace:
        assert torch.equal(model.generate(prompt, **options), plain)
    texts = [run.texts["tokens"].tokens for run in trace.runs]
    assert [text.shape for text in texts] == [(2, 8), (2, 6)]
    assert torch.equal(texts[0], plain[:, :8])
    assert torch.equal(texts[1], torch.cat([without, plain[:, 5:8]], dim=1))
    for i, text in enumerate(texts):
        with watch(model) as whole, torch.no_grad():
            model(text)
        assert_alike(trace.only(i), whole)


def test_our_models_alternate_between_caches_too() -> None:
    model = letter_model("decoder")
    texts = [torch.tensor([[4, 5, 6, 7]]), torch.tensor([[8, 9, 10, 11]])]
    with torch.no_grad():
        caches = [model.new_cache() for _ in texts]
        with gf.watch(model) as trace:
            for i in range(4):
                for text, cache in zip(texts, caches, strict=True):
                    model(text[:, i : i + 1], cache=cache)
    found = [run.texts["tokens"].tokens.tolist() for run in trace.runs]
    assert found == [text.tolist() for text in texts]
    for i, text in enumerate(texts):
        with gf.watch(model) as whole, torch.no_grad():
            model(text)
        assert_alike(trace.only(i), whole)


@pytest.mark.parametrize("fixed", [False, True])
def test_our_models_with_a_cropped_cache(fixed: bool) -> None:
    """What was tried and thrown away is not part of the text."""
    model = letter_model("decoder")
    text = torch.tensor([[4, 5, 6, 7, 8, 9]])
    with torch.no_grad():
        cache = model.new_cache(batch=1, max_len=9) if fixed else model.new_cache()
        with gf.watch(model) as trace:
            model(text[:, :3], cache=cache)
            model(torch.tensor([[10, 11, 12]]), cache=cache)
            cache.crop(2)
            model(text[:, 2:5], cache=cache)
            model(text[:, 5:], cache=cache)
        with gf.watch(model) as whole:
            model(text)
    assert len(trace.runs) == 1 and trace.labels() == whole.labels()
    assert_alike(trace, whole)


SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 4,
    "ffn_dim": 32,
    "vocab_size": V,
    "audio_vocab_size": 32,
    "num_codebooks": 4,
    "max_position_embeddings": 64,
    "sliding_window": 32,
    "hidden_act": "silu",
}
HEARING = {
    "model_type": "mimi",
    "hidden_size": 16,
    "num_filters": 8,
    "num_residual_layers": 1,
    "upsampling_ratios": [8, 4],
    "codebook_size": 32,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "upsample_groups": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "sliding_window": 4,
}


def test_a_model_that_generates_inside_of_another() -> None:
    """Moshi: after each token of the text, its depth decoder writes the sound of that moment."""
    config = transformers.MoshiConfig(
        **SMALL, depth_decoder_config={**SMALL, "input_size": 16}, audio_encoder_config=HEARING
    )
    config._attn_implementation = "sdpa"
    model = transformers.MoshiForConditionalGeneration(config).eval()
    codes = torch.randint(0, 31, (1, 4, 5))
    given = {
        "input_ids": torch.randint(3, V, (1, 5)),
        "moshi_audio_codes": codes,
        "user_audio_codes": codes,
    }
    labels = {"text_labels": given["input_ids"], "audio_labels": codes}
    depth = [f"depth_decoder.layers.{i}.self_attn" for i in range(2)]
    with torch.no_grad(), watch(model, outputs=True) as trace:
        model(**given, **labels)
    assert trace.names[2:] == depth and not trace.run.refusals
    assert all(site.difference_from_output() < 1e-5 for site in trace)
    options = {"do_sample": False, "concat_unconditional_inputs": False}
    options |= {"return_audio_waveforms": False, "max_new_tokens": 4}
    plain = model.generate(**given, **options, depth_decoder_do_sample=False)
    with watch(model, outputs=True) as trace:
        out = model.generate(**given, **options, depth_decoder_do_sample=False)
    assert torch.equal(out, plain)
    first, *others = trace.runs
    assert first.sites["decoder.model.layers.1.self_attn"].shape[2] == 8
    assert len(others) == 3 and all(list(run.sites) == depth for run in others)
    sites = [site for run in trace.runs for site in run.sites.values()]
    assert all(site.difference_from_output() < 1e-5 for site in sites)
    assert not any(run.refusals for run in trace.runs)
