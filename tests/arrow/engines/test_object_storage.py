"""Object storage over a real socket: `asides batch`, Polars and DuckDB read from and write to an S3 server (moto's)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("moto.server", reason="moto is not installed: make test-engines-light")
boto3: Any = pytest.importorskip("boto3", reason="boto3 is not installed: make test-engines-light")
pytest.importorskip("s3fs", reason="s3fs is not installed: make test-engines-light")

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: E402

from tests.cli.batch_files import read_parquet, rows, write_lines, write_parquet  # noqa: E402
from tests.cli.running import COMMAND, environment, run  # noqa: E402
from tests.ports import held_port  # noqa: E402
from tests.waiting import PATIENCE  # noqa: E402

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "one", "AWS_SECRET_ACCESS_KEY": "two", "AWS_DEFAULT_REGION": "us-east-1"}


class Store:
    """An S3 server in a process of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.1)
        self.client: Any = boto3.client("s3", endpoint_url=self.url)
        self.client.create_bucket(Bucket="bucket")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Empty, at the same address."""
        self._start()

    def put(self, path: Path, key: str) -> str:
        self.client.upload_file(str(path), "bucket", key)
        return f"s3://bucket/{key}"

    def get(self, key: str, path: Path) -> Path:
        self.client.download_file("bucket", key, str(path))
        return path

    def keys(self) -> list[str]:
        return [each["Key"] for each in self.client.list_objects_v2(Bucket="bucket").get("Contents", [])]

    def uploads(self) -> list[Any]:
        """Uploads in parts that have neither been completed nor aborted."""
        return list(self.client.list_multipart_uploads(Bucket="bucket").get("Uploads", []))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A server, and the environment that leads every client to it."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with held_port() as port:
        server = Store(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        yield server
        server.stop()


def batch(folder: Path, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """`asides batch` in a folder of its own, where its working folder will be."""
    command = [*COMMAND, "batch", *map(str, arguments)]
    return subprocess.run(
        command, env=environment(), cwd=folder, capture_output=True, check=False, timeout=PATIENCE * 4
    )


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_from_a_bucket_to_a_bucket(jobs: str, store: Store, tmp_path: Path) -> None:
    """Globs and folders, all kinds, several processes: the same rows as from files here."""
    table = write_parquet(tmp_path / "a.parquet", rows(400), group=40)
    lines = write_lines(tmp_path / "b.jsonl", rows(300, seed=2))
    store.put(table, "in/a.parquet")
    store.put(lines, "in/b.jsonl")
    assert run("batch", str(table), str(lines), "-o", str(tmp_path / "whole.parquet")).returncode == 0
    done = batch(tmp_path, "s3://bucket/in/", "-o", "s3://bucket/out.parquet", "--jobs", jobs, "--range-size", "0.002")
    assert done.returncode == 0, done.stderr
    assert read_parquet(store.get("out.parquet", tmp_path / "got.parquet")) == read_parquet(tmp_path / "whole.parquet")
    assert not (tmp_path / "out.parquet.partial").exists()
    done = batch(tmp_path, "s3://bucket/in/*.jsonl", "-o", "s3://bucket/new/out.jsonl.gz", "--jobs", jobs)
    assert done.returncode == 0, done.stderr
    assert sorted(store.keys()) == ["in/a.parquet", "in/b.jsonl", "new/out.jsonl.gz", "out.parquet"]


def test_what_is_refused(store: Store, tmp_path: Path) -> None:
    """Before anything is split, with a reason, and no traceback."""
    source = write_lines(tmp_path / "in.jsonl", rows(3))
    store.put(source, "there.jsonl")
    for arguments, words in (
        ([source, "-o", "s3://bucket/there.jsonl"], b"s3://bucket/there.jsonl: exists already; --force replaces it"),
        ([source, "-o", "s3://nobody/out.jsonl"], b"there is no bucket nobody"),
        (["s3://bucket/none.jsonl", "-o", "out.jsonl"], b"s3://bucket/none.jsonl: no such file"),
        (["s3://bucket/*.parquet", "-o", "out.jsonl"], b"s3://bucket/*.parquet: no such file"),
        (["s3://bucket/there.jsonl", "-o", "s3://bucket/there.jsonl", "--force"], b"the output cannot be an input too"),
    ):
        done = batch(tmp_path, *arguments)
        assert done.returncode == 2
        assert words in done.stderr
        assert b"Traceback" not in done.stderr
        assert not list(tmp_path.glob("*.partial"))
    done = batch(tmp_path, source, "-o", "s3://bucket/there.jsonl", "--force")
    assert done.returncode == 0, done.stderr
    assert b'"thinking"' in store.get("there.jsonl", tmp_path / "got.jsonl").read_bytes()


def test_a_server_that_goes_away(store: Store, tmp_path: Path) -> None:
    """What is finished is kept, the reason is one line, and --resume sends it when the server is back."""
    source = write_parquet(tmp_path / "in.parquet", rows(200), group=20)
    arguments = [source, "-o", "s3://bucket/out.parquet", "--range-size", "0.001", "--work", tmp_path]
    command = [*COMMAND, "batch", *map(str, arguments)]
    folder = tmp_path / "out.parquet.partial"
    for _ in range(20):
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE
        while not list(folder.glob("range-*.rows")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        store.stop()
        errors = process.communicate(timeout=PATIENCE * 4)[1]
        if process.returncode:
            break
        store.restart()  # all had been sent before it was stopped: from the beginning
    assert process.returncode == 2, errors
    assert b"Traceback" not in errors
    assert b"10 of 10 ranges are finished" in errors
    assert b"--resume" in errors
    store.restart()
    before = {path: path.stat().st_ino for path in folder.glob("range-*.rows")}
    done = batch(tmp_path, *arguments, "--resume", "--keep")
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_ino for path in before} == before
    assert pq.read_metadata(store.get("out.parquet", tmp_path / "got.parquet")).num_rows == 200


def test_killed_while_it_sends_in_parts(store: Store, tmp_path: Path) -> None:
    """Nothing is under the name until all of it is there; --resume splits nothing again and sends it."""
    letters = random.Random(0)
    texts = [f"<think>{row}</think>{letters.randbytes(60_000).hex()}" for row in range(1_000)]
    source = write_lines(tmp_path / "in.jsonl", [{"text": text} for text in texts])
    arguments = [source, "-o", "s3://bucket/out.jsonl", "--work", tmp_path]
    process = subprocess.Popen([*COMMAND, "batch", *map(str, arguments)], env=environment(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE * 2
    while not store.uploads() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert store.uploads(), "it was sent in one piece"
    assert store.keys() == []
    manifest = (tmp_path / "out.jsonl.partial" / "manifest.jsonl").read_bytes()
    done = batch(tmp_path, *arguments, "--resume", "--keep")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl.partial" / "manifest.jsonl").read_bytes() == manifest
    got = store.get("out.jsonl", tmp_path / "got.jsonl")
    assert got.stat().st_size > 110_000_000
    assert got.read_bytes().count(b"\n") == 1_000


def test_another_output_of_the_same_name(store: Store, tmp_path: Path) -> None:
    """Its folder here is not taken for this one's."""
    source = write_lines(tmp_path / "in.jsonl", rows(3))
    assert batch(tmp_path, source, "-o", "s3://bucket/a/out.jsonl", "--keep").returncode == 0
    done = batch(tmp_path, source, "-o", "s3://bucket/b/out.jsonl", "--resume")
    assert done.returncode == 2
    assert b'output was "s3://bucket/a/out.jsonl", is "s3://bucket/b/out.jsonl"' in done.stderr
    assert store.keys() == ["a/out.jsonl"]


