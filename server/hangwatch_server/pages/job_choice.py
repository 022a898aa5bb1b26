"""What a reader chose to see of a job: colouring, lens and ranks. It lives in the address alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from hangwatch_server import ranges
from hangwatch_server.errors import BadRangeError
from hangwatch_server.model import GroupRow
from hangwatch_server.pages import colouring
from hangwatch_server.pages.colouring import By

_FAMILY = "family:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    path: str  # of the job's page
    by: By = By.STATE
    lens: str = ""  # the gid of a group, or "family:" and the name that groups share
    ranks: str = ""

    def address(self, *, anchor: str = "ranks") -> str:
        asked = {"by": self.by if self.by is not By.STATE else "", "lens": self.lens}
        query = urlencode({key: value for key, value in asked.items() if value}, safe=":")
        shown = f"ranks={self.ranks}" if self.ranks else ""
        parts = "&".join(part for part in (query, shown) if part)
        return f"{self.path}{'?' if parts else ''}{parts}#{anchor}"

    def coloured(self, by: str) -> str:
        """The address with another colouring; only lag has a lens."""
        chosen = By(by)
        return replace(self, by=chosen, lens=self.lens if chosen is By.LAG else "").address()

    def through(self, lens: str) -> str:
        """The address that shows lag in this group, or in each group of this family."""
        return replace(self, by=By.LAG, lens=lens).address()

    def through_family(self, name: str) -> str:
        return self.through(_FAMILY + name)

    def everybody(self) -> str:
        """The address without the filter."""
        return replace(self, ranks="").address()

    @property
    def family(self) -> str:
        return self.lens.removeprefix(_FAMILY) if self.lens.startswith(_FAMILY) else ""

    @property
    def gid(self) -> str:
        return "" if self.lens.startswith(_FAMILY) else self.lens

    def chosen(self, world_size: int) -> tuple[frozenset[int] | None, str]:
        """The job's ranks of the filter, None for all, and why it could not be read."""
        try:
            return (ranges.below(self.ranks, world_size) if self.ranks else None), ""
        except BadRangeError as error:
            return None, str(error)


def of(path: str, by: str, lens: str, ranks: str, groups: Sequence[GroupRow]) -> Choice:
    """The choice of an address; lag without a lens looks at the group that waits longest."""
    chosen = colouring.choice(by, lens)
    if chosen is not By.LAG:
        return Choice(path=path, by=chosen, ranks=ranks)
    return Choice(path=path, by=chosen, lens=lens or (groups[0].gid if groups else ""), ranks=ranks)
