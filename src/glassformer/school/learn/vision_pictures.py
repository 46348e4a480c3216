"""A small vision transformer, trained when its attention is first shown."""

from collections.abc import Callable
from functools import cache

import torch
from torch import nn

from glassformer.languages import Language
from glassformer.models import Config, Patches, Positions
from glassformer.models.config import Output
from glassformer.models.vision import VisionEncoder
from glassformer.school.learn.image_map import ImageMap
from glassformer.school.learn.picture import Album, Picture
from glassformer.school.shape_images import IMAGE, N_PATCHES, PATCH, SHAPES, draw_shape_images
from glassformer.tracing import watch

_STEPS, _BATCH, _SEED = 150, 32, 0


@cache
def _train() -> VisionEncoder:
    """One layer with one head, so that there is one row of attention to look at."""
    config = Config(
        family="vision",
        vocab_size=1,
        dim=32,
        n_layers=1,
        n_heads=1,
        hidden_dim=64,
        max_len=N_PATCHES + 1,
        patches=Patches(image_size=IMAGE, patch_size=PATCH, n_channels=1),
        positions=Positions(kind="learned"),
        output=Output(classes=tuple(SHAPES)),
    )
    generator = torch.Generator().manual_seed(_SEED)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(_SEED)
        model = VisionEncoder(config)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, _STEPS)
        for _ in range(_STEPS):
            drawn = draw_shape_images(generator, _BATCH)
            logits = model.classify(model(drawn.images))
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits, drawn.shapes).backward()
            optimizer.step()
            decay.step()
    return model.eval()


def _class_attention(language: Language) -> Picture:
    """What the class token attends to, drawn on an image of each shape."""
    model, drawn = _train(), draw_shape_images(torch.Generator().manual_seed(_SEED + 1), 48)
    with torch.no_grad(), watch(model) as trace:
        guesses = model.classify(model(drawn.images)).argmax(-1)
    (site,) = trace
    pictures = []
    for n, name in enumerate(SHAPES):
        across = (drawn.shapes == n) & (drawn.covered.sum(1) == 2)  # two patches
        place = int(across.nonzero()[0])
        row = site.weights(head=0, sequence=place)[0, 1:]  # without the class token itself
        answer = list(SHAPES)[int(guesses[place])]
        title = language.say("learn.picture.attended", name=answer, share=f"{row.max():.2f}")
        grid = row.reshape(IMAGE // PATCH, -1)
        pictures.append((name, ImageMap(drawn.images[place, 0], grid, title)))
    return Album(tuple(pictures))


VISION_PICTURES: dict[str, Callable[[Language], Picture]] = {"class-attention": _class_attention}
