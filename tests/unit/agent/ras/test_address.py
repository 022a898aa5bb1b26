"""Whom a job may make the agent ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangwatch_agent.errors import RasError
from hangwatch_agent.ras import address
from hangwatch_agent.ras.protocol import Endpoint

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
   0: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000
   1: 0100007F:6D7C 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1001
   2: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0
"""


def test_default_is_nccl_s_port_on_this_node() -> None:
    assert address.endpoint({}) == Endpoint("127.0.0.1", 28028)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("localhost:5000", Endpoint("127.0.0.1", 5000)),
        ("127.0.0.1:5000", Endpoint("127.0.0.1", 5000)),
        ("[::1]:5000", Endpoint("::1", 5000)),
    ],
)
def test_address_of_this_node_is_followed(text: str, expected: Endpoint) -> None:
    assert address.endpoint({"NCCL_RAS_ADDR": text}) == expected


@pytest.mark.parametrize(
    "text", ["192.0.2.1:80", "example.org:80", "0.0.0.0:80", "nonsense", "localhost:0", "a:99999"]
)
def test_job_cannot_send_the_agent_to_another_machine(text: str) -> None:
    with pytest.raises(RasError):
        address.endpoint({"NCCL_RAS_ADDR": text})


def test_ras_that_is_switched_off_is_not_asked() -> None:
    assert address.endpoint({"NCCL_RAS_ENABLE": "0"}) is None


def test_owners_of_listening_sockets_are_read_from_the_process_s_own_table(tmp_path: Path) -> None:
    folder = tmp_path / "7" / "net"
    folder.mkdir(parents=True)
    (folder / "tcp").write_text(TABLE)

    assert address.listeners(tmp_path, 7, 28028) == {1000}
    assert address.listeners(tmp_path, 7, 28029) == set()
    assert address.listeners(tmp_path, 8, 28028) == set()
