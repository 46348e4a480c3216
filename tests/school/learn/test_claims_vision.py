"""What the chapters on scaling laws and on vision transformers claim, and no snippet prints."""

import torch

import glassformer as gf
from closeness import assert_close
from glassformer.languages import Language
from glassformer.models import Patches, Positions
from glassformer.school.learn.image_map import ImageMap, plain_image_map
from glassformer.school.learn.pictures import draw
from glassformer.school.shape_images import draw_shape_images

ENGLISH = Language("en")


def build_vision(positions, n_layers=1):
    torch.manual_seed(0)
    config = gf.Config(
        family="vision",
        vocab_size=1,
        dim=12,
        n_layers=n_layers,
        n_heads=3,
        max_len=17,
        patches=Patches(image_size=16, patch_size=4, n_channels=1),
        positions=Positions(kind=positions),
    )
    return gf.build(config).double().eval()


def draw_images(n):
    return draw_shape_images(torch.Generator().manual_seed(3), n)


def shuffle_patches(images):
    squares = images.unflatten(3, (-1, 4)).unflatten(2, (-1, 4)).transpose(3, 4)  # B 1 4 4 4 4
    order = torch.randperm(16, generator=torch.Generator().manual_seed(5))
    mixed = squares.flatten(2, 3)[:, :, order].unflatten(2, (4, 4))
    return mixed.transpose(3, 4).flatten(4, 5).flatten(2, 3)


@torch.no_grad()
def test_without_positions_the_class_token_sees_a_bag_of_patches():
    images = draw_images(3).images.double()
    blind, seeing = build_vision("none"), build_vision("learned")
    assert_close(blind(images)[:, 0], blind(shuffle_patches(images))[:, 0], 1e-12)
    assert (seeing(images)[:, 0] - seeing(shuffle_patches(images))[:, 0]).abs().max() > 1e-3


@torch.no_grad()
def test_in_the_first_layer_only_the_keys_depend_on_the_image():
    model, images = build_vision("learned", n_layers=2), draw_images(2).images.double()
    with gf.watch(model) as trace:
        model(images)
    first, second = trace
    assert_close(first.q[0, :, 0], first.q[1, :, 0], 1e-12)
    assert (first.k[0] - first.k[1]).abs().max() > 1e-3
    assert (second.q[0, :, 0] - second.q[1, :, 0]).abs().max() > 1e-6


@torch.no_grad()
def test_above_the_first_layer_a_patch_contains_something_of_the_others():
    model, images = build_vision("learned", n_layers=2), draw_images(1).images.double()
    changed = images.clone()
    changed[..., :4, :4] += 1.0  # the first patch alone
    with gf.watch(model) as trace:
        model(torch.cat([images, changed]))
    first, second = trace
    assert_close(first.k[0, :, 2:], first.k[1, :, 2:], 1e-12)
    assert (second.k[0, :, 2:] - second.k[1, :, 2:]).abs().amax((0, 2)).min() > 1e-9


def test_most_shapes_lie_across_several_patches():
    covered = draw_images(400).covered.sum(1)
    assert (covered > 1).float().mean() > 0.7 and covered.max() == 4


def test_half_or_twice_the_best_size_costs_little():
    for _, bars in draw("isoflop", ENGLISH).pictures:
        lengths = [length for _, length, _ in bars.bars]
        middle = len(lengths) // 2
        assert min(lengths) == lengths[middle]
        assert max(lengths[middle - 1], lengths[middle + 1]) < 1.05 * lengths[middle]
        assert min(lengths[0], lengths[-1]) > 1.3 * lengths[middle]


def test_attention_lies_behind_the_pixels_of_its_patch():
    pixels, shares = torch.zeros(4, 6), torch.tensor([[0.1, 0.2, 0.3], [0.0, 0.4, 0.0]])
    pixels[0, 5] = 1.0
    plain = plain_image_map(ImageMap(pixels, shares))
    assert plain["shares"][1] == [0.25, 0.25, 0.5, 0.5, 0.75, 0.75]
    assert plain["shares"][3] == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]
    assert [row.count("■") for row in plain["shown"]] == [1, 0, 0, 0]


def test_the_trained_model_attends_to_the_shape():
    for _, picture in draw("class-attention", ENGLISH).pictures:
        ink = picture.pixels.unflatten(1, (-1, 4)).unflatten(0, (-1, 4)) >= 0.5
        touched = ink.any(3).any(1)  # patches with ink
        assert touched.flatten()[picture.shares.argmax()]
