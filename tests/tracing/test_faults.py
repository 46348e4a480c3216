"""Whatever fails while recording, the model goes on: every function of the recorder is broken."""

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import _get_current_function_mode_stack

from glassformer.errors import RecordingWarning, TraceError
from glassformer.functional.statistics import kernel_lse
from glassformer.generation import beam_search
from glassformer.tracing import compilation, patches, watch
from glassformer.tracing.sources import transformers_interface
from letter_models import letter_model
from tiny_models import tiny
from tracing.watched_architectures import built, same

pytestmark = pytest.mark.plain  # the type hook wraps every function that is broken here

package = importlib.import_module("glassformer.tracing")
MODULES = {
    each.name.removeprefix("glassformer.tracing."): importlib.import_module(each.name)
    for each in pkgutil.walk_packages(package.__path__, "glassformer.tracing.")
}
RECORDERS = [
    "compilation",
    "layout",
    "beams",
    "mask_rules",
    "operand_store",
    "recorded_run",
    "recorder",
    "selection",
    "site_assembly",
    "site_names",
    "site_steps",
    "text_labels",
    "sources.custom_attention",
    "sources.operand_recovery",
    "sources.operation_graph",
    "sources.ours",
    "sources.torch_modules",
    "sources.transformers",
    "sources.transformers_call",
    "sources.transformers_interface",
    "sources.transformers_layout",
]
BEFORE = {  # a user's wishes are checked before anything runs, and raise; or the context is made
    "selection.Selection.__init__", "selection.Selection.__post_init__",
    "operand_store.OperandStore.__init__", "operand_store.parse_bytes",
    "recorder.Recorder.__init__",
    "sources.transformers._Calls.__init__", "sources.transformers.TransformersSource.__init__",
    "sources.ours.OurSource.__init__", "sources.torch_modules.TorchSource.__init__",
    "site_names.sounds_like_attention", "sources.transformers_interface._methods",
}  # fmt: skip
NET = {  # what hands a call to the model's own function
    "sources.transformers_interface._ReportingFunction.__init__",
    "sources.transformers_interface._ReportingFunction.__call__",
    "sources.ours.OurSource._stop_listening",
    "sources.operation_graph.OperationGraph.__torch_dispatch__",
    "operand_store.OperandStore._forget",  # called by the garbage collector, which raises nothing
}  # fmt: skip


class Slow:
    """A tokenizer."""

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"▁{i}" for i in ids]


def beams() -> tuple[Any, ...]:
    given = {"input_ids": torch.tensor([[3, 4, 5], [6, 7, 1]])}
    given["attention_mask"] = torch.tensor([[1, 1, 1], [1, 1, 0]])
    options = {"num_beams": 2, "max_new_tokens": 4, "min_new_tokens": 4}
    return tiny("bart"), watch, {}, lambda model: model.generate(**given, **options)


def cropped() -> tuple[Any, ...]:
    prompt = torch.tensor([[3, 4, 5, 3, 4, 5, 3]])
    options = {"max_new_tokens": 6, "min_new_tokens": 6, "prompt_lookup_num_tokens": 3}
    kept = {"heads": [0, 3], "rows": [1, 4, 7], "budget": 0, "outputs": True, "tokenizer": Slow()}
    return tiny("llama"), watch, kept, lambda model: model.generate(prompt, **options)


def embedded() -> tuple[Any, ...]:
    model = built("gpt-oss", "eager")
    given = model.get_input_embeddings()(torch.randint(3, 37, (1, 6))).detach()
    options = {"max_new_tokens": 4, "cache_implementation": "static"}
    return model, watch, {}, lambda model: model.generate(inputs_embeds=given, **options)


def by_hand() -> tuple[Any, ...]:
    """Attention without the interface, with a bias and a cache."""
    prompt, options = torch.randint(3, 37, (2, 5)), {"max_new_tokens": 3, "min_new_tokens": 3}
    model = built("bloom", "eager")
    return model, watch, {"outputs": True}, lambda model: model.generate(prompt, **options)


def ours() -> tuple[Any, ...]:
    kept = {"budget": "1 KiB", "heads": [1], "rows": slice(0, 3), "outputs": True}

    def translate(model: Any) -> Any:
        found = beam_search(model, [[4, 5]], source=[[6, 7, 8]], max_new_tokens=4, beams=2)
        return torch.tensor([text.tokens for text in found[0]])

    return letter_model("encoder_decoder"), watch, kept, translate


def torch_encoder() -> tuple[Any, ...]:
    x, hidden = torch.randn(2, 5, 12), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    layer = nn.TransformerEncoderLayer(12, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval()
    return model, watch, {}, lambda model: model(x, src_key_padding_mask=hidden)


def torch_attention() -> tuple[Any, ...]:
    x, mask = torch.randn(2, 5, 12), torch.randn(5, 5)
    model, kept = nn.MultiheadAttention(12, 3, batch_first=True).eval(), {"rows": [1, 3]}
    return model, watch, kept, lambda model: model(x, x, x, attn_mask=mask)[0]


SCENARIOS = (beams, cropped, embedded, by_hand, ours, torch_encoder, torch_attention)


def functions() -> Iterator[tuple[str, Any, str]]:
    """Every function and method of the recorders: how it is called, its owner, its name."""
    for short in RECORDERS:
        module = MODULES[short]
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value):
                yield f"{short}.{name}", module, name
            elif inspect.isclass(value):
                for inner, method in vars(value).items():
                    if inspect.isfunction(method) and method.__module__ == module.__name__:
                        yield f"{short}.{name}.{inner}", value, inner


