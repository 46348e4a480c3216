"""What a worker remembers: a folder whose weights are replaced is read again."""

import torch

from glassformer.analysis.traced_text import trace_text
from glassformer.models.checkpoints import load, save
from glassformer.workbench.memory import Memory
from glassformer.workbench.wire.requests import ReadingRequest
from letter_models import letter_model

ASKED = ReadingRequest(model="letters", text="a cat sat")


def ignore(_share):
    pass


def test_replaced_weights_make_another_reading(tmp_path):
    folder = tmp_path / "letters"
    model = letter_model("decoder")
    save(model, folder)
    memory = Memory()
    memory.locate({"letters": str(folder)})
    first = memory.reading(ASKED, ignore)
    memory.locate({"letters": str(folder)})
    assert memory.reading(ASKED, ignore) is first  # nothing has changed
    assert memory.model("letters") is first.source

    with torch.no_grad():
        for part in model.parameters():
            part.mul_(0.5)
    save(model, folder, overwrite=True)
    assert memory.reading(ASKED, ignore) is first  # until a request names it
    memory.locate({"letters": str(folder)})
    second = memory.reading(ASKED, ignore)
    expected = trace_text(load(folder, dtype=torch.float32), ASKED.text, None, None)
    for name in expected.names:
        assert torch.equal(second.trace[name].weights(), expected[name].weights())
    assert not torch.equal(
        first.trace["decoder.0.self"].weights(), second.trace["decoder.0.self"].weights()
    )
    assert memory.model("letters") is second.source is not first.source


def test_other_models_stay(tmp_path):
    for name in ("letters", "others"):
        save(letter_model("decoder"), tmp_path / name)
    memory = Memory()
    paths = {name: str(tmp_path / name) for name in ("letters", "others")}
    memory.locate(paths)
    kept = memory.reading(ASKED.model_copy(update={"model": "others"}), ignore)
    memory.reading(ASKED, ignore)
    save(letter_model("decoder"), tmp_path / "letters", overwrite=True)
    memory.locate(paths)
    assert memory.reading(kept.asked, ignore) is kept
