"""`asides audit`: an audit of the server at an address, or, where its first word is one, another command."""

from __future__ import annotations

from .parrot import add_parrot
from .server import audit, make_parser

PARROT = "parrot"
HELP = ("-h", "--help")


def run(arguments: list[str]) -> int:
    """`asides audit`."""
    parser = make_parser()
    if arguments and arguments[0] not in (PARROT, *HELP):
        parser.add_argument("url", metavar="URL", help="the address of the server; http:// may be left out")
        parser.set_defaults(do=audit)
    else:
        # argparse takes a word in this place for a command, so an address and commands cannot be had at once.
        add_parrot(
            parser.add_subparsers(title="commands", required=True, metavar="URL or COMMAND", prog="asides audit")
        )
    options = parser.parse_args(arguments)
    code: int = options.do(options)
    return code
