"""A client for model servers: messages in, events out as they come. Synchronous, on the standard library."""

from __future__ import annotations

from ._client import Client, Message, Think
from ._http import UpstreamError

__all__ = ["Client", "Message", "Think", "UpstreamError"]