def replaced(patch: pytest.MonkeyPatch, owner: Any, name: str, new: Callable) -> None:
    """Under all names that it has been imported by."""
    old = vars(owner)[name]
    patch.setattr(owner, name, new)
    for module in MODULES.values():
        if module is not owner and vars(module).get(name) is old:
            patch.setattr(module, name, new)


def used_by(scenario: Callable[[], tuple[Any, ...]]) -> set[str]:
    """The functions that a scenario calls, by counting."""
    model, context, kept, run = scenario()
    called: set[str] = set()

    def counted(name: str, old: Callable) -> Callable:
        def count(*args: Any, **options: Any) -> Any:
            called.add(name)
            return old(*args, **options)

        return count

    with pytest.MonkeyPatch.context() as patch:
        for name, owner, attribute in list(functions()):
            replaced(patch, owner, attribute, counted(name, vars(owner)[attribute]))
        with torch.no_grad(), context(model, **kept):
            run(model)
    return called - BEFORE - NET


class Injected(Exception):
    """A fault of ours."""


def broken(old: Callable, calls: int, failed: list[bool]) -> Callable:
    """A function that fails, after so many calls."""
    left = [calls]

    def fail(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            failed.append(True)
            raise Injected("a broken part")
        return old(*args, **options)

    return fail


def wrongs(
    scenario: Callable[[], tuple[Any, ...]], names: set[str], calls: int
) -> Iterator[tuple[str, str]]:
    """Each function broken by itself, and what is not as it must be then."""
    model, context, kept, run = scenario()
    with torch.no_grad():
        plain = run(model)
        with context(model, **kept) as whole:
            assert same(run(model), plain)
    before = state(model)
    for name, owner, attribute in list(functions()):
        if name not in names:
            continue
        transformers_interface.uses_interface.cache_clear()
        transformers_interface.parameters.cache_clear()
        out, trace, failed = None, None, []
        with warnings.catch_warnings(record=True) as shown, torch.no_grad():
            warnings.simplefilter("always")
            with pytest.MonkeyPatch.context() as patch:
                replaced(patch, owner, attribute, broken(vars(owner)[attribute], calls, failed))
                try:
                    with context(model, **kept) as trace:
                        out = run(model)
                except Exception as error:
                    yield name, f"raised {error!r}"
                    continue
        ours = [str(each.message) for each in shown if each.category is RecordingWarning]
        if not same(out, plain):
            yield name, "the output differs"
        listening = _get_current_function_mode_stack()
        if (
            listening
            or state(model) != before
            or patches._taps
            or patches._replaced
            or compilation._switches
        ):
            yield name, "the model is not as it was"
        refusals = [why for each in trace.recorded for why in each.refusals.values()]
        if not failed and calls:
            continue  # it is not called so often
        if len(ours) != 1 or "a broken part" not in ours[0]:
            yield name, f"{len(ours)} warnings: {ours}"
        if not any("a broken part" in why for why in refusals):
            yield name, f"nothing is refused for it: {refusals}"
        for site in trace.recorded[-1].sites.values():
            expected = whole.run.sites[site.name]
            if site.shape == expected.shape and not torch.equal(site.weights(), expected.weights()):
                yield name, f"{site.name} is shown wrongly"


def state(model: nn.Module) -> Any:
    """All that recording may touch."""
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return hooks, [sorted(vars(m)) for m in model.modules()], str(getattr(model, "config", ""))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")  # theirs
@pytest.mark.parametrize("calls", [0, 2])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_fault_costs_an_output(scenario: Callable[[], tuple[Any, ...]], calls: int) -> None:
    names = used_by(scenario)
    assert len(names) > 15
    assert dict(wrongs(scenario, names, calls)) == {}


@pytest.mark.parametrize("name", ["_Call.of", "_is_trusted", "_Call.attend"])
def test_a_fault_while_listening_to_kernels_leaves_the_site(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kernel says besides its answer is found anew where it is missing."""
    q, k, v = torch.randn(3, 1, 2, 1024, 8).unbind(0)
    expected = nn.functional.scaled_dot_product_attention(q, k, v)
    with kernel_lse.KernelLse() as heard:
        nn.functional.scaled_dot_product_attention(q, k, v)
    assert heard.lse is not None
    owner, _, attribute = name.rpartition(".")
    owner = getattr(kernel_lse, owner) if owner else kernel_lse
    monkeypatch.setattr(owner, attribute, broken(getattr(owner, attribute), 0, []))
    with kernel_lse.KernelLse() as heard:
        assert torch.equal(nn.functional.scaled_dot_product_attention(q, k, v), expected)
    assert heard.lse is None


def test_errors_of_the_model_and_of_the_user_stay_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside a fault of ours, whose warning may be an error by a filter."""
    model, tokens = tiny("llama"), torch.tensor([[3, 4, 5]])
    replaced(
        monkeypatch, MODULES["sources.transformers_call"], "as_step", broken(lambda: None, 0, [])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(IndexError, match="out of range"), watch(model):
            model(tokens)
            model(torch.tensor([[37]]))
        with pytest.raises(KeyboardInterrupt), watch(model):
            model(tokens)
            raise KeyboardInterrupt
        warned = pytest.raises(RecordingWarning, match=r"could not record decoder.0.self, decoder")
        with warned, watch(model) as trace:
            model(tokens)
    with pytest.raises(TraceError, match=r"decoder.0.self could not .* Injected: a broken part"):
        trace["decoder.0.self"]
    assert not patches._taps and not patches._replaced
