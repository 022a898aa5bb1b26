"""The cases as their families list them: found, told apart, and complete."""

from __future__ import annotations

import pytest

from hangwatch_server import assets
from hangwatch_server.demo import cases, report
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import State

WITHOUT_CASES = {"plain"}  # programs of other tests


def test_first_case_is_the_demo_s_default() -> None:
    assert cases.load()[0].name == "dataloader"


def test_every_folder_of_programs_is_a_family() -> None:
    folders = {path.name for path in assets.programs().iterdir() if path.is_dir()}

    assert folders - {"__pycache__"} == cases.FAMILIES.keys() | WITHOUT_CASES


def test_names_are_unique_since_jobs_are_found_by_them() -> None:
    names = [case.name for case in cases.load()]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", cases.load(), ids=lambda case: case.name)
def test_program_of_the_case_exists_and_its_ranks_fit_its_nodes(case: cases.Case) -> None:
    assert case.path.is_file()
    assert case.ranks % case.nodes == 0


def test_every_program_of_a_family_has_a_case() -> None:
    """A file without a main part is no program, but what several of them share."""
    listed = {case.path.resolve() for case in cases.load()}
    there = {
        path
        for family in cases.FAMILIES
        for path in (assets.programs() / family).resolve().glob("*.py")
        if "__main__" in path.read_text()
    }

    assert there - listed == set()


def test_list_shows_each_case_under_the_sentence_of_its_family() -> None:
    lines = list(report.case_lines(cases.load()))

    assert lines[0] == "missing: some ranks never call what the others wait in"
    assert lines[1].split()[0] == "dataloader"
    assert len(lines) == len(cases.load()) + len({case.family for case in cases.load()})


def test_unknown_case_is_refused_with_the_known_names() -> None:
    with pytest.raises(HangwatchError, match=r"no case 'x'.*--list.*dataloader"):
        cases.find("x")


def test_hang_has_one_incident_unless_the_case_says_otherwise() -> None:
    hung = next(case for case in cases.load() if case.state is State.HUNG)
    healthy = next(case for case in cases.load() if case.is_healthy)

    assert hung.expected_incidents == 1
    assert healthy.expected_incidents == 0
