"""Names as addresses that all nodes agree on, whatever a job has put into its environment."""

from __future__ import annotations

import pytest

from hangwatch_agent import identity


@pytest.mark.parametrize("host", ["a" * 300, "a\0b", "[", "a..b"])
def test_name_that_cannot_be_looked_up_stands_for_itself(host: str) -> None:
    assert identity.resolve(host) == host


@pytest.mark.parametrize("host", ["", "127.0.0.1", "127.0.1.1"])
def test_loopback_addresses_name_this_boot(host: str) -> None:
    assert identity.resolve(host) == f"local-{identity.boot_id()[:8]}"
