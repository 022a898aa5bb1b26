"""What has the form of a secret does not leave the node; code that speaks of tokens does."""

from __future__ import annotations

import json
import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import launch, redaction, sources, wire
from hangwatch_agent.redaction import MARK

SECRET = st.text(string.ascii_letters + string.digits, min_size=16, max_size=60)
AROUND = st.text(st.characters(codec="utf-8", exclude_characters="\"'"), max_size=60)
KEYS = st.sampled_from(
    ["password", "passwd", "api_key", "API-KEY", "wandb_api_key", "auth_token", "client_secret",
     "aws_secret_access_key", "hf_token", "HUGGING_FACE_HUB_TOKEN", "access_key", "token"]
)  # fmt: skip
FORMS: dict[str, Callable[[str, str], str]] = {
    "flag and value": lambda key, secret: f"--{key} {secret}",
    "flag with equals": lambda key, secret: f"--{key}={secret}",
    "environment": lambda key, secret: f"MY_{key.upper().replace('-', '_')}={secret}",
    "assignment": lambda key, secret: f"{key.replace('-', '_')} = '{secret}'",
    "argument": lambda key, secret: f'login({key.replace("-", "_")}="{secret}")',
    "dict": lambda key, secret: f'{{"{key}": "{secret}"}}',
    "query": lambda key, secret: f"https://host/path?a=1&token={secret}&b=2",
    "credentials": lambda key, secret: f"tcp://ada:{secret}@10.0.0.1:29500",
    "bearer": lambda key, secret: f"Authorization: Bearer {secret}",
    "slack": lambda key, secret: f"https://hooks.slack.com/services/T0/B0/{secret}",
}
TOKENS = [
    "AKIAIOSFODNN7EXAMPLE",
    "hf_" + "a1B2" * 9,
    "sk-proj-" + "x9Y8" * 10,
    "ghp_" + "k" * 36,
    "github_pat_" + "1a" * 30,
    "xoxb-123456789012-abcdefGHIJ",
    "glpat-" + "q" * 20,
    "nvapi-" + "Z_9-" * 12,
    "AIza" + "S" * 35,
    "hw_0a1b2c3d_" + "t" * 43,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
]
CODE = [
    "token = tokens[i]",
    "loss = model(token_ids, key=key, value=value)",
    "num_tokens=512, max_tokens: int = 4096",
    "for key, value in batch.items():",
    'x = batch["token_ids"]',
    "self.key = nn.Linear(d, d)",
    "attn = F.scaled_dot_product_attention(q, key, v)",
    "dist.all_reduce(t, group=self.auth_group)",
    'path = "https://huggingface.co/datasets/c4"',
    "secret = os.environ['SECRET']",
    "raise KeyError(key)",
    "optimizer.step()  # basic idea: a bearer of gradients",
]


@pytest.mark.parametrize("form", FORMS)
@given(before=AROUND, key=KEYS, secret=SECRET, after=AROUND)
def test_what_a_name_of_a_secret_is_given_goes(
    form: str, before: str, key: str, secret: str, after: str
) -> None:
    found = redaction.text(f"{before}\n{FORMS[form](key, secret)} {after}")

    assert secret not in found.replace(before, "", 1).replace(after, "")
    assert MARK in found


@pytest.mark.parametrize("token", TOKENS)
def test_what_has_the_form_of_a_token_goes_wherever_it_is(token: str) -> None:
    for text in (token, f"uncaught Error: {token} is not valid", f"x({token!r})"):
        assert token not in redaction.text(text)


def test_a_private_key_goes_with_all_its_lines() -> None:
    body = "\n".join(["b3BlbnNzaC1rZXktdjEA" * 3] * 5)
    begin, end = (f"-----{word} OPENSSH PRIVATE KEY-----" for word in ("BEGIN", "END"))

    assert redaction.text(f"key\n{begin}\n{body}\n{end}\nrest") == f"key\n{MARK}\nrest"
    assert "b3Blbn" not in redaction.text(f"{begin}\n{body}")  # cut before its end


@pytest.mark.parametrize("code", CODE)
def test_code_that_only_speaks_of_secrets_stays(code: str) -> None:
    assert redaction.text(code) == code


@given(st.text(max_size=300))
def test_doing_it_twice_changes_nothing_more(given_text: str) -> None:
    once = redaction.text(given_text)

    assert redaction.text(once) == once


@pytest.mark.parametrize(
    "hostile",
    ["a_key_" * 3000, "--" * 9000, "://" * 6000, "token=" * 3000, "-" * 19000, 'pwd:"' * 4000,
     "eyJ" * 6000, "A" * 19000 + "=", "basic " * 3000, "api_key." * 2400, "--key" * 3900,
     "-" * 19000 + "key", "a." * 9900 + "key", "authorization-" * 1400, "-eyJ" * 4900],
    ids=lambda text: f"{text[:8]}…{text[-4:]}",
)  # fmt: skip
def test_a_hostile_text_is_read_to_its_end(hostile: str) -> None:
    assert len(redaction.text(hostile)) <= 2 * redaction.MAX_CHARS * len(MARK)


def test_source_lines_keep_their_number() -> None:
    begin = f"-----{'BEGIN'} PRIVATE KEY-----"
    lines = ["key = '''", begin, "MIIEvQ", "MIIEvR", "x = 1"]
    output = json.dumps([{"file": "a.py", "line": 3, "first": 1, "lines": lines}]).encode()

    (found,) = sources._decoded(output)

    assert len(found.lines) == len(lines)
    assert "MIIE" not in "".join(found.lines)


def test_the_name_of_a_job_holds_no_secret() -> None:
    environ = {"HANGWATCH_JOB": "run --token abcdefghij0123456789"}

    assert launch.launch_of(environ, ["python", "train.py"], "").name == f"run --token {MARK}"


def test_of_a_command_line_only_the_script_is_told() -> None:
    argv = ["python", "/home/ada/train.py", "--wandb-key", "0123456789abcdef"]

    made = launch.launch_of({"WANDB_API_KEY": "0123456789abcdef"}, argv, "start")

    assert "0123456789abcdef" not in str(
        wire.encode(wire.Heartbeat(number=1, launches=(made,), ranks=(), groups=()))
    )
