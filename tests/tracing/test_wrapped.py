"""Models inside of something: compiled, copied, adapted, or of PyTorch's and our own making."""

import copy
import gc
import io
import pickle
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from closeness import assert_close
from glassformer.errors import RecordingWarning, TraceError
from glassformer.tracing import compilation, patches, watch
from letter_models import letter_model
from tiny_models import tiny
from tracing.watched_architectures import same

TOKENS = torch.tensor([[3, 4, 5, 6]])


def whole(model: Any) -> Any:
    return torch.compile(model, backend="eager")


def in_place(model: Any) -> Any:
    model.compile(backend="eager")
    return model


def one_layer(model: Any) -> Any:
    model.model.layers[0].compile(backend="eager")
    return model


def its_forward(model: Any) -> Any:
    model.forward = torch.compile(model.forward, backend="eager")
    return model


def forward_of_attention(model: Any) -> Any:
    part = model.model.layers[1].self_attn
    part.forward = torch.compile(part.forward, backend="eager")
    return model


def one_wrapped_layer(model: Any) -> Any:
    model.model.layers[1] = torch.compile(model.model.layers[1], backend="eager")
    return model


@pytest.mark.plain
@pytest.mark.parametrize(
    "compiled",
    [whole, in_place, one_layer, its_forward, forward_of_attention, one_wrapped_layer],
)
def test_compiled_models_are_watched_uncompiled(compiled: Callable[[Any], Any]) -> None:
    """As the model would compute without torch.compile, said once, and compiled again behind."""
    torch.compiler.reset()
    model = tiny("llama")
    with torch.no_grad():
        plain = model(TOKENS)
        model = compiled(model)
        model(TOKENS)
        own = [(m, vars(m).get("forward")) for m in model.modules()]
        with (
            pytest.warns(RecordingWarning, match=r"compiled, but run uncompiled") as shown,
            watch(model, outputs=True) as trace,
        ):
            assert same(model(TOKENS), plain)
    assert len(shown) == 1 and "uncompiled" in trace.model["note"]
    assert trace.names == ["decoder.0.self", "decoder.1.self"] and not trace.run.refusals
    assert all(site.difference_from_output() < 1e-5 for site in trace)
    assert [(m, vars(m).get("forward")) for m in model.modules()] == own
    assert not compilation._switches and not patches._replaced
    before = torch._dynamo.utils.counters["frames"]["total"]
    torch.compiler.reset()
    with torch.no_grad():
        model(TOKENS)
    assert torch._dynamo.utils.counters["frames"]["total"] > before  # it compiles again


@pytest.mark.plain
def test_compiled_modules_of_ours_and_of_torch() -> None:
    torch.compiler.reset()
    model, tokens = letter_model("decoder"), torch.tensor([[4, 5, 6]])
    with torch.no_grad():
        plain = model(tokens)
        model.compile(backend="eager")
        with pytest.warns(RecordingWarning, match="Decoder compiled"), watch(model) as trace:
            assert same(model(tokens), plain)
        with pytest.warns(RecordingWarning, match="compiled"), watch(whole(model)) as again:
            model(tokens)
    assert trace.names == again.names == ["decoder.0.self", "decoder.1.self"]
    part, x = nn.MultiheadAttention(12, 3, batch_first=True).eval(), torch.randn(2, 5, 12)
    _, weights = part(x, x, x, average_attn_weights=False)
    with pytest.warns(RecordingWarning), watch(whole(part)) as trace:
        part(x, x, x)
    assert_close(trace["attention"].weights(), weights[0].detach(), 1e-6)


CONTEXTS = {
    "foreign": (lambda: tiny("llama"), watch, TOKENS),
    "ours": (lambda: letter_model("decoder"), watch, TOKENS),
    "torch": (
        lambda: nn.TransformerEncoderLayer(12, 3, 16, batch_first=True).eval(),
        watch,
        torch.randn(1, 4, 12),
    ),
}


def pickled(model: nn.Module) -> Any:
    return pickle.loads(pickle.dumps(model))


def saved(model: nn.Module) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled, saved])
@pytest.mark.parametrize("kind", CONTEXTS)
def test_copies_made_meanwhile_keep_nothing(kind: str, copied: Callable[[Any], Any]) -> None:
    """They compute with their own weights, inside of the context and behind it."""
    make, context, given = CONTEXTS[kind]
    model = make()
    if kind == "ours":
        model.tokenizer = None  # which cannot be pickled
    before = [sorted(vars(part)) for part in model.modules()]
    with torch.no_grad():
        with context(model) as trace:
            plain = model(given)
            twin = copied(model)
            assert same(twin(given), plain)
            for part in twin.parameters():
                part.zero_()
            assert not same(twin(given), plain)
            assert same(model(given), plain)
        seen = len(trace.runs)
        twin(given)
    assert seen == len(trace.runs) == 2
    assert [sorted(vars(part)) for part in twin.modules()] == before
    assert not any(p._forward_hooks or p._forward_pre_hooks for p in twin.modules())
    if kind == "foreign":
        assert type(twin.config._attn_implementation_internal) is str


def test_a_model_saved_meanwhile_is_the_same(tmp_path: Path) -> None:
    model = tiny("llama")
    model.save_pretrained(tmp_path / "before")
    with watch(model):
        model.save_pretrained(tmp_path / "inside")
    for name in ("config.json", "generation_config.json"):
        assert (tmp_path / "inside" / name).read_text() == (tmp_path / "before" / name).read_text()


def test_a_method_that_an_object_has_of_its_own_is_put_back() -> None:
    """As accelerate sets it; copies have it too, and not ours."""
    model = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True).eval()
    x = torch.randn(1, 4, 12)
    usual, calls = model.forward, []

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return usual(*args, **options)

    model.forward = counted
    with watch(model) as trace, torch.no_grad():
        model(x)
        twin = copy.deepcopy(model)
    assert vars(model)["forward"] is counted and len(calls) == 1
    assert vars(twin)["forward"] is counted and trace.names == ["self_attn"]


class Wrapped(nn.Module):
    """A model inside of a module of one's own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.inner(tokens)[0] * 2


def test_the_model_inside_is_watched() -> None:
    for inner in (tiny("llama"), letter_model("decoder")):
        model = Wrapped(inner)
        with torch.no_grad():
            plain = model(TOKENS)
            with watch(model) as trace:
                assert torch.equal(model(TOKENS), plain)
        assert trace.names == ["decoder.0.self", "decoder.1.self"]
    with pytest.raises(TraceError, match=r"watch takes one model; ModuleList holds 2: Bert.*, Ll"):
        watch(nn.ModuleList([tiny("llama"), tiny("bert")])).__enter__()


def test_adapted_models_are_watched_at_their_base() -> None:
    peft = pytest.importorskip("peft", reason="needs the package peft")
    lora = peft.LoraConfig(target_modules=["q_proj", "v_proj"], r=2, init_lora_weights=False)
    model = peft.get_peft_model(tiny("llama"), lora).eval()
    options = {"max_new_tokens": 3, "min_new_tokens": 3}
    plain = model.generate(input_ids=TOKENS, **options)
    with watch(model, outputs=True) as trace:
        assert torch.equal(model.generate(input_ids=TOKENS, **options), plain)
    assert trace.names == ["decoder.0.self", "decoder.1.self"]
    assert all(site.difference_from_output() < 1e-5 for site in trace)
    prompts = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)
    model = peft.get_peft_model(tiny("llama"), prompts).eval()
    with torch.no_grad():
        plain = model(input_ids=TOKENS)
        with watch(model, outputs=True) as trace:
            assert same(model(input_ids=TOKENS), plain)
    assert trace["decoder.1.self"].shape == (1, 6, 7, 7)
    assert trace.labels() == ["(embedding)"] * 7


def torch_modules() -> Iterator[tuple[nn.Module, tuple, int]]:
    x, y = torch.randn(2, 5, 12), torch.randn(2, 4, 12)
    yield nn.MultiheadAttention(12, 3, batch_first=True), (x, x, x), 1
    layer = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True)
    yield nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (x,), 2
    yield nn.Transformer(12, 2, 1, 2, 16, batch_first=True), (x, y), 5


def test_watch_takes_modules_of_torch() -> None:
    for model, given, n_sites in torch_modules():
        model.eval()
        with torch.no_grad():
            plain = model(*given)
            with watch(model) as trace:
                assert same(model(*given), plain)
        assert len(trace) == n_sites and not trace.run.refusals
    with watch(model, layers=[1]) as trace, torch.no_grad():
        model(*given)
    assert trace.names == ["decoder.layers.1.self_attn", "decoder.layers.1.multihead_attn"]
    with pytest.raises(TraceError, match=r"neither reads tokens nor shows .* Watch it without"):
        watch(model, outputs=True).__enter__()


def test_watch_takes_our_models() -> None:
    model = letter_model("decoder")
    with watch(model, outputs=True) as ours, watch(model) as same_ones, torch.no_grad():
        model(TOKENS)
    assert ours.names == same_ones.names and ours.labels() == same_ones.labels()
    assert all(site.difference_from_output() < 1e-5 for site in ours)


def test_a_trace_does_not_keep_its_model() -> None:
    for make in (lambda: tiny("llama"), lambda: letter_model("decoder")):
        model = make()
        with watch(model) as trace, torch.no_grad():
            model(TOKENS)
        alive = weakref.ref(model)
        del model
        gc.collect()
        assert alive() is None and trace["decoder.1.self"].shape[2:] == (4, 4)


def without_attention() -> Iterator[Any]:
    small = {"hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 11}
    yield transformers.MambaModel(transformers.MambaConfig(**small, state_size=2))
    yield transformers.FNetModel(transformers.FNetConfig(**small, intermediate_size=8))
    sizes = {"embedding_size": 4, "hidden_sizes": [4, 4], "depths": [1, 1]}
    yield transformers.ResNetModel(transformers.ResNetConfig(**sizes, layer_type="basic"))


@pytest.mark.plain
def test_models_without_attention_are_named() -> None:
    for model in without_attention():
        name = type(model).__name__
        with pytest.raises(TraceError, match=rf"^{name} has no attention: there is nothing to wat"):
            watch(model).__enter__()
    with pytest.raises(TraceError, match=r"watch takes a model, a torch.nn.Module; got str"):
        watch("llama").__enter__()
    with pytest.raises(TraceError, match='requests="asking" needs an engine; a model has no'):
        watch(torch.nn.Linear(2, 2), requests="asking").__enter__()
