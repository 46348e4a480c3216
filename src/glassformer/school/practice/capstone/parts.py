"""Which exercises the two models of the capstone are joined from, in the order of writing them."""

from dataclasses import dataclass

TRANSLATOR, DECODER = "translator", "decoder"


@dataclass(frozen=True, slots=True)
class Track:
    """A model to be joined, and its parts by the names of their exercises; the last joins them."""

    name: str
    parts: tuple[str, ...]
    model: str  # the included one whose weights it runs
    example: str  # a text to translate or to continue

    @property
    def joint(self) -> str:
        """The exercise in which the learner joins the other parts."""
        return self.parts[-1]


TRACKS = {
    TRANSLATOR: Track(
        TRANSLATOR,
        (
            "padding_mask",
            "split_heads",
            "merge_heads",
            "embedding",
            "layer_norm",
            "residual",
            "transformer",
            "greedy",
            "rotary",
            "gelu_feed_forward",
            "capstone_translator",
        ),
        model="translator",
        example="Where is the station?",
    ),
    DECODER: Track(
        DECODER,
        (
            "split_heads",
            "merge_heads",
            "embedding",
            "sampling",
            "rotary",
            "grouped_queries",
            "rms_norm",
            "swiglu",
            "capstone_writer",
        ),
        model="writer",
        example="The old man",
    ),
}
