"""Two drawings, read as graphs."""

from collections.abc import Iterator

from glassformer.school.practice.cases import Case, Draw, drawing


def cases(_draw: Draw) -> Iterator[Case]:
    yield from drawing("attention", "draw_attention")
    yield from drawing("decoder", "draw_decoder_layer")
