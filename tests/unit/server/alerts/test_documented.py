"""What docs/alerts.md shows is what a receiver can run: its check of a signature, its example."""

from __future__ import annotations

import base64
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from hangwatch_server.alerts.channels import payload, webhook
from hangwatch_server.alerts.channels.fields import key_bytes

PAGE = (Path(__file__).parents[4] / "docs" / "alerts.md").read_text(encoding="utf-8")
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
AT = 1_795_197_628


@pytest.fixture
def is_from_hangwatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, dict[str, str], bytes], bool]:
    (block,) = [text for text in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "def " in text]
    file = tmp_path / "receiver.py"
    file.write_text(block, encoding="utf-8")
    monkeypatch.setattr("time.time", lambda: AT + 1.0)
    check: Callable[[str, dict[str, str], bytes], bool] = runpy.run_path(str(file))[
        "is_from_hangwatch"
    ]
    return check


def signed(body: bytes, at: int = AT, key: str = KEY) -> dict[str, str]:
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(at),
        "webhook-signature": webhook.signatures([key_bytes(key)], "msg_1", at, body),
    }


def test_the_shown_check_takes_what_we_sign(
    is_from_hangwatch: Callable[[str, dict[str, str], bytes], bool],
) -> None:
    assert is_from_hangwatch(KEY, signed(b"{}"), b"{}")


def test_the_shown_check_takes_nothing_else(
    is_from_hangwatch: Callable[[str, dict[str, str], bytes], bool],
) -> None:
    other = "whsec_" + base64.b64encode(b"x" * 24).decode()

    assert not is_from_hangwatch(KEY, signed(b"{}"), b"{ }")
    assert not is_from_hangwatch(KEY, signed(b"{}", key=other), b"{}")
    assert not is_from_hangwatch(KEY, signed(b"{}", at=AT - 600), b"{}")


@pytest.mark.parametrize("name", sorted(payload.TYPES.values()))
def test_every_type_of_a_message_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE
