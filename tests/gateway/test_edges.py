"""Rare input to small pieces of the gateway, which no whole request brings about easily."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from asides._config import Config, UpstreamSettings
from asides._config.schema import ModelSettings, ReplayCacheSettings
from asides._gateway.bodies import read_json
from asides._gateway.bounded import BoundedDict
from asides._gateway.entry_store import _report
from asides._gateway.model_list import write_show
from asides._gateway.model_profile import Profiles, _Shown, _unsplit
from asides._gateway.observe.logs import _JsonLog, _value
from asides._gateway.observe.metrics import Metrics
from asides._gateway.origins import LONGEST_KNOWN, Origins, read_host
from asides._gateway.protocol import Connection, _head, begin_chunks, respond
from asides._gateway.refusals import Refusal
from asides._gateway.replay_cache import ReplayCache, ReplayEntry, _canonical, _update_turn
from asides._gateway.siblings import Siblings
from asides._gateway.upstreams import own_headers, split_address
from asides.dialects._request import (
    CallPiece,
    ImagePiece,
    OtherPiece,
    RequestPiece,
    RequestTurn,
    TextPiece,
    ThinkingPiece,
)
from tests.waiting import PATIENCE


def test_a_bounded_dict_is_emptied_when_it_is_full() -> None:
    """It never holds more than it may, and always what came last."""
    found = BoundedDict[int, str](2)
    for number in range(5):
        found[number] = "x"
        assert len(found) <= 2
        assert number in found


@pytest.mark.parametrize("text", ["localhost:port", "localhost:99999", "[::1"])
def test_a_host_that_cannot_be_read_is_none(text: str) -> None:
    """And is no reason to fail: whoever sends it is refused."""
    assert read_host(text) is None


def test_a_user_in_an_address_is_an_authorization() -> None:
    """Unquoted, as the address had to quote it; a configured header wins."""
    url = "http://us%3Aer:p%40ss@server/v1"
    assert own_headers(UpstreamSettings(url=url)) == {"authorization": "Basic dXM6ZXI6cEBzcw=="}
    headers = {"Authorization": "Bearer other"}
    assert own_headers(UpstreamSettings(url=url, headers=headers)) == {"authorization": "Bearer other"}


@pytest.mark.parametrize(
    ("url", "split"),
    [
        ("http://server", ("http://server", "/v1")),
        ("http://server/v1/", ("http://server", "/v1")),
        ("https://server/api/paas/v4", ("https://server/api/paas/v4", "")),
        ("https://server/v1beta/openai", ("https://server/v1beta/openai", "")),
    ],
)
def test_where_the_api_begins(url: str, split: tuple[str, str]) -> None:
    """A provider with a version scheme of its own is taken at its word."""
    assert split_address(url) == split


def test_a_line_of_another_library_that_is_wrong_is_logged_all_the_same() -> None:
    """With its message as it was written."""
    record = logging.LogRecord("other", logging.INFO, "", 1, "%d of %d", ("three",), None)
    assert "%d of %d" in _JsonLog(()).format(record)


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: x", b"a\x00b", b"\x7f"])
def test_no_header_of_an_answer_begins_another(value: bytes) -> None:
    """A line break in a value would."""
    cycle = cast(Any, SimpleNamespace(default_headers=[], keep_alive=True))
    with pytest.raises(ValueError, match="holds what no header may"):
        _head(cycle, 200, [(b"x-name", value)])


def test_half_a_surrogate_pair_is_replaced_in_what_a_client_sends() -> None:
    """Not in what an upstream sends, and other broken JSON is refused."""
    body = b'{"text": "a\\ud83d"}'
    assert read_json(body, mend=True) == {"text": "a\ufffd"}
    for broken, mend in ((body, False), (b'{"text": ', True)):
        with pytest.raises(Refusal, match="not JSON"):
            read_json(broken, mend=mend)


def test_turns_that_differ_have_hashes_that_differ() -> None:
    """Of every kind of piece, images and unknown ones too: else one conversation would be given another's thoughts."""
    pieces: list[RequestPiece] = [
        TextPiece("a"),
        ImagePiece(url="a"),
        ImagePiece(data="a"),
        OtherPiece({"a": 1}),
        OtherPiece({"a": 2}),
        CallPiece("a", '{"b": 1}'),
        CallPiece("a", "no JSON"),
    ]
    digests = set()
    for piece in pieces:
        hash = hashlib.blake2b(digest_size=32)
        _update_turn(hash, RequestTurn("user", (piece,)))
        digests.add(hash.digest())
    assert len(digests) == len(pieces)


