"""Where jobs are done: every job of the wire has its function."""

from importlib import import_module

import pytest

from glassformer.workbench.desk import _ROOMS
from glassformer.workbench.wire import JOBS


@pytest.mark.parametrize("job", sorted({*JOBS, *_ROOMS}))
def test_a_room_does_it(job: str) -> None:
    room, function = _ROOMS[job]
    found = getattr(
        import_module(f"glassformer.workbench.rooms.{room.replace('/', '.')}"), function
    )
    given = [each for name, each in found.__annotations__.items() if name != "return"]
    assert given[0] is JOBS[job].asked
