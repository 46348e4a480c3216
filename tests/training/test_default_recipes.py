"""The default recipes: length and sizes follow from the data, and each of them trains."""

from pathlib import Path

import pytest

from glassformer.training.default_recipes import (
    finetuning_recipe,
    language_recipe,
    translation_recipe,
)


def aligned(folder: Path, n: int) -> tuple[str, str]:
    """Two files of n lines, 40 bytes each."""
    paths = folder / "a.en", folder / "a.fr"
    for path in paths:
        path.write_text(f"{'x' * 39}\n" * n)
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize(
    ("n", "batch_tokens", "steps", "warmup"),
    [
        (10, 512, 500, 50),
        (1000, 666, 840, 84),
        (30_000, 4096, 3920, 392),
        (10**6, 4096, 20_000, 500),
    ],
)
def test_a_translator_trains_as_long_as_its_data_lasts(tmp_path, n, batch_tokens, steps, warmup):
    recipe = translation_recipe(*aligned(tmp_path, n))
    assert recipe.batches.max_tokens == batch_tokens
    assert (recipe.until.steps, recipe.until.epochs, recipe.schedule.warmup) == (
        steps,
        None,
        warmup,
    )
    assert recipe.save.every_steps == recipe.evaluate.every_steps == steps // 20
    assert (recipe.data.valid_every > 0) == (n >= 100)


@pytest.mark.parametrize(
    ("size", "window", "steps"), [(300, 18, 300), (100_000, 128, 300), (1_100_000, 128, 2152)]
)
def test_a_language_model_trains_as_long_as_its_text_lasts(tmp_path, size, window, steps):
    path = tmp_path / "book.txt"
    path.write_text("x" * size)
    recipe = language_recipe(str(path))
    assert (recipe.batches.length, recipe.until.steps) == (window, steps)
    assert recipe.schedule.warmup == min(100, steps // 10)


def test_fine_tuning_takes_few_and_small_steps(tmp_path):
    source, target = aligned(tmp_path, 1000)
    recipe = finetuning_recipe("translator", source=source, target=target, to="fr")
    assert recipe.model == {"from": "translator"} and recipe.until.steps == 100
    assert recipe.schedule.lr < translation_recipe(source, target).schedule.lr
    assert recipe.data.train[0].prefix == "<fr> "
    written = finetuning_recipe("writer", text=source)
    assert written.task == "language" and written.tokenizer.path is None
