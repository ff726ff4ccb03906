"""Addresses such as `s3://bucket/name`, by way of fsspec: what is there, reading it, and putting a whole file there.

Every file system has exceptions of its own, so each becomes an error with a reason here. Credentials and endpoints are
the file system's own business: its environment variables and files, and fsspec's (`FSSPEC_S3_ENDPOINT_URL`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ..._extras import install_command
from ...errors import Error, UsageError

OBJECT_STORES = frozenset({"abfs", "abfss", "adl", "az", "gcs", "gs", "hf", "oss", "r2", "s3", "s3a"})
"""Where an object appears when all of it is there. Elsewhere it is written under another name first, and renamed."""


def is_remote(path: str) -> bool:
    """Whether it is an address for fsspec."""
    return "://" in path


def local_path(path: str) -> str:
    """The path of a `file://` address; any other as it is."""
    return url2pathname(urlsplit(path).path) if path.startswith("file://") else path


def protocol_of(path: str) -> str:
    """What stands before `://`."""
    return path.partition("://")[0]


def file_system(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            f"{path}: addresses need fsspec, which is not installed: {install_command('fsspec')}"
        ) from error
    with remote_errors(path):
        system, inside = fsspec.core.url_to_fs(path)
    return system, inside


@contextmanager
def remote_errors(path: str, missing: str = "no such file") -> Iterator[None]:
    """What file systems raise, as an error with a reason: packages that are missing, hosts that cannot be reached."""
    try:
        yield
    except Error:
        raise
    except FileNotFoundError as error:
        raise UsageError(f"{path}: {missing}") from error
    except Exception as error:  # every file system has exceptions of its own
        raise UsageError(f"{path}: {str(error).strip() or type(error).__name__}") from error


def open_remote(path: str, ahead: int = 0) -> IO[bytes]:
    """The file at an address. `ahead`: bytes that are fetched beyond what is read, for who reads on and on.

    Without, each read is a request for so many bytes: what a file system does by itself is tens of megabytes for a few
    bytes in the middle of a file.
    """
    system, inside = file_system(path)
    cached = {"cache_type": "readahead", "block_size": ahead} if ahead else {"cache_type": "none"}
    with remote_errors(path):
        try:
            file: IO[bytes] = system.open(inside, "rb", **cached)
        except TypeError:  # a file system that has no such choice
            file = system.open(inside, "rb")
    return file


def changed_at(path: str) -> datetime | None:
    """When the file at an address was last written; None where its file system does not tell."""
    system, inside = file_system(path)
    try:
        changed: datetime = system.modified(inside)
        return changed.astimezone(UTC)
    except Exception:  # every file system has exceptions of its own, and many no such function
        return None


def check_target(path: str, *, force: bool) -> None:
    """Refuse an address that cannot be written to, as far as that can be found out without writing."""
    system, inside = file_system(path)
    first = inside.partition("/")[0]
    with remote_errors(path):
        if protocol_of(path) in OBJECT_STORES and not system.exists(first):
            raise UsageError(f"{path}: there is no bucket {first}, or you may not read it")
        exists = system.exists(inside)
    if exists and not force:
        raise UsageError(f"{path}: exists already; --force replaces it when the job is done")


def upload(source: str, path: str) -> None:
    """Put a file at an address: all of it, or nothing under that name."""
    system, inside = file_system(path)
    whole = protocol_of(path) in OBJECT_STORES
    target = inside if whole else f"{inside}.{os.getpid()}.tmp"
    with remote_errors(path, "the folder or bucket is not there"):
        try:
            system.put_file(source, target)
            if not whole:
                system.mv(target, inside)
        except BaseException:
            if not whole:
                with suppress(Exception):
                    system.rm_file(target)
            raise
        system.invalidate_cache()
        size, there = os.path.getsize(source), system.info(inside)["size"]
    if size != there:
        raise Error(f"{path}: {there:,} bytes are there, {size:,} were sent")
