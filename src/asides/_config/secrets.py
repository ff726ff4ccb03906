"""What must not be shown, and `$NAME` in what must not be written down. Knows no file."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = "(hidden)"
NOT_NAMED = "that was only found in the current folder; if the file is yours, name it: --config asides.yaml"
"""Why such a file gets no secret, and what to do."""
_REFERENCE = re.compile(r"\$(?:\$|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[^}]*)\})")
# Both are linear in any text, because logs are searched with them: a scheme is short, and a name ends at a `?`.
_USER = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^/?#\s]*@")
_QUERY = re.compile(r"(?P<name>[?&][^=&?#\s]*=)[^&#\s]+")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:key|apikey|secret|password|passwd|authorization|bearer|credentials?|token|cookie)$", re.IGNORECASE
)


def expand(text: str, environ: Mapping[str, str] | None) -> tuple[str, list[str]]:
    """The text with `$NAME` and `${NAME}` from the environment, `$$` for a dollar sign; and what is wrong.

    Without an environment, because the text is not the user's own, every name is a mistake.
    """
    wrong: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name = match["bare"] or match["braced"]
        if name is None:
            return "$"
        shown = re.sub(r"[^\w:.-]", "?", name)[:80]
        if environ is None:
            wrong.append(f"the environment variable {shown} is not looked up for a file {NOT_NAMED}")
            return ""
        value = environ.get(name, "")
        if not value:
            state = "set but empty" if name in environ else "not set"
            wrong.append(f"the environment variable {shown} is {state} (for a dollar sign write $$)")
        return value

    return _REFERENCE.sub(replace, text), wrong


def hide_url(url: str) -> str:
    """The address without its user, password and the values of its query."""
    return _QUERY.sub(rf"\g<name>{HIDDEN}", _USER.sub(rf"\g<scheme>{HIDDEN}@", url))


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is likely a secret: `api_key` and `X-Token`, but not `max_tokens`."""
    return _SECRET_NAME.search(name.replace("-", "_")) is not None
