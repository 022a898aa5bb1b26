from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server import model
from hangwatch_server.pages import card_stacks, culprits
from hangwatch_server.stacks import RankStacks, merge

OWN = "/home/ada/train.py"
TORCH = "/opt/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py"


def culprit(rank: int, **changes: object) -> model.Culprit:
    values: dict[str, object] = {
        "rank": rank,
        "node": "node-a",
        "pid": 800 + rank,
        "gpu": None,
        "condition": model.Condition.IN_DATALOADER,
        "where": "train.py:88 in train",
        **changes,
    }
    return model.Culprit(**values)  # type: ignore[arg-type]


def tree(*frames: wire.Frame, sources: tuple[wire.Source, ...] = ()) -> model.Tree:
    thread = wire.Thread(pid=805, thread_id=805, name="MainThread", frames=frames)
    process = wire.ProcessStacks(pid=805, role="main", threads=(thread,))
    roots, classes = merge([RankStacks(5, (process,))])
    return model.Tree(capture="c", roots=roots, classes=classes, missing=(), sources=sources)


def deep(framework: int) -> tuple[wire.Frame, ...]:
    inner = [wire.Frame(name=f"f{n}", file=TORCH, line=n + 1) for n in range(framework)]
    own = [
        wire.Frame(name=name, file=OWN, line=line) for name, line in (("train", 88), ("main", 9))
    ]
    return (*inner, *own)


def test_a_card_shows_the_users_lines_and_folds_the_frameworks_however_deep_they_lie() -> None:
    (card,) = culprits.of([culprit(5)], {5}, tree(*deep(20)), None)

    told = [(line.is_run, len(line.frames), line.frames[0].name) for line in card.frames.lines]
    assert told == [(True, 20, "f0"), (False, 1, "train"), (False, 1, "main")]


def test_a_stack_without_a_line_of_the_users_is_not_folded() -> None:
    (card,) = culprits.of([culprit(5)], {5}, tree(*deep(20)[:20]), None)

    assert [line.is_run for line in card.frames.lines] == [False] * card_stacks.MAX_LINES
    assert card.frames.more == 20 - card_stacks.MAX_LINES


def test_only_the_innermost_line_of_the_user_comes_with_those_round_it() -> None:
    sources = (
        wire.Source(file=OWN, line=88, first=87, lines=("a", "b", "c")),
        wire.Source(file=OWN, line=9, first=8, lines=("d", "e", "f")),
        wire.Source(file=TORCH, line=1, first=1, lines=("torch",)),
    )

    (card,) = culprits.of([culprit(5)], {5}, tree(*deep(2), sources=sources), None)

    told = [frame for line in card.frames.lines for frame in line.frames]
    assert [[text.text for text in line.source] for line in told] == [
        [],
        [],
        ["a", "b", "c"],
        ["e"],
    ]


def test_culprits_that_do_the_same_share_a_card_and_a_dead_one_lacks_no_stack() -> None:
    killed = culprit(7, condition=model.Condition.KILLED, where="")

    cards = culprits.of([culprit(5), culprit(6), killed], {5, 6, 7}, tree(), None)

    assert [(card.ranks, card.count, card.lacks_stack) for card in cards] == [
        ("5-6", 2, True),
        ("7", 1, False),
    ]
