"""Who may do what: tokens, browser sessions, and the dependencies that routes declare.

Routes write `Annotated[Caller, Depends(security.require("read"))]`; ingest asks
`Authenticator.check`. What a caller then does is not decided here.
"""

from hangwatch_server.security.access import (
    Caller,
    ForbiddenError,
    UnauthorisedError,
    address_of,
    csrf_token,
    guard_of,
    jobs_of,
    require,
)
from hangwatch_server.security.authenticator import (
    Authenticator,
    EnrolmentError,
    TokenError,
    TokenRequest,
)
from hangwatch_server.security.bound import for_bound_callers
from hangwatch_server.security.forms import form_read_by
from hangwatch_server.security.guard import Guard
from hangwatch_server.security.roles import RolesError
from hangwatch_server.security.scopes import SCOPE_OF, Role, Scope, granted, role_of
from hangwatch_server.security.sessions import Sessions

__all__ = [
    "SCOPE_OF",
    "Authenticator",
    "Caller",
    "EnrolmentError",
    "ForbiddenError",
    "Guard",
    "Role",
    "RolesError",
    "Scope",
    "Sessions",
    "TokenError",
    "TokenRequest",
    "UnauthorisedError",
    "address_of",
    "csrf_token",
    "for_bound_callers",
    "form_read_by",
    "granted",
    "guard_of",
    "jobs_of",
    "require",
    "role_of",
]
