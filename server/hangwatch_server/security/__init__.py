"""Who may do what: tokens, browser sessions, and the dependencies that routes declare.

Routes write `Annotated[Caller, Depends(security.require("read"))]`; ingest asks
`Authenticator.check`. What a caller then does is not decided here.
"""

from hangwatch_server.security.access import (
    Caller,
    ForbiddenError,
    UnauthorisedError,
    csrf_token,
    require,
)
from hangwatch_server.security.authenticator import Authenticator, TokenError
from hangwatch_server.security.scopes import Scope, granted
from hangwatch_server.security.sessions import Sessions

__all__ = [
    "Authenticator",
    "Caller",
    "ForbiddenError",
    "Scope",
    "Sessions",
    "TokenError",
    "UnauthorisedError",
    "csrf_token",
    "granted",
    "require",
]
