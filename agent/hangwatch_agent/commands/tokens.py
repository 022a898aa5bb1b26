"""`token create`, `token list` and `token revoke`, through the API of a running server."""

from __future__ import annotations

import argparse

from hangwatch_agent import client
from hangwatch_agent.commands import connection, output
from hangwatch_agent.commands.flags import Commands
from hangwatch_agent.errors import SettingsError

SCOPES = ("agent", "enrol", "read", "operate", "admin")
ROLES = {"viewer": "read", "operator": "operate", "admin": "admin"}


def add(commands: Commands) -> None:
    token = commands.add_parser("token", help="create, list and revoke tokens")
    actions = token.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a token and print it, this once")
    create.add_argument(
        "--role",
        action="append",
        type=_scope_of,
        metavar="{" + ",".join(ROLES) + "}",
        dest="scopes",
        help="what a person or a script may do: see everything, act on it, administer",
    )
    create.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        dest="scopes",
        help="the same by scopes, and agent or enrol for nodes; give it again for more",
    )
    create.add_argument("--node", help="the node that an agent's token speaks for")
    create.add_argument("--name", help="who or what uses it; default: the node, or the scope")
    create.add_argument(
        "--expires-in",
        "--expires",
        metavar="DURATION",
        help="such as 90d; default: never",
    )
    create.add_argument(
        "--jobs",
        metavar="PATTERN",
        default="",
        help="names of the jobs that it may see, or that an agent may speak of, such as 'llm-*'",
    )
    create.add_argument(
        "--nodes",
        metavar="PATTERN",
        default="",
        help="nodes that an enrolment token is for, such as 'gpu-*'",
    )
    create.add_argument(
        "--uses", type=int, metavar="N", help="how many nodes it enrols; default: any number"
    )
    create.add_argument(
        "--may-replace",
        action="store_true",
        help="an enrolment token may enrol a node anew, whose token then ends",
    )
    create.set_defaults(handler=_create)
    listing = actions.add_parser("list", help="list tokens, without their texts")
    listing.set_defaults(handler=_list)
    revoke = actions.add_parser("revoke", help="make a token useless")
    revoke.add_argument("id", help="as `hangwatch token list` shows it")
    revoke.add_argument(
        "--with-enrolled",
        action="store_true",
        help="and the tokens that agents came by with this enrolment token",
    )
    revoke.set_defaults(handler=_revoke)
    for parser in (create, listing, revoke):
        connection.add(parser)


def _create(arguments: argparse.Namespace) -> int:
    if not arguments.scopes:
        raise SettingsError(
            f"what may it do? Give --role {'|'.join(ROLES)}, or --scope agent or enrol for nodes"
        )
    name = arguments.name or arguments.node or arguments.scopes[0]
    wanted = client.TokenRequest(
        name=name,
        scopes=tuple(arguments.scopes),
        node=arguments.node,
        expires_in=arguments.expires_in,
        jobs=arguments.jobs,
        nodes=arguments.nodes,
        uses=arguments.uses,
        may_replace=arguments.may_replace,
    )
    created = connection.connect(arguments).create_token(wanted)
    if arguments.json:
        output.json(created.raw)
        return 0
    output.note(f"token {created.id} for {name}; it is shown only now:")
    print(created.token)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    tokens = connection.connect(arguments).tokens()
    if arguments.json:
        output.json(tokens.raw)
        return 0
    headings = ("ID", "NAME", "PREFIX", "ROLE", "FOR", "LAST USED", "STATE")
    output.table(headings, [_row(token) for token in tokens.items])
    return 0


def _row(token: client.Token) -> tuple[str, ...]:
    state = "revoked" if token.is_revoked else "live"
    if not token.is_revoked and token.expires_at:
        state = f"until {token.expires_at}"
    role = token.role or ",".join(token.scopes)
    used = token.last_used_at or "never"
    return (token.id, token.name, token.prefix, role, _limits(token), used, state)


def _limits(token: client.Token) -> str:
    """The node, nodes or jobs that it is for, "" for no limit."""
    found = [token.node or token.nodes or "", f"jobs {token.jobs}" if token.jobs else ""]
    if token.uses_left is not None:
        found.append(f"{token.uses_left} left")
    return ", ".join(filter(None, found))


def _scope_of(role: str) -> str:
    if role not in ROLES:
        raise argparse.ArgumentTypeError(f"'{role}' is no role: choose {', '.join(ROLES)}")
    return ROLES[role]


def _revoke(arguments: argparse.Namespace) -> int:
    connection.connect(arguments).revoke_token(arguments.id, with_enrolled=arguments.with_enrolled)
    output.note(f"token {arguments.id} is revoked")
    return 0
