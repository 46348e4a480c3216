"""Pictures that several experiments draw."""

from collections.abc import Iterable, Sequence

from glassformer.render.chart import Axis, Chart, Lines, Series
from glassformer.school.lab.experiment import Numbers
from glassformer.school.lab.texts import ExperimentTexts


def cost_by_length(numbers: Numbers, texts: ExperimentTexts, names: Iterable[str]) -> Chart:
    """Milliseconds and MiB against length, a line for each name, both axes logarithmic.

    `numbers` has lengths, and for each name seconds_NAME and bytes_NAME.
    """
    names = tuple(names)

    def panel(what: str, factor: float) -> Lines:
        return Lines(
            title=texts(what),
            x=Axis(label=texts("length"), log=True),
            y=Axis(label=texts(f"{what}_axis"), log=True),
            places=tuple(numbers["lengths"]),
            series=tuple(
                Series(
                    name=texts(name),
                    values=tuple(factor * v for v in numbers[f"{what}_{name}"]),
                )
                for name in names
            ),
        )

    return Chart((panel("seconds", 1e3), panel("bytes", 2**-20)))


def choose_steps(steps: int) -> list[int]:
    """Steps of a training whose loss is drawn: 21 of them, or all of a short one.

    >>> choose_steps(5)
    [0, 1, 2, 3, 4]
    """
    return sorted({round(i * (steps - 1) / 20) for i in range(21)})


def pick_steps(losses: Sequence[float], steps: Iterable[int]) -> tuple[float, ...]:
    """The losses of these steps, as far as the training has come."""
    return tuple(losses[step] for step in steps if step < len(losses))
