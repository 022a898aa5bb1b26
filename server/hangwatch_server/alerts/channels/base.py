"""What every kind of channel is: given a message and its thread, it sends and says how it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hangwatch_server.alerts.channels.fields import Field
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.model.alerts import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The receiver has it."""

    status: int | None = None
    thread: str = ""  # the receiver's name of the message, for those that come after it


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    """It did not arrive, and may later."""

    error: str
    status: int | None = None
    after_s: float | None = None  # as the receiver asked; None for our own pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It will never arrive as it is."""

    error: str
    status: int | None = None
    is_gone: bool = False  # 410: the receiver wants nothing from us any more


Outcome = Accepted | TryAgain | Refused


class Sender(Protocol):
    """One channel, ready to send."""

    async def send(self, message: Message, thread: str) -> Outcome:
        """Send once; `thread` is what the first message of this `about` was accepted as, or "".

        Never raises for what a receiver does: every failure is an Outcome.
        """


class MakeSender(Protocol):
    """How a kind is built from a channel's options and its secrets, read a moment before."""

    def __call__(
        self, options: Mapping[str, str], secrets: Mapping[str, str], outgoing: Outgoing
    ) -> Sender: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a kind of channel asks for, and how one of it is built."""

    label: str  # "Slack, by a bot"
    about: str  # one sentence: what arrives, and what it needs
    fields: tuple[Field, ...]
    make: MakeSender
    target: Callable[[Mapping[str, str], Mapping[str, str]], str]  # shown on lists: no secret
    # That one try may take where that is long: cut sooner, it could arrive and count as failed.
    takes_s: float = 0.0
