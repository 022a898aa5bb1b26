"""What a file that cannot be read seems to be, by its bytes, and what to give instead."""

from __future__ import annotations

_STARTS = (
    (b"PK\x03\x04", "a zip archive", "unpack it and give the files in it"),
    (b"\x1f\x8b", "compressed with gzip", "unpack it with gunzip and give the file in it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with unzstd and give the file in it"),
    (b"BZh", "compressed with bzip2", "unpack it and give the file in it"),
    (b"\xfd7zXZ", "compressed with xz", "unpack it and give the file in it"),
    (b"\x89PNG", "a picture", "give the text itself"),
    (b"\xff\xd8\xff", "a picture", "give the text itself"),
    (b"%PDF", "a PDF", "give the text itself"),
    (b"\x93NUMPY", "a NumPy array", "no diagnosis needs it"),
    (b"<!DOCTYPE", "a web page", "save the file itself, not the page that shows it"),
    (b"<html", "a web page", "save the file itself, not the page that shows it"),
)
_ELF = b"\x7fELF"
_NCCL_LOG = b"NCCL INFO"
_TRACEBACK = b"Traceback (most recent call last)"


def guess(data: bytes) -> tuple[str, str]:
    """("a zip archive", "unpack it and give the files in it")."""
    head = data[:4096]
    for start, what, remedy in _STARTS:
        if head.startswith(start):
            return what, remedy
    if head.startswith(_ELF):
        return "a program or a core file", "stacks of a core file: pystack core FILE"
    if data[257:262] == b"ustar":
        return "a tar archive", "unpack it and give the files in it"
    if not data.strip():
        return "an empty file", "the rank may have ended before it wrote it; look for a newer one"
    if _NCCL_LOG in head:
        return "a log of NCCL (NCCL_DEBUG)", "give the recorder's dumps or RAS's answer instead"
    if _TRACEBACK in data[:65536]:
        return "a log with a Python traceback", "give the recorder's dumps of the same job"
    if b"\0" in head:
        return (
            "binary data of no kind that is known here",
            "give recorder dumps, RAS or py-spy output",
        )
    return "text of no kind that is known here", "give recorder dumps, RAS or py-spy output"


def place(data: bytes, byte: int) -> str:
    """`line 12 (byte 4031)`: where in a text something is wrong."""
    line = data.count(b"\n", 0, byte) + 1
    return f"line {line} (byte {byte})" if line > 1 else f"byte {byte}"
