"""Which form of a page a request asks for: one address gives HTML, text and JSON by `Accept`."""

from __future__ import annotations

from fastapi import Request

_FORMS = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "text",
    "application/json": "json",
}


def wanted(request: Request) -> str:
    """`html`, `text` or `json`: the first of them that has the highest weight; html for any."""
    best, form = 0.0, "html"
    for offer in request.headers.get("accept", "").split(","):
        kind, _, rest = offer.strip().partition(";")
        found = _FORMS.get(kind.strip().lower())
        weight = _weight(rest)
        if found is not None and weight > best:
            best, form = weight, found
    return form


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.strip().partition("=")
        if name == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
