"""The user's frame that made a call, found without a stack."""

from __future__ import annotations

import os
import sys
from collections import deque
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

from hangwatch_agent import run
from hangwatch_agent.probe import groups, sites


def finder(torch_folder: str) -> sites.Sites:
    made = sites.Sites(groups.Table)
    made._torch_folder = torch_folder
    return made


def standing_in(file: str) -> Any:
    """A function that calls what it is given, as if it stood in `file`."""

    def all_reduce(body: Any) -> Any:
        return body()

    code = all_reduce.__code__.replace(co_filename=file)
    return FunctionType(code, {})


def test_nearest_frame_outside_of_torch_is_named() -> None:
    found = finder("/site/torch/")
    places: list[Any] = []
    users = standing_in("/home/me/train.py")
    torchs = standing_in("/site/torch/distributed/distributed_c10d.py")
    own = standing_in(sites.__file__)

    # torch calls the wrapped method, whose frame belongs to the probe
    users(partial(torchs, partial(own, lambda: places.append(found.place(sys._getframe(1))))))

    assert sites.text(places[0]).startswith("train.py:")
    assert sites.text(places[0]).endswith(" in all_reduce")


def test_call_from_nothing_but_torch_has_no_place() -> None:
    frame = SimpleNamespace(
        f_code=standing_in("/site/torch/x.py").__code__, f_lineno=1, f_back=None
    )

    assert finder("/site/torch/").place(frame) is None  # type: ignore[arg-type]


def test_each_entry_gets_the_place_of_its_own_number() -> None:
    code = sys._getframe().f_code
    noted = deque([sites.Noted(7, (code, 19)), sites.Noted(8, (code, 20))])
    entries: list[dict[str, Any]] = [{"seq": 6}, {"seq": 7}, {"seq": 8}]

    sites.attach(entries, noted)

    assert "site" not in entries[0]
    assert entries[1]["site"].startswith("test_sites.py:19 in test_each")
    assert ":20 " in entries[2]["site"]


def test_number_is_corrected_once_the_call_is_made() -> None:
    group = groups.Group("0", (0, 1), 1, is_watched=True)
    group.offset = -2
    noted = sites.Noted(5, None)

    sites._settle(SimpleNamespace(_get_sequence_number_for_group=lambda: 9), group, noted)

    assert noted.seq == 7


def test_call_sites_are_off_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    command = ["python", "train.py"]
    plain = run.environment(None, tmp_path, command, {})
    asked = run.environment(None, tmp_path, command, {}, has_call_sites=True)

    assert sites.VARIABLE not in plain
    monkeypatch.setitem(os.environ, sites.VARIABLE, asked[sites.VARIABLE])
    assert sites.is_wanted()
