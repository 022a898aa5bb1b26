from __future__ import annotations

from hangwatch_server.model import OpenCall, Pair, PairSide
from hangwatch_server.pages import pairs


def pair(sends: PairSide | None, receives: PairSide | None, *calls: OpenCall) -> Pair:
    return Pair(group="pp", sender=1, receiver=2, sends=sends, receives=receives, calls=calls)


def test_the_side_with_fewer_calls_says_how_many() -> None:
    (row,) = pairs.of_pairs(
        [pair(PairSide(posted=40, finished=40), PairSide(posted=41, finished=40))]
    )

    assert (row.sends.text, row.sends.lacking, row.receives.lacking) == ("40", 1, 0)


def test_nothing_lacks_where_one_side_is_not_known() -> None:
    (row,) = pairs.of_pairs([pair(PairSide(posted=40, finished=40), None)])

    assert (row.receives.text, row.receives.is_known) == ("not known", False)
    assert (row.sends.lacking, row.receives.lacking) == (0, 0)


def test_an_open_call_is_told_in_words() -> None:
    call = OpenCall(
        rank=2, is_send=False, number=None, tag=0, waits_s=9.0, is_blocking=False, site=""
    )

    (row,) = pairs.of_pairs([pair(None, None, call, *[call] * 4)])

    assert row.calls[0] == "rank 2 has begun recv for 9.0 s"
    assert (len(row.calls), row.more) == (3, 2)
