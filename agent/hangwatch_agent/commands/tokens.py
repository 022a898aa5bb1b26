"""`token create`, `token list` and `token revoke`, through the API of a running server."""

from __future__ import annotations

import argparse

from hangwatch_agent import client
from hangwatch_agent.commands import connection, output
from hangwatch_agent.commands.flags import Commands

SCOPES = ("agent", "read", "operate", "admin")


def add(commands: Commands) -> None:
    token = commands.add_parser("token", help="create, list and revoke tokens")
    actions = token.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a token and print it, this once")
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        choices=SCOPES,
        dest="scopes",
        help="what it may do; give it again for more. admin may do all, operate may read",
    )
    create.add_argument("--node", help="the node that an agent's token speaks for")
    create.add_argument("--name", help="who or what uses it; default: the node, or the scope")
    create.add_argument("--expires-in", metavar="DURATION", help="such as 90d; default: never")
    create.set_defaults(handler=_create)
    listing = actions.add_parser("list", help="list tokens, without their texts")
    listing.set_defaults(handler=_list)
    revoke = actions.add_parser("revoke", help="make a token useless")
    revoke.add_argument("id", help="as `hangwatch token list` shows it")
    revoke.set_defaults(handler=_revoke)
    for parser in (create, listing, revoke):
        connection.add(parser)


def _create(arguments: argparse.Namespace) -> int:
    name = arguments.name or arguments.node or arguments.scopes[0]
    created = connection.connect(arguments).create_token(
        name, arguments.scopes, arguments.node, arguments.expires_in
    )
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
    headings = ("ID", "NAME", "PREFIX", "SCOPES", "NODE", "LAST USED", "STATE")
    output.table(headings, [_row(token) for token in tokens.items])
    return 0


def _row(token: client.Token) -> tuple[str, ...]:
    state = "revoked" if token.is_revoked else "live"
    if not token.is_revoked and token.expires_at:
        state = f"until {token.expires_at}"
    scopes = ",".join(token.scopes)
    used = token.last_used_at or "never"
    return (token.id, token.name, token.prefix, scopes, token.node or "", used, state)


def _revoke(arguments: argparse.Namespace) -> int:
    connection.connect(arguments).revoke_token(arguments.id)
    output.note(f"token {arguments.id} is revoked")
    return 0