def test_thinking_does_not_count_in_a_turn() -> None:
    """That it may be missing is the point."""
    turns = [
        RequestTurn("assistant", (TextPiece("a"),)),
        RequestTurn("assistant", (ThinkingPiece("hm"), TextPiece("a"))),
    ]
    hashes = [hashlib.blake2b() for _ in turns]
    for hash, turn in zip(hashes, turns, strict=True):
        _update_turn(hash, turn)
    assert hashes[0].digest() == hashes[1].digest()


def test_arguments_count_as_values() -> None:
    """However a client has spaced or ordered them; what is no JSON counts as it stands."""
    assert _canonical('{"b": 1, "a": 2}') == _canonical('{"a":2,"b":1}')
    assert _canonical("{broken") == "{broken"


def test_values_of_a_log_line() -> None:
    """Each is one word, or quoted."""
    values = (True, False, 3, "a b", {"x": 2, "y": 1})
    assert [_value(value) for value in values] == ["yes", "no", "3", '"a b"', "x:2,y:1"]


def test_a_later_reply_outlives_the_earlier_under_their_common_key() -> None:
    """The same conversation may be answered twice; what goes first is not what the client has seen last."""
    cache = ReplayCache(ReplayCacheSettings(entries=1))
    for thinking in ("first", "second"):
        cache.add("ann", ReplayEntry(thinking, "", (), (b"key",)))
    assert [cache._entries[number][1].thinking for number in cache._by_key.values()] == ["second"]


def test_a_long_host_is_not_remembered() -> None:
    """It is judged alike each time, and nobody fills the memory with names."""
    origins = Origins(Config())
    long = "a" * LONGEST_KNOWN + ".localhost"
    for _ in range(2):
        origins.check(long, "")
        with pytest.raises(Refusal, match="not called"):
            origins.check(long + ".example", "")
    assert not origins._known
    origins.check("localhost", "")
    assert list(origins._known) == ["localhost"]


def test_a_result_for_a_loop_that_is_closed() -> None:
    """Nobody waits for it, and the thread that brings it goes on."""
    loop = asyncio.new_event_loop()
    done = loop.create_future()
    loop.close()
    _report(loop, done, done.set_result, 1)
    assert not done.done()


def test_a_worker_that_never_listened_closes(tmp_path: Path) -> None:
    """And takes nobody's socket with it."""
    other = tmp_path / "1.sock"
    other.touch()
    asyncio.run(Siblings(str(tmp_path), 1, {}).close())
    assert other.exists()


def test_another_history_is_counted_from_then_on() -> None:
    """After a reload; a figure is not registered twice."""
    metrics = Metrics()
    for count in (1, 2):
        metrics.watch_history(lambda count=count: count, lambda: 0, lambda: 0)  # type: ignore[misc]
    assert metrics._registry.get_sample_value("asides_history_kept") == 2


def test_a_model_that_is_not_split_is_not_shown_as_one_that_takes_tools() -> None:
    """Nothing is known of it."""
    assert write_show({}, "m", _unsplit(ModelSettings()), None)["capabilities"] == ["completion"]


def test_a_template_that_is_asked_for_again_is_not_waited_for() -> None:
    """What was shown before does until then."""

    async def work() -> None:
        profiles, upstream, going_on = Profiles(), cast(Any, SimpleNamespace(name="far")), asyncio.Event()
        profiles._shown["far", "m"] = before = _Shown()
        profiles._fetching["far", "m"] = fetching = asyncio.create_task(cast(Any, going_on.wait()))
        async with asyncio.timeout(PATIENCE):
            assert await profiles._show(upstream, "m", "") is before
        going_on.set()
        await fetching

    asyncio.run(work())


class Gone:
    """A connection whose client has left; and one whose answer is on its way."""

    def __init__(self) -> None:
        self.flow = SimpleNamespace(write_paused=False)
        self.disconnected, self.chunked_encoding, self.response_complete = True, None, False
        self.transport = self.cycle = self
        self.written: list[Any] = []
        self._timer = None

    def write(self, data: bytes) -> None:
        """Take what would be sent."""
        self.written.append(data)

    def is_closing(self) -> bool:
        """Not yet."""
        return False

    def close(self) -> None:
        """Remember that it was closed."""
        self.written.append("closed")


def test_nothing_is_written_to_a_client_that_has_left() -> None:
    """And nobody needs to send it by another way."""
    cycle: Any = Gone()
    assert begin_chunks(cycle, 200, [])
    assert respond(cycle, 200, [], b"body")
    assert cycle.written == []


def test_the_next_request_that_comes_slowly_does_not_cut_an_answer_off() -> None:
    """Its connection is closed only where nothing is being answered."""
    connection: Any = Gone()
    Connection._late(connection)
    assert connection.written == []
    connection.response_complete = True
    Connection._late(connection)
    assert connection.written == ["closed"]
