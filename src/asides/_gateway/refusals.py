"""`Refusal`: an error answer of the gateway itself, before any dialect has given it a shape."""

from __future__ import annotations

from ..reply._items import Failed

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    431: "invalid_request_error",
    504: "timeout_error",
}


class Refusal(Exception):
    """A request that is not carried out, or an upstream that does not answer. The message says what can be done."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.headers = headers

    @property
    def failed(self) -> Failed:
        """As a record that every dialect can write."""
        return Failed(self.message, self.status, KINDS.get(self.status, "api_error"), self.code, self.param)


class NotConnected(Refusal):
    """No connection to an upstream could be made, so nothing of the request was sent: another may be asked instead."""
