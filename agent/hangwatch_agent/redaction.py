"""Takes secrets out of texts before they leave the node: of source lines, errors, names.

Environments and command lines are never sent: of both only the job's and the script's name. What
is sent may still quote a secret: an exception's message an address with a password, a source line
a key. What has the form of a secret is replaced here, so that neither the server nor its database
ever sees it. Code that only speaks of tokens (`token = tokens[i]`) stays as it is.
"""

from __future__ import annotations

import functools
import re

MARK = "[redacted]"
MAX_CHARS = 20_000  # longer texts are cut before: nothing that is sent is as long

# A whole word, read once and never given back: jobs choose these texts, and a pattern that tried
# each part of a long word again would take hours over one of them.
_LETTER = r"[A-Za-z0-9_.\-]"
_NAME = (
    rf"(?<!{_LETTER})(?i:(?={_LETTER}*(?:passw(?:or)?d|passphrase|secret|credential|api[_-]?key"
    r"|access[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|authorization)"
    rf"|{_LETTER}*(?<![A-Za-z0-9])(?:token|pwd)(?!{_LETTER})|{_LETTER}*[_-]key(?!{_LETTER})))"
    rf"{_LETTER}++"
)
# By what comes before it: group 1 stays, the rest of the match goes.
_AFTER = (
    # scheme://user:password@host, also without a user
    r"([A-Za-z][A-Za-z0-9+.\-]{0,30}://)[^\s/@\"'<>]{1,300}@",
    # --token X, --password=X, -Dapi.key=X
    rf"((?=-){_NAME}[= ])\s*(?!-)[^\s\"']+",
    # WANDB_API_KEY=X as in an environment: capitals, nothing between
    rf"((?=[A-Z0-9_]{{3,80}}=){_NAME}=)[^\s\"']+",
    # api_key = "X", "password": "X", token='X': a text that a name of a secret is given
    rf"({_NAME}[\"']?\s*(?:[:=]|=>)\s*[rbfuRBFU]{{0,2}}[\"'])"
    r"[^\"']{1,2000}",
    # Authorization: Bearer X
    r"((?i:\bbearer|\bbasic)\s+)[A-Za-z0-9._~+/=\-]{8,}",
    # ?token=X&sig=X in an address
    r"([?&](?i:token|sig|signature|key|password|secret|api_key|access_token|x-amz-signature"
    r"|x-amz-credential|x-amz-security-token|x-goog-signature)=)[^\s&\"'#]+",
    # webhooks whose address is the secret
    r"(hooks\.slack\.com/(?:services|workflows)/)[A-Za-z0-9/_\-]+",
    r"(discord(?:app)?\.com/api/webhooks/)[A-Za-z0-9/_\-]+",
)
# By their own form.
_ALONE = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"\b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}\b",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bsk-[A-Za-z0-9_\-]{20,}",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    r"\bglpat-[A-Za-z0-9_\-]{20,}",
    r"\bxox[abeprs]-[A-Za-z0-9\-]{10,}",
    r"\bnvapi-[A-Za-z0-9_\-]{20,}",
    r"\bAIza[A-Za-z0-9_\-]{35}",
    r"\bya29\.[A-Za-z0-9_\-]{20,}",
    r"\bpypi-[A-Za-z0-9_\-]{30,}",
    r"\bhw_[0-9a-f]{8}_[A-Za-z0-9_\-]{20,}",
    r"\beyJ[A-Za-z0-9_\-]{8,2000}\.[A-Za-z0-9_\-]{8,9000}\.[A-Za-z0-9_\-]*",
)
_PATTERNS = tuple(
    (re.compile(pattern, re.DOTALL), replacement)
    for patterns, replacement in ((_ALONE, MARK), (_AFTER, rf"\g<1>{MARK}"))
    for pattern in patterns
)
# Most texts hold nothing of the kind, and are looked at once.
_WORTH_A_LOOK = re.compile(
    r"(?i:passw|passphrase|pwd|secret|credential|key|token|auth|bearer|basic|sig)"
    r"|://|webhooks|PRIVATE KEY|A[KSGR][IOP]A|hf_|sk-|gh[pousr]_|glpat-|xox|nvapi-|AIza|ya29"
    r"|github_pat|pypi-|hw_|eyJ"
)


@functools.lru_cache(maxsize=4096)
def text(given: str) -> str:
    """The text without what has the form of a secret; deterministic, and of no greater meaning."""
    found = given[:MAX_CHARS]
    if _WORTH_A_LOOK.search(found) is None:
        return found
    for pattern, replacement in _PATTERNS:
        found = pattern.sub(replacement, found)
    return found
