"""Classes of ranks for the grid: the rare before the usual, and few enough to tell apart."""

from __future__ import annotations

import pytest
from tests.web import making

from hangwatch_server import model
from hangwatch_server.pages import colouring, group_table, job_choice
from hangwatch_server.pages.colouring import By
from hangwatch_server.pages.job_choice import Choice


def test_no_two_classes_share_tone_and_mark() -> None:
    rows = [making.rank(n, signature=f"s{n // 2}") for n in range(20)]

    for by in By:
        classes = colouring.of(by, rows, {}).classes
        looks = [(one.tone, one.mark, one.is_quiet, one.word) for one in classes]
        assert len(set(looks)) == len(classes)
        assert len(classes) <= colouring.MOST_CLASSES


def test_the_legend_names_only_states_that_occur() -> None:
    rows = [making.rank(0, "waiting"), making.rank(1, "culprit"), making.rank(2, "waiting")]

    legend = colouring.of(By.STATE, rows, {}).legend()

    assert [(one.word, count) for one, count in legend] == [("culprit", 1), ("waiting", 2)]


def test_lag_tells_who_is_behind_and_who_is_in_no_such_group() -> None:
    rows = [making.rank(n) for n in range(5)]
    lags = {
        rank: model.Lag(rank=rank, gid="g", seq=seq, lag=lag)
        for rank, seq, lag in ((0, 9, 0), (1, 8, 1), (2, 2, 7), (3, None, None))
    }

    coloured = colouring.of(By.LAG, rows, lags)

    assert [coloured.classes[at].word for at in coloured.of] == [
        "at the front", "1 behind", "2 to 9 behind", "not known", "in no such group",
    ]  # fmt: skip


def test_a_rank_that_was_never_heard_is_not_shown_as_heard() -> None:
    rows = [making.rank(n, age_s=age) for n, age in enumerate((0.4, 4.0, 30.0, 90.0, None))]

    coloured = colouring.of(By.AGE, rows, {})

    assert [coloured.classes[at].word for at in coloured.of] == [
        "heard now", "over 3 s ago", "over 10 s ago", "over 1 min ago", "never heard",
    ]  # fmt: skip


def test_the_largest_class_of_stacks_is_calm_and_the_rarest_comes_first() -> None:
    common = [making.rank(n, signature="a", where="train.py:147 in train") for n in range(5)]
    odd = making.rank(5, signature="b", where="train.py:88 in __getitem__")

    classes = [one for one, _ in colouring.of(By.STACK, [*common, odd], {}).legend()]

    assert [one.word for one in classes] == ["train.py:88 in __getitem__", "train.py:147 in train"]
    assert classes[-1].tone == "healthy"


def test_two_stacks_at_one_line_are_told_apart() -> None:
    rows = [making.rank(n, signature=f"{n}{n}aa", where="train.py:147 in train") for n in range(2)]

    words = [one.word for one, _ in colouring.of(By.STACK, rows, {}).legend()]

    assert set(words) == {
        "train.py:147 in train (stack 00aa)",
        "train.py:147 in train (stack 11aa)",
    }


def test_an_unknown_word_in_the_address_means_states() -> None:
    assert colouring.choice("nonsense", "") is By.STATE
    assert colouring.choice("", "gid1") is By.LAG


def test_lag_without_a_lens_looks_at_the_group_that_waits_longest() -> None:
    groups = [making.group("dp-1", "0-3", waiting="0"), making.group("world", "0-7")]

    assert job_choice.of("/jobs/1", "lag", "", "", groups).gid == groups[0].gid


def test_an_address_keeps_what_else_was_chosen() -> None:
    choice = Choice(path="/jobs/1", by=By.LAG, lens="family:dp", ranks="0-3,7")

    assert choice.address() == "/jobs/1?by=lag&lens=family:dp&ranks=0-3,7#ranks"
    assert choice.coloured("age") == "/jobs/1?by=age&ranks=0-3,7#ranks"
    assert choice.coloured("state") == "/jobs/1?ranks=0-3,7#ranks"
    assert choice.through("g1") == "/jobs/1?by=lag&lens=g1&ranks=0-3,7#ranks"
    assert choice.everybody() == "/jobs/1?by=lag&lens=family:dp#ranks"


def test_a_hostile_family_cannot_leave_its_place_in_the_address() -> None:
    choice = Choice(path="/jobs/1")

    assert choice.through_family('x&by=age"#') == (
        "/jobs/1?by=lag&lens=family:x%26by%3Dage%22%23#ranks"
    )


def test_a_filter_that_cannot_be_read_shows_all_and_says_why() -> None:
    chosen, problem = Choice(path="/jobs/1", ranks="0-x").chosen(8)

    assert chosen is None
    assert "0-x" in problem


class TestGroups:
    """Which groups have a line of their own."""

    FAMILY = model.Family(name="dp", size=8, count=64, at_least=1042, at_most=1042, stalled=1)

    def _groups(self) -> list[model.GroupRow]:
        rows = [making.group(f"dp-{n}", f"{n}-{504 + n}:72") for n in range(64)]
        return [making.group("dp-9", "9-513:72", waiting="9", behind="81"), *rows[:9], *rows[10:]]

    def test_those_that_wait_are_listed_and_calm_ones_alike_are_one_line(self) -> None:
        table = group_table.of(self._groups(), [self.FAMILY], "")

        assert [row.name for row in table.rows] == ["dp-9"]
        assert group_table.fold_text(table.folds[0]) == "63 more dp groups of 8"
        assert group_table.places_text(table.folds[0]) == "all at #1042"

    def test_a_family_that_was_opened_is_listed(self) -> None:
        table = group_table.of(self._groups(), [self.FAMILY], "dp")

        assert len(table.rows) == 64
        assert table.folds == ()

    @pytest.mark.parametrize(
        ("least", "most", "text"), [(None, None, "no call yet"), (7, 9, "#7 to #9")]
    )
    def test_places_of_many_are_a_range(
        self, least: int | None, most: int | None, text: str
    ) -> None:
        family = model.Family(name="", size=2, count=9, at_least=least, at_most=most, stalled=0)

        assert group_table.places_text(family) == text
        assert group_table.fold_text(family) == "9 groups of 2"
