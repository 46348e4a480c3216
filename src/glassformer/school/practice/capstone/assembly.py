"""One run of the capstone: grade each part on the model's activations, then join and run them."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from glassformer.errors import ConfigError
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.copied_spans import insert_spans
from glassformer.generation.source_text import read_any_source
from glassformer.models import Decoder, EncoderDecoder
from glassformer.school.practice.capstone.bundle import bundle
from glassformer.school.practice.capstone.capstone_report import (
    LENT,
    WRONG,
    YOURS,
    CapstoneReport,
    PartResult,
    Writing,
)
from glassformer.school.practice.capstone.kit import WHOLE, kit_file
from glassformer.school.practice.capstone.library_run import (
    check_decoder,
    write_decoder_kits,
    write_translator_kits,
)
from glassformer.school.practice.capstone.parts import TRACKS, TRANSLATOR, Track
from glassformer.school.practice.exercise import Exercise, find_exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.report import GradingReport
from glassformer.school.practice.workspace import Workspace

# Seconds of computing. A part that stands alone has as long as its exercise allows; these run many
# layers, perhaps those of a checkpoint with a hundred million weights.
_SECONDS = {"transformer": 20.0, "capstone_translator": 20.0, "capstone_writer": 60.0}
_SECONDS_WHOLE = 120.0


def run_capstone(
    model: EncoderDecoder | Decoder,
    track_name: str,
    text: str,
    workspace: Workspace,
    grader: Grader,
    *,
    to: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> CapstoneReport:
    """Join the parts in a learner's folder with a model's weights, and let them run on a text.

    `progress` is called after each part with the number of parts that are done.
    """
    begun = time.perf_counter()
    track = TRACKS[track_name]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = _write_kits(model, track, text, to, folder)
        parts = []
        for part in track.parts:
            parts.append(_grade_part(part, workspace, grader, folder))
            if progress is not None:
                progress(len(parts))
        states = {each.part: each for each in parts}
        whole = _run_joined(track, states, (YOURS,), workspace, grader, folder)
        # Only what returned something: code that hangs has been waited for once already.
        tries = [each for each in parts if each.state == WRONG and _has_returned(each.report)]
        with_wrong = None
        if tries:
            with_wrong = _run_joined(track, states, (YOURS, WRONG), workspace, grader, folder)
    return CapstoneReport(
        track=track,
        text=text,
        model=model.name or track.name,
        parts=tuple(parts),
        library=library,
        joined=_read_writing(model, text, to, whole),
        stop=whole.finding,
        with_wrong=None if with_wrong is None else _read_writing(model, text, to, with_wrong),
        isolation=whole.isolation,
        seconds=time.perf_counter() - begun,
    )


def is_lent(exercise: Exercise, workspace: Workspace) -> bool:
    """Whether a part is the library's: the learner has no file for it, or has not changed it."""
    is_text = workspace.read(exercise) is not None
    is_there = os.path.lexists(workspace.file(exercise))
    return not is_there or (is_text and not workspace.has_try(exercise))


def _write_kits(
    model: EncoderDecoder | Decoder, track: Track, text: str, to: str | None, folder: Path
) -> Writing:
    if track.name != TRANSLATOR:
        return write_decoder_kits(check_decoder(model), text, folder)
    if not isinstance(model, EncoderDecoder):
        raise ConfigError(f"The translator's parts need its weights; got {type(model).__name__}.")
    return write_translator_kits(model, text, to, folder)


def _grade_part(part: str, workspace: Workspace, grader: Grader, folder: Path) -> PartResult:
    exercise = find_exercise(part)
    file = workspace.file(exercise)
    if is_lent(exercise, workspace):
        return PartResult(part=part, state=LENT)
    seconds = _SECONDS.get(part, exercise.seconds)
    on_kit = replace(exercise, kit=kit_file(folder, part), seconds=seconds)
    report = grader.grade(on_kit, file)
    return PartResult(part=part, state=YOURS if report.passed else WRONG, report=report)


def _has_returned(report: GradingReport | None) -> bool:
    return report is not None and any(each.held is False for each in report.checked)


def _run_joined(
    track: Track,
    parts: Mapping[str, PartResult],
    own: Sequence[str],
    workspace: Workspace,
    grader: Grader,
    folder: Path,
) -> GradingReport:
    """Run the model with the learner's parts in the states `own`, and lent ones for the rest."""
    exercises = [find_exercise(name) for name in track.parts]

    def find_source(exercise: Exercise) -> str:
        result = parts[exercise.name]
        can_run = result.state == YOURS or _has_returned(result.report)
        text = workspace.read(exercise) if result.state in own and can_run else None
        return exercise.solution if text is None else text

    whole = replace(
        find_exercise(track.joint),
        kit=kit_file(folder, WHOLE),
        entry=tuple(name for each in exercises for name in each.entry),
        forbid=(),  # each part was held to its own list already
        seconds=_SECONDS_WHOLE,
    )
    return grader.grade_source(whole, bundle((each, find_source(each)) for each in exercises))


def _read_writing(
    model: EncoderDecoder | Decoder, text: str, to: str | None, report: GradingReport
) -> Writing | None:
    """What a joined model wrote; nothing, where it did not write tokens."""
    if report.measured is None:
        return None
    tokens = report.measured.get("tokens")
    if not isinstance(tokens, list) or not all(_is_token(t, model) for t in tokens):
        return None
    ids = tuple(int(t) for t in tokens)
    if isinstance(model, EncoderDecoder):
        return Writing(insert_spans(model, read_any_source(model, text, to), ids), ids)
    return Writing(tokenizer_of(model).decode(ids), ids)


def _is_token(number: object, model: EncoderDecoder | Decoder) -> bool:
    if not isinstance(number, int | float) or int(number) != number:
        return False
    return 0 <= number < model.config.vocab_size
