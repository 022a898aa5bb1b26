"""The user's marks: phases and steps that never raise."""

from __future__ import annotations

import threading

import pytest

import hangwatch
from hangwatch_agent.probe import marks as reader


@pytest.fixture(autouse=True)
def _fresh_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hangwatch, "marks", hangwatch.Marks())


def current() -> str:
    phase = hangwatch.marks.current()
    return "" if phase is None else phase.name


def test_context_manager_ends_its_phase() -> None:
    with hangwatch.phase("checkpoint", limit_s=60):
        inside = reader.read()

    assert (inside["phase"], inside["phase_limit_s"]) == ("checkpoint", 60.0)
    assert current() == ""


def test_plain_call_lasts_until_the_next_one() -> None:
    hangwatch.phase("warmup")
    hangwatch.phase("evaluation")
    assert current() == "evaluation"

    hangwatch.phase(None)

    assert current() == ""


def test_nested_phases_return_to_the_outer_one() -> None:
    with hangwatch.phase("evaluation"):
        with hangwatch.phase("checkpoint"):
            assert current() == "checkpoint"
        assert current() == "evaluation"


def test_plain_call_inside_a_context_does_not_end_it() -> None:
    with hangwatch.phase("evaluation"):
        hangwatch.phase("checkpoint")
        hangwatch.phase("")

        assert current() == "evaluation"


def test_exception_inside_a_phase_passes_through() -> None:
    with pytest.raises(KeyError), hangwatch.phase("evaluation"):
        raise KeyError("x")

    assert current() == ""


class Awkward:
    """An argument whose every conversion fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __int__(self) -> int:
        raise RuntimeError("no number")


def test_nothing_a_caller_passes_raises() -> None:
    hangwatch.step(Awkward())  # type: ignore[arg-type]
    hangwatch.step("7")  # type: ignore[arg-type]
    with hangwatch.phase(Awkward(), limit_s="soon"):  # type: ignore[arg-type]
        pass
    with hangwatch.phase("a" * 1000, limit_s=-1):
        found = reader.read()

    assert found["step"] == 7
    assert len(found["phase"]) == hangwatch.MAX_NAME
    assert found["phase_limit_s"] is None


def test_step_that_no_record_can_carry_is_not_kept() -> None:
    hangwatch.step(2**80)

    assert reader.read()["step"] is None


def test_decorated_function_is_in_its_phase_while_it_runs_only() -> None:
    @hangwatch.phase("evaluation", limit_s=60)
    def evaluate(rounds: int) -> str:
        """Evaluate."""
        return evaluate(rounds - 1) if rounds else current()

    assert current() == ""
    assert (evaluate(2), evaluate.__name__) == ("evaluation", "evaluate")
    assert current() == ""


def test_phase_inside_a_generator_lasts_as_long_as_its_block() -> None:
    def batches() -> object:
        with hangwatch.phase("loading"):
            yield 1

    running = iter(batches())  # type: ignore[call-overload]
    next(running)
    assert current() == "loading"

    running.close()

    assert current() == ""


def test_threads_have_phases_of_their_own_and_the_main_one_is_shown() -> None:
    seen: list[str] = []

    def work() -> None:
        with hangwatch.phase("prefetch"):
            seen.append(current())
            main_goes_on.set()
            worker_goes_on.wait(60)
        seen.append(current())

    main_goes_on, worker_goes_on = threading.Event(), threading.Event()
    worker = threading.Thread(target=work)
    worker.start()
    main_goes_on.wait(60)
    with hangwatch.phase("checkpoint"):
        assert current() == "checkpoint"
        worker_goes_on.set()
        worker.join()
        assert current() == "checkpoint"  # the worker's end did not end it

    assert seen == ["prefetch", "checkpoint"]
    assert current() == ""