def test_polars(store: Store, tmp_path: Path) -> None:
    """As the page has it."""
    pl: Any = pytest.importorskip("polars", reason="Polars is not installed: make test-engines-light")
    import asides.arrow.polars  # noqa: F401

    store.put(write_parquet(tmp_path / "a.parquet", rows(50)), "traces/a.parquet")
    options = {"aws_endpoint_url": store.url, "aws_allow_http": "true", "aws_region": "us-east-1"}
    options |= {name.lower(): CREDENTIALS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    lazy = pl.scan_parquet("s3://bucket/traces/*.parquet", storage_options=options)
    lazy.with_columns(split=pl.col("text").asides.split()).sink_parquet(
        "s3://bucket/split.parquet", storage_options=options
    )
    got = pq.read_table(store.get("split.parquet", tmp_path / "got.parquet")).to_pylist()
    assert [row["id"] for row in got] == list(range(50))
    assert any(row["split"] and row["split"]["thinking"].startswith("thought") for row in got)


def test_duckdb(store: Store, tmp_path: Path) -> None:
    """By the file system of fsspec, which needs no extension of DuckDB's."""
    duckdb: Any = pytest.importorskip("duckdb", reason="DuckDB is not installed: make test-engines-light")
    import fsspec  # type: ignore[import-untyped]

    import asides.arrow.duckdb

    store.put(write_parquet(tmp_path / "a.parquet", rows(50)), "traces/a.parquet")
    connection = duckdb.connect()
    connection.register_filesystem(fsspec.filesystem("s3"))
    asides.arrow.duckdb.register(connection)
    connection.execute(
        "copy (select id, asides_split(text) as split from 's3://bucket/traces/*.parquet') to 's3://bucket/split.parquet'"
    )
    connection.close()
    got = pq.read_table(store.get("split.parquet", tmp_path / "got.parquet")).to_pylist()
    assert sorted(row["id"] for row in got) == list(range(50))
    assert any(row["split"] and row["split"]["thinking"].startswith("thought") for row in got)


def test_duckdb_httpfs(store: Store, tmp_path: Path) -> None:
    """By DuckDB's own extension, where it is there or can be fetched."""
    duckdb: Any = pytest.importorskip("duckdb", reason="DuckDB is not installed: make test-engines-light")
    import asides.arrow.duckdb

    connection = duckdb.connect()
    try:
        connection.execute(os.environ.get("ASIDES_HTTPFS", "install httpfs; load httpfs"))
    except duckdb.Error as error:
        pytest.skip(f"the extension httpfs cannot be loaded: {str(error).splitlines()[0]}")
    store.put(write_parquet(tmp_path / "a.parquet", rows(50)), "traces/a.parquet")
    asides.arrow.duckdb.register(connection)
    connection.execute(
        f"create secret (type s3, key_id 'one', secret 'two', endpoint '127.0.0.1:{store.port}', use_ssl false, "
        "url_style 'path')"
    )
    connection.execute(
        "copy (select *, asides_split(text) as split from 's3://bucket/traces/*.parquet') to 's3://bucket/split.parquet'"
    )
    connection.close()
    got = pq.read_table(store.get("split.parquet", tmp_path / "got.parquet")).to_pylist()
    assert sorted(row["id"] for row in got) == list(range(50))
