"""Changing a model: every intervention against the same change made by hand, with plain hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import InterventionError, TraceError
from glassformer.models.config import Norms
from letter_models import letter_model
from tracing.watched_architectures import built

C, H, D = 24, 6, 4  # of the tiny Llama: width, heads, width of a head


def llama() -> Any:
    torch.manual_seed(3)
    return built("llama", "sdpa")


def texts(n: int = 2, L: int = 7) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    a, b = torch.randint(3, 30, (2, n, L), generator=generator)
    return a, b


@contextmanager
def hooked(module: nn.Module, hook: Callable[..., Any], *, before: bool) -> Iterator[None]:
    add = module.register_forward_pre_hook if before else module.register_forward_hook
    handle = add(hook)
    try:
        yield
    finally:
        handle.remove()


def run(model: nn.Module, tokens: Tensor, change: Any = None, **options: Any) -> Tensor:
    with torch.no_grad():
        if change is None:
            return model(tokens).logits
        with gf.change(model, change, **options):
            return model(tokens).logits


def by_hand(model: Any, tokens: Tensor, layer: int, edit: Callable[[Tensor], Tensor]) -> Tensor:
    """The logits with the heads of a layer, (B, L, H, D), edited before the output matrix."""
    attention = model.model.layers[layer].self_attn

    def hook(_module: Any, args: tuple) -> tuple:
        z = args[0].unflatten(-1, (H, D)).clone()
        return (edit(z).flatten(-2),)

    with hooked(attention.o_proj, hook, before=True):
        return run(model, tokens)


def read_heads(model: Any, tokens: Tensor, layer: int) -> Tensor:
    found = []

    def keep(z: Tensor) -> Tensor:
        found.append(z.clone())
        return z

    by_hand(model, tokens, layer, keep)
    return found[0]


def test_heads_are_ablated_as_by_hand() -> None:
    model, (x, _) = llama(), texts()

    def zero(z: Tensor) -> Tensor:
        z[:, :, 1] = 0
        return z

    def mean(z: Tensor) -> Tensor:
        z[:, :, [0, 2]] = z[:, :, [0, 2]].mean(dim=(0, 1))
        return z

    def some(z: Tensor) -> Tensor:
        z[1, [2, 6], 1] = 0
        return z

    plain = run(model, x)
    for edit, change in (
        (zero, gf.Ablate("decoder.1.self", head=1)),
        (mean, gf.Ablate("decoder.1.self", head=[0, 2], how="mean")),
        (some, gf.Ablate("decoder.1.self", head=1, positions=[2, -1], sequences=1)),
    ):
        changed = run(model, x, change)
        assert_close(changed, by_hand(model, x, 1, edit), 1e-5)
        assert not torch.equal(changed, plain)
    assert torch.equal(run(model, x), plain)


def test_resampled_heads_are_those_of_other_positions() -> None:
    model, (x, _) = llama(), texts()
    z = read_heads(model, x, 1).flatten(0, 1)
    with (
        torch.no_grad(),
        gf.change(
            model, gf.Ablate("decoder.1.self", head=1, how="resample", seed=4), outputs=True
        ) as trace,
    ):
        model(x)
    out = trace["decoder.1.self"].out
    assert out is not None
    found = (out[:, 1].reshape(-1, 1, out.shape[-1]) == z[None, :, 1]).all(-1).any(-1)
    assert bool(found.all())
    again = run(model, x, gf.Ablate("decoder.1.self", head=1, how="resample", seed=4))
    other = run(model, x, gf.Ablate("decoder.1.self", head=1, how="resample", seed=5))
    assert not torch.equal(again, other)


def test_heads_and_means_come_from_another_trace() -> None:
    model, (x, y) = llama(), texts()
    with torch.no_grad(), gf.watch(model, outputs=True) as other:
        model(y)
    theirs = read_heads(model, y, 1)

    def patch(z: Tensor) -> Tensor:
        z[:, [1, 4], 2] = theirs[:, [1, 4], 2]
        return z

    def mean(z: Tensor) -> Tensor:
        z[:, :, 2] = theirs[:, :, 2].mean(dim=(0, 1))
        return z

    patched = run(model, x, gf.Patch("decoder.1.self", other, head=2, positions=[1, 4]))
    assert torch.equal(patched, by_hand(model, x, 1, patch))
    ablated = run(model, x, gf.Ablate("decoder.1.self", head=2, how="mean", of=other))
    assert_close(ablated, by_hand(model, x, 1, mean), 1e-5)


def test_heads_of_a_trace_without_outputs_are_derived() -> None:
    model, (x, y) = llama(), texts()
    with torch.no_grad(), gf.watch(model) as other:
        model(y)
    theirs = read_heads(model, y, 1)

    def patch(z: Tensor) -> Tensor:
        return theirs

    patched = run(model, x, gf.Patch("decoder.1.self", other, head=range(H)))
    assert_close(patched, by_hand(model, x, 1, patch), 1e-5)


def test_parts_and_borders_are_changed_as_by_hand() -> None:
    model, (x, y) = llama(), texts()
    with torch.no_grad(), gf.watch(model, residual=True) as other:
        model(y)
    mlp, block = model.model.layers[1].mlp, model.model.layers[1]
    v = torch.randn(C, generator=torch.Generator().manual_seed(1))

    def zero(_module: Any, _args: tuple, out: Tensor) -> Tensor:
        return torch.zeros_like(out)

    def half(_module: Any, _args: tuple, out: Tensor) -> Tensor:
        return torch.cat([out[:1], out[1:] * 0.5])

    def steer(_module: Any, _args: tuple, out: Tensor) -> Tensor:
        out = out.clone()
        out[:, 2:] += 3.0 * v
        return out

    def patch(_module: Any, _args: tuple, out: Tensor) -> Tensor:
        out = out.clone()
        out[:, 3] = other.residual().after("decoder.1.mlp")[:, 3]
        return out

    for module, hook, change in (
        (mlp, zero, gf.Ablate("decoder.1.mlp")),
        (mlp, half, gf.Scale("decoder.1.mlp", 0.5, sequences=[1])),
        (block, steer, gf.Steer("decoder.1.mlp", v, 3.0, positions=slice(2, None))),
        (block, patch, gf.Patch("decoder.1.mlp", other, positions=3, what="state")),
    ):
        with hooked(module, hook, before=False):
            expected = run(model, x)
        assert torch.equal(run(model, x, change), expected), str(change)


def test_a_patched_state_decides_everything_above() -> None:
    """At every border, of pre-norm and post-norm blocks, the state alone says what is written."""
    x, y = texts()
    for norms in (Norms(place="pre"), Norms(place="post")):
        model = letter_model("decoder", norms=norms)
        with torch.no_grad(), gf.watch(model, residual=True) as other:
            expected = model(y)
        for border in other.residual().borders:
            with torch.no_grad(), gf.change(model, gf.Patch(border, other, what="state")):
                assert torch.equal(model(x), expected), (norms.place, border)


def test_a_skipped_block_is_as_if_it_were_not_there() -> None:
    model, (x, _) = llama(), texts()
    changed = run(model, x, gf.Skip("decoder.1"))
    layers = list(model.model.layers)
    model.model.layers = nn.ModuleList([layers[0], *layers[2:]])
    with torch.no_grad():
        expected = model(x, use_cache=False).logits
    model.model.layers = nn.ModuleList(layers)
    assert torch.equal(changed, expected)


def attend(site: gf.tracing.Site, edit: Callable[[Tensor], Tensor] = lambda s: s) -> Tensor:
    """The output of a site by the definition, in float64, with its scores edited."""
    q, k, v = site.q.double(), site.k.double(), site.v.double()
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    L = q.shape[2]
    hidden = ~torch.ones(L, L, dtype=torch.bool).tril()
    return edit(q @ k.mT * D**-0.5).masked_fill(hidden, float("-inf")).softmax(-1) @ v


def test_weights_are_changed_as_the_definition_says() -> None:
    model, (x, y) = llama(), texts()
    with torch.no_grad(), gf.watch(model) as before, gf.watch(model) as plain:
        model(x)
    with torch.no_grad(), gf.watch(model) as other:
        model(y)
    site = plain["decoder.1.self"]
    assert before.names == plain.names

    def cut(scores: Tensor) -> Tensor:
        scores = scores.clone()
        scores[:, 2, 3:, [0, 1]] = float("-inf")
        return scores

    window = gf.Causal() & gf.Window(1)

    def narrow(scores: Tensor) -> Tensor:
        return scores.masked_fill(~window.dense(7, 7)[0, 0], float("-inf"))

    frozen = other["decoder.1.self"].weights(head=1).double()
    v = site.v.double().repeat_interleave(site.n_heads // site.v.shape[1], dim=1)
    expected_freeze = attend(site)
    expected_freeze[0, 1] = frozen @ v[0, 1]
    for change, expected in (
        (gf.Knockout("decoder.1.self", range(3, 7), [0, 1], head=2), attend(site, cut)),
        (gf.Swap("decoder.1.self", mask=window), attend(site, narrow)),
        (gf.Swap("decoder.1.self", scale=0.07), attend(site, lambda s: s / D**-0.5 * 0.07)),
        (gf.Swap("decoder.1.self", softcap=0.1), attend(site, lambda s: (s / 0.1).tanh() * 0.1)),
        (gf.Freeze("decoder.1.self", frozen.float(), head=1, sequences=0), expected_freeze),
    ):
        seen: list[Tensor] = []

        def keep(_module: Any, args: tuple, seen: list[Tensor] = seen) -> None:
            seen.append(args[0].unflatten(-1, (-1, D)).transpose(1, 2))

        with hooked(model.model.layers[1].self_attn.o_proj, keep, before=True):
            run(model, x, change)
        assert_close(seen[0], expected.float(), 1e-5, str(change))


def test_a_trace_shows_the_changed_weights() -> None:
    model, (x, _) = llama(), texts()
    with (
        torch.no_grad(),
        gf.change(model, gf.Knockout("decoder.1.self", queries=-1, keys=0, head=2)) as trace,
    ):
        model(x)
    weights = trace["decoder.1.self"].weights()
    assert weights[2, -1, 0] == 0 < weights[2, -2, 0] and weights[1, -1, 0] > 0
    assert trace.model["changes"] == "knockout(decoder.1.self, queries=-1, keys=0, head=2)"
    with torch.no_grad(), gf.change(model, gf.Freeze("decoder.1.self", trace)) as frozen:
        model(x)
    assert "its weights are those of freeze" in frozen.run.refusals["decoder.1.self"]


def test_without_rotation_queries_are_what_was_projected() -> None:
    model, (x, _) = llama(), texts()
    seen: list[Tensor] = []
    projection = model.model.layers[1].self_attn.q_proj
    with (
        hooked(projection, lambda _m, _a, out: seen.append(out), before=False),
        torch.no_grad(),
        gf.change(
            model, gf.Swap("decoder.1.self", positions="none", bias=gf.ALiBi.of_heads(H))
        ) as trace,
    ):
        model(x)
    assert torch.equal(trace["decoder.1.self"].q, seen[0].unflatten(-1, (-1, D)).transpose(1, 2))
    assert isinstance(trace["decoder.1.self"].bias, gf.ALiBi)
    gpt2 = built("gpt2", "sdpa")
    with pytest.raises(InterventionError, match="a site with rotary positions"):
        run(gpt2, x, gf.Swap("decoder.1.self", positions="none"))


@pytest.mark.parametrize(
    "change",
    [
        gf.Ablate("decoder.1.self", head=1),
        gf.Ablate("decoder.1.mlp"),
        gf.Steer("decoder.0.mlp", 4 * torch.ones(C)),
        gf.Knockout("decoder.1.self", keys=[0, 1]),
        gf.Knockout("decoder.1.self", queries=slice(4, None), keys=[2], head=1),
        gf.Scale("decoder.1.self", 3.0, positions=slice(6, None)),
        gf.Skip("decoder.0"),
    ],
    ids=str,
)
def test_generation_with_a_cache_is_as_without_one(change: Any) -> None:
    model, (x, _) = llama(), texts(n=1)
    model.generation_config.eos_token_id = None
    with gf.change(model, change) as trace:
        written = model.generate(x, max_new_tokens=6, do_sample=False, use_cache=True)
    tokens = x
    for _ in range(6):
        tokens = torch.cat([tokens, run(model, tokens, change)[:, -1:].argmax(-1)], dim=1)
    assert torch.equal(written, tokens)
    assert len(trace.runs) == 1 and not trace.run.refusals


def test_our_models_generate_under_interventions() -> None:
    model = gf.load("translator")
    plain = gf.translate(model, "The cat sat on the mat.", to="fr")
    cut = [gf.Ablate(f"decoder.{i}.cross") for i in (1, 2, 3)]
    with gf.change(model, cut):
        changed = gf.translate(model, "The cat sat on the mat.", to="fr")
    assert changed != plain == gf.translate(model, "The cat sat on the mat.", to="fr")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (gf.Ablate("encoder.1.self"), "The stacks of this model are decoder"),
        (gf.Ablate("decoder.9.self"), "decoder.0 … decoder.1; got 'decoder.9.self'"),
        (gf.Ablate("decoder.1.slef"), "has the parts decoder.1.self, decoder.1.mlp"),
        (gf.Ablate("decoder.1.mlp", head=1), "needs a site of attention, decoder.1.self"),
        (gf.Ablate("decoder.1.self", head=6), "Heads of decoder.1.self must be 0 … 5; got 6"),
        (gf.Steer("decoder.1.mlp", torch.ones(5)), "must have 24 numbers; got 5"),
        (gf.Ablate("decoder.1.self", sequences=2), "sequences must be 0 … 1; got 2"),
        (gf.Freeze("decoder.1.self", torch.eye(5)), "a row for each query; got 5 × 5"),
        (gf.Freeze("decoder.1.self", torch.rand(7, 5)), "each of 7 keys; got 5"),
        (gf.Skip("decoder.2"), "decoder.0 … decoder.1"),
    ],
    ids=str,
)
def test_bad_places_are_refused_and_the_model_is_restored(change: Any, said: str) -> None:
    model, (x, _) = llama(), texts()
    plain = run(model, x)
    with pytest.raises(InterventionError, match=said):
        run(model, x, change)
    assert torch.equal(run(model, x), plain)


def test_patches_of_other_lengths_and_models_are_refused() -> None:
    model, (x, _) = llama(), texts()
    with torch.no_grad(), gf.watch(model, residual=True) as short:
        model(x[:, :5])
    with pytest.raises(InterventionError, match=r"it has 5 and lacks 5.*one length"):
        run(model, x, gf.Patch("decoder.1.self", short, head=1))
    with pytest.raises(InterventionError, match=r"it has 5 and lacks 5"):
        run(model, x, gf.Patch("decoder.1.mlp", short))
    run(model, x, gf.Patch("decoder.1.mlp", short, positions=[0, 4]))
    gpt2 = built("gpt2", "sdpa")
    with torch.no_grad(), gf.watch(gpt2, residual=True) as other:
        gpt2(x)
    with pytest.raises(InterventionError, match="must be of the same model"):
        run(model, x, gf.Patch("decoder.1.self", other, head=1))
    with torch.no_grad(), gf.watch(model) as bare:
        model(x)
    with pytest.raises(TraceError, match="holds no residual stream"):
        run(model, x, gf.Patch("decoder.1.mlp", bare))


def test_a_mean_needs_all_positions() -> None:
    model, (x, _) = llama(), texts(n=1)
    model.generation_config.eos_token_id = None
    change = gf.Ablate("decoder.1.self", head=1, how="mean")
    with (
        pytest.raises(InterventionError, match="generation has one at a time"),
        gf.change(model, change),
    ):
        model.generate(x, max_new_tokens=3, do_sample=False)
    with torch.no_grad(), gf.watch(model) as trace:
        model(x)
    with gf.change(model, gf.Ablate("decoder.1.self", head=1, how="mean", of=trace)):
        model.generate(x, max_new_tokens=3, do_sample=False)


def test_the_models_own_error_is_raised_and_the_model_restored() -> None:
    model, (x, _) = llama(), texts()
    plain = run(model, x)
    with pytest.raises(ZeroDivisionError), gf.change(model, gf.Ablate("decoder.1.mlp")):
        raise ZeroDivisionError
    assert torch.equal(run(model, x), plain)


def test_changes_inside_of_changes_are_refused() -> None:
    model, (x, _) = llama(), texts()
    change = gf.Ablate("decoder.1.mlp")
    with (
        pytest.raises(InterventionError, match="join the interventions by &"),
        gf.change(model, change),
    ):
        run(model, x, change)
    plain = run(model, x)
    with gf.watch(model) as watched:
        changed = run(model, x, change)
    assert not torch.equal(changed, plain) and len(watched) == 2


def test_an_intervention_that_is_never_reached_is_an_error() -> None:
    model = gf.load("translator")
    source = torch.tensor([model.tokenizer.encode("The cat")])  # type: ignore[union-attr]
    change = gf.change(model, gf.Ablate("decoder.1.cross"))
    with pytest.raises(InterventionError, match="was never applied"), torch.no_grad(), change:
        model.encode(source)


def test_modules_of_pytorch_are_refused() -> None:
    change = gf.change(nn.MultiheadAttention(8, 2), gf.Skip("decoder.0"))
    with pytest.raises(TraceError, match=r"gf\.change needs a model of glassformer"), change:
        pass


def test_a_cache_with_gradients_is_continued() -> None:
    model, (a, _) = llama(), texts()
    change = gf.Ablate("decoder.1.mlp")
    with gf.change(model, change):
        first = model(a[:, :4], use_cache=True)
        again = model(a[:, 4:], past_key_values=first.past_key_values)
    assert first.logits.requires_grad
    assert torch.allclose(again.logits, run(model, a, change)[:, 4:], atol=1e-5)
