"""History on the page: what each key may list, read, search, export and purge, and what operators may."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from asides import _history, parse
from asides._gateway.headers import fingerprint_of
from asides._gateway.page_history import _or_refuse
from asides._gateway.refusals import Refusal
from asides._history import text_turn
from tests.gateway.clients import get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import upstream
from tests.waiting import PATIENCE, eventually

A, B, OPERATOR = "page-key-aaa", "page-key-bbb", "page-key-ops"
WORDS = {A: "apricots", B: "bananas", "": "cherries"}
"""What each key's replies are about, in thoughts and answers; the empty key is nobody's."""
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Servers(NamedTuple):
    """Gateways on one store: with keys, without any, and one that others reach without keys."""

    guarded: Gateway
    open: Gateway
    beyond: Gateway
    off: Gateway
    store: str


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """One for all tests of this file."""
    store = str(tmp_path_factory.mktemp("history") / "history.db")
    with upstream() as server:
        shared: dict[str, Any] = {"upstreams": [{"url": server.url}], "history": {"save": True, "store": store}}
        keys = [A, B, {"key": OPERATOR, "operator": True, "name": "ops"}]
        with (
            gateway({**shared, "keys": keys, "log": {"form": "json"}}) as guarded,
            gateway({**shared, "allowed_hosts": ["chat.example"]}) as open,
            gateway({**shared, "allowed_hosts": ["chat.example"]}, "--host", "0.0.0.0") as beyond,
            gateway({**shared, "history": {"save": False, "store": store}}) as off,
        ):
            yield Servers(guarded, open, beyond, off, store)


@pytest.fixture(autouse=True)
def fill(servers: Servers) -> None:
    """Two replies of each key and two of nobody's, in one conversation each; the second has a call."""
    with _history.open(servers.store) as store:
        for _ in store.purge():
            pass
        for number, (key, word) in enumerate(WORDS.items()):
            labels = {"client": fingerprint_of(key) if key else "", "conversation": f"c-{word}", "source": "gateway"}
            for turn in range(2):
                call = '<tool_call>{"name": "find", "arguments": {"what": "x"}}</tool_call>' if turn else ""
                output = f"<think>Thinking of {word} {turn}.</think>I like {word}: number {turn}.{call}"
                store.keep(
                    parse(output, "qwen3"),
                    model=f"model-{word}",
                    time=LONG_AGO + timedelta(days=number, minutes=turn),
                    asked=[text_turn("user", f"What of {word}?")],
                    **labels,
                )


def read(running: Gateway, path: str, key: str = "", **headers: str) -> httpx.Response:
    """Get a path below history with a key."""
    shown = {"authorization": f"Bearer {key}"} if key else {}
    headers = {"x_asides_token": running.token, **headers}
    return get(running.url, f"/asides/history{path}", **shown, **headers)


def purge(running: Gateway, key: str = "", **body: Any) -> httpx.Response:
    """Purge with a key."""
    return post(running.url, "/asides/history/purge", body, headers={"x-api-key": key} if key else {})


def words_in(text: str) -> set[str]:
    """Whose replies a text shows."""
    return {word for word in WORDS.values() if word in text}


EVERYTHING = [
    "?limit=200",
    "?search=like",
    "?search=thinking",
    "/filters",
    "/conversations",
    "/export",
    "/export?form=markdown",
    "/export?form=markdown&thoughts=0",
    "/export?thoughts=0",
]


def figures(running: Gateway, query: str = "", key: str = "") -> httpx.Response:
    """Get figures with a key."""
    return get(
        running.url, f"/asides/figures{query}", x_asides_token=running.token, **({"x_api_key": key} if key else {})
    )


def test_figures(servers: Servers) -> None:
    """By model and by day, of one's own replies; with the charts of `asides stats` and their numbers."""
    for key in (A, B):
        found = figures(servers.guarded, "", key)
        assert found.status_code == 200
        assert words_in(found.text) == {WORDS[key]}
    own = figures(servers.guarded, "", A).json()
    (model,) = own["models"]
    assert (own["replies"], own["truncated"], model["model"], model["replies"]) == (2, False, "model-apricots", 2)
    assert (model["think"], model["words_median"], model["unclosed"], model["seconds_median"]) == (1.0, 4, 0.0, None)
    assert [(day["day"], day["replies"]) for day in own["by_day"]] == [("2026-01-01", 2)]
    whole = figures(servers.guarded, "", OPERATOR).json()
    assert [day["day"] for day in whole["by_day"]] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert {chart["section"] for chart in whole["charts"]} >= {"How long it thinks", "Over time"}
    for chart in whole["charts"]:
        assert chart["svg"].startswith("<div")
        assert "style=" not in chart["svg"]
        assert {len(row) for row in chart["table"]["rows"]} == {len(chart["table"]["heads"]) + 1}
    assert whole["definitions"]
    assert figures(servers.guarded, "?model=*&since=2026-01-03", OPERATOR).json()["replies"] == 2
    assert figures(servers.guarded, "?model=nothing", A).json()["charts"] == []
    assert figures(servers.guarded, f"?client={fingerprint_of(B)}", A).status_code == 403
    assert figures(servers.guarded, "?modle=x", A).status_code == 400
    assert figures(servers.guarded).status_code == 401
    assert get(servers.open.url, "/asides/figures").json()["error"]["code"] == "no_access"
    assert figures(servers.off).json()["error"]["code"] == "history_off"
    assert get(servers.open.url, "/asides/figures", origin="https://evil.example").status_code == 403


@pytest.mark.parametrize("path", EVERYTHING)
def test_a_key_reads_its_own(servers: Servers, path: str) -> None:
    """Two keys see nothing of each other, and neither sees what is nobody's; operators and the start token see all."""
    for key in (A, B):
        found = read(servers.guarded, path, key)
        assert found.status_code == 200
        assert words_in(found.text) == {WORDS[key]}
    for running, key in ((servers.guarded, OPERATOR), (servers.open, ""), (servers.open, "sk-anything")):
        assert words_in(read(running, path, key).text) == set(WORDS.values())


def test_replies_and_conversations_of_others_are_not_there(servers: Servers) -> None:
    """By their ids too, and the answer does not depend on whether there is such an id."""
    ids = {
        key: read(servers.guarded, f"?model=model-{word}", OPERATOR).json()["replies"][0]["id"]
        for key, word in WORDS.items()
    }
    for key, word in WORDS.items():
        for who in (A, B):
            status = 200 if who == key else 404
            for path in (f"/replies/{ids[key]}", f"/conversations/c-{word}"):
                assert read(servers.guarded, path, who).status_code == status
            assert bool(read(servers.guarded, f"/export?reply={ids[key]}", who).content) is (who == key)
            assert bool(read(servers.guarded, f"/export?conversation=c-{word}", who).content) is (who == key)
        assert read(servers.guarded, f"/replies/{ids[key]}", OPERATOR).json()["text"].startswith(f"I like {word}")
    others, missing = (
        read(servers.guarded, f"/replies/{id}", A).json()["error"]["message"] for id in (ids[B], "0" * 32)
    )
    assert others.replace(ids[B], "") == missing.replace("0" * 32, "")


def test_no_filter_reaches_what_others_asked(servers: Servers) -> None:
    """A key may not name another's fingerprint, and patterns do not widen what it sees."""
    other = fingerprint_of(B)
    for path in ("", "/export", "/conversations"):
        assert read(servers.guarded, f"{path}?client={other}", A).status_code == 403
    assert purge(servers.guarded, A, client=other).status_code == 403
    assert read(servers.guarded, "?model=*", A).json()["replies"] != []
    assert words_in(read(servers.guarded, "?model=*", A).text) == {WORDS[A]}
    assert words_in(read(servers.guarded, f"?client={other}", OPERATOR).text) == {WORDS[B]}


@pytest.mark.parametrize("path", [*EVERYTHING, "/replies/00", "/conversations/c-apricots"])
def test_without_keys_the_start_token_reads_and_nothing_else_does(servers: Servers, path: str) -> None:
    """Wherever it listens, by whatever name it is called, whatever key is sent; and the refusal says what to do."""
    for running in (servers.open, servers.beyond):
        token = running.token
        for shown in ("", "none", token[:-1], token + "x", servers.guarded.token):
            for key in ("", A, token):
                refused = read(running, path, key, x_asides_token=shown)
                assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_access")
                assert "`asides serve` printed" in refused.json()["error"]["message"]
        assert purge(running, A, all=True).status_code == 403
        for name in ("localhost", "127.0.0.1", "chat.example"):
            for headers in ({}, {"x_forwarded_for": "203.0.113.7"}):
                assert read(running, path, x_asides_token="", host=name, **headers).status_code == 403
                assert read(running, path, host=name, **headers).status_code in (200, 404)
                cookies = f"other=1; asides-token-1=older; asides-token-8777={token}"
                kept = read(running, path, x_asides_token="", host=name, cookie=cookies, **headers)
                assert kept.status_code in (200, 404)


def test_a_purge_deletes_ones_own(servers: Servers) -> None:
    """It wants a filter or `all`, counts on request, and never takes another key's."""
    for body in ({}, {"model": ""}, {"dry_run": True}, {"all": False}):
        assert purge(servers.guarded, OPERATOR, **body).status_code == 400
    assert purge(servers.guarded, A, modell="x").status_code == 400
    assert purge(servers.guarded, A, model=["x"]).status_code == 400
    assert purge(servers.guarded, A, all="yes").status_code == 400
    assert purge(servers.guarded, A, all=True, dry_run=True).json() == {"replies": 2, "thoughts": 2}
    assert purge(servers.guarded, A, model="model-bananas").json() == {"replies": 0, "thoughts": 0}
    first = read(servers.guarded, "", A).json()["replies"][0]["id"]
    assert purge(servers.guarded, B, reply=first).json()["replies"] == 0
    assert purge(servers.guarded, A, reply=first).json()["replies"] == 1
    assert purge(servers.guarded, A, all=True).json()["replies"] == 1
    assert words_in(read(servers.guarded, "", OPERATOR).text) == {WORDS[B], WORDS[""]}
    assert purge(servers.guarded, OPERATOR, until="2026-01-02T12:00:00Z").json()["replies"] == 2
    assert words_in(read(servers.guarded, "", OPERATOR).text) == {WORDS[""]}


def test_lists_are_paged(servers: Servers) -> None:
    """Newest first, each reply once, what comes meanwhile shifts nothing."""
    seen: list[str] = []
    cursor = ""
    for page in range(3):
        found = read(servers.guarded, f"?limit=2{cursor}", OPERATOR).json()
        seen += [reply["id"] for reply in found["replies"]]
        if page == 0:
            with _history.open(servers.store) as store:
                store.keep(parse("newer"), model="m")
        cursor = f"&before={found['next']}"
    assert len(set(seen)) == len(seen) == 6
    assert found["next"] is None
    listed = read(servers.guarded, "?limit=3", A).json()
    assert listed["owner"] == "own"
    assert listed["next"] is None
    newest = listed["replies"][0]
    assert (newest["question"], newest["text"]) == ("What of apricots?", "I like apricots: number 1.")
    assert (newest["thoughts"], newest["conversation"], newest["time"]) == (1, "c-apricots", "2026-01-01T00:01:00Z")
    first = read(servers.guarded, "/conversations?limit=2", OPERATOR).json()
    second = read(servers.guarded, f"/conversations?limit=2&before={first['next']}", OPERATOR).json()
    listed = [*first["conversations"], *second["conversations"]]
    assert [each["id"] for each in listed] == ["c-cherries", "c-bananas", "c-apricots"]
    assert (listed[0]["replies"], listed[0]["question"], second["next"]) == (2, "What of cherries?", None)


def test_a_search_finds_thoughts_and_answers(servers: Servers) -> None:
    """With the words marked, and the replies that they stand in; prefixes count."""
    found = read(servers.guarded, "?search=thinking+apri", A).json()
    assert {hit["thought"] for hit in found["hits"]} == {1}
    found = read(servers.guarded, "?search=like+apri", A).json()
    assert [hit["thought"] for hit in found["hits"]] == [None, None]
    assert found["hits"][0]["snippet"] == [
        ["I ", False],
        ["like", True],
        [" ", False],
        ["apricots", True],
        [": number 1.", False],
    ]
    assert [reply["id"] for reply in found["replies"]] == [hit["reply"] for hit in found["hits"]]
    assert (found["partial"], found["ranked"]) == (False, True)
    assert read(servers.guarded, "?search=apricots+nowhere", A).json()["hits"] == []
    assert read(servers.guarded, "?search=apricots&since=2026-02-01", A).json()["hits"] == []


def test_a_reply_has_its_parts_in_order(servers: Servers) -> None:
    """The record of an export, and each part."""
    newest = read(servers.guarded, "", A).json()["replies"][0]["id"]
    reply = read(servers.guarded, f"/replies/{newest}", A).json()
    assert [part["kind"] for part in reply["parts"]] == ["thinking", "text", "tool_call"]
    assert reply["parts"][0] == {
        "kind": "thinking",
        "text": "Thinking of apricots 1.",
        "complete": True,
        "seconds": None,
    }
    assert (reply["parts"][2]["name"], json.loads(reply["parts"][2]["arguments"])) == ("find", {"what": "x"})
    assert reply["thoughts"][0]["text"] == "Thinking of apricots 1."
    whole = read(servers.guarded, "/conversations/c-apricots", A).json()
    assert [each["id"] for each in whole["replies"]][1] == newest
    assert (whole["model"], whole["truncated"], len(whole["replies"])) == ("model-apricots", False, 2)


def test_any_text_can_be_read(servers: Servers) -> None:
    """Also half a surrogate pair and NUL, which a model may write and JSON cannot hold as they are."""
    with _history.open(servers.store) as store:
        odd = parse("<think>half \ud800 of</think>nul \0 here \udfff", "qwen3")
        id = store.keep(odd, model="m\ud800", client=fingerprint_of(A), conversation="odd")
    for path in (
        "",
        "?search=half",
        "?search=nul",
        f"/replies/{id}",
        "/conversations/odd",
        "/conversations",
        "/filters",
    ):
        found = read(servers.guarded, path, A)
        assert (path, found.status_code) == (path, 200)
        assert found.json()
    for form in ("jsonl", "markdown"):
        assert "nul" in read(servers.guarded, f"/export?form={form}&reply={id}", A).text
    assert figures(servers.guarded, "", A).status_code == 200


def test_long_conversations_are_cut(servers: Servers) -> None:
    """Past so many characters, and it is reported."""
    with _history.open(servers.store) as store:
        for number in range(4):
            labels = {"client": fingerprint_of(A), "conversation": "long", "time": LONG_AGO + timedelta(hours=number)}
            store.keep(parse(f"<think>{'word ' * 1_200_000}</think>{number}"), model="m", **labels)
    whole = read(servers.guarded, "/conversations/long", A).json()
    assert (len(whole["replies"]), whole["truncated"]) == (3, True)


def test_exports(servers: Servers) -> None:
    """A file each, with thoughts and without."""
    whole = read(servers.guarded, "/export", A)
    assert whole.headers["content-disposition"] == 'attachment; filename="asides.jsonl"'
    assert whole.headers["cache-control"] == "no-store"
    lines = [json.loads(line) for line in whole.text.splitlines()]
    assert [line["thoughts"][0]["text"] for line in lines] == ["Thinking of apricots 0.", "Thinking of apricots 1."]
    for form in ("jsonl", "markdown"):
        bare = read(servers.guarded, f"/export?form={form}&thoughts=0", A).text
        assert "I like apricots: number 0." in bare
        assert "Thinking of" not in bare
    document = read(servers.guarded, "/export?form=markdown", A)
    assert document.headers["content-type"].startswith("text/markdown")
    assert "> Thinking of apricots 0." in document.text
    assert '```json\n{"what": "x"}\n```' in document.text
    for path in ("/export?form=pdf", "/export?thoughts=maybe", "/export?modell=x"):
        assert read(servers.guarded, path, A).status_code == 400


def test_filters_name_what_there_is(servers: Servers) -> None:
    """For one's own replies; operators see the names that the configuration gives to keys."""
    own = read(servers.guarded, "/filters", A).json()
    assert (own["models"], own["sources"], own["replies"]) == (["model-apricots"], ["gateway"], 2)
    assert own["clients"] == [fingerprint_of(A)]
    with _history.open(servers.store) as store:
        store.keep(parse("x"), model="m", client=fingerprint_of(OPERATOR))
    every = read(servers.guarded, "/filters", OPERATOR).json()
    assert every["names"] == {fingerprint_of(OPERATOR): "ops"}
    assert set(every["clients"]) == {"", *map(fingerprint_of, (A, B, OPERATOR))}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("?limit=0", 400),
        ("?limit=x", 400),
        ("?limit=99999999999999999999", 400),
        ("?before=nope", 400),
        ("?since=whenever", 400),
        ("?modle=x", 400),
        ("/filters?model=x", 400),
        ("/replies/%00", 404),
        ("/replies", 404),
        ("/nothing", 404),
        ("/filters/x", 404),
    ],
)
def test_what_makes_no_sense_is_refused(servers: Servers, path: str, status: int) -> None:
    """With a reason, never with a traceback."""
    found = read(servers.guarded, path, A)
    assert found.status_code == status
    assert found.json()["error"]["message"]


def test_where_nothing_is_kept(servers: Servers) -> None:
    """A store that is there is not read where the gateway was not told to keep: it may be another user's."""
    for path in ("", "/filters", "/export"):
        found = read(servers.off, path)
        assert (found.status_code, found.json()["error"]["code"]) == (404, "history_off")


def test_other_sites_cannot_read(servers: Servers) -> None:
    """Host, origin and the browser's own word about the page are looked at on every route."""
    for path in EVERYTHING:
        for headers in ({"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}, {"host": "evil.example"}):
            assert read(servers.open, path, **headers).status_code == 403
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
        assert post(servers.open.url, "/asides/history/purge", {"all": True}, headers=headers).status_code == 403
    assert read(servers.open, "").json()["replies"] != []


def test_what_passes_is_kept_for_its_key(servers: Servers) -> None:
    """A reply that a client got through the gateway belongs to its key; and no key is in the log."""
    body = {"model": "m", "messages": [{"role": "user", "content": "fresh"}]}
    assert post(servers.guarded.url, "/v1/chat/completions", body, headers={"x-api-key": B}).status_code == 200
    eventually(lambda: "fresh" in read(servers.guarded, "", B).text, "the reply was not kept")
    assert "fresh" not in read(servers.guarded, "", A).text
    assert not [key for key in (A, B, OPERATOR) if key in servers.guarded.log]


def test_a_client_that_leaves_an_export_ends_it(servers: Servers) -> None:
    """The store is closed, and the gateway goes on."""
    with _history.open(servers.store) as store:
        for number in range(40):
            store.keep(parse(f"<think>{'long ' * 20_000}{number}</think>x"), model="m")
    token = {"x-asides-token": servers.open.token}
    with httpx.stream("GET", f"{servers.open.url}/asides/history/export", headers=token, timeout=PATIENCE) as answer:
        next(answer.iter_raw(1000))
    eventually(lambda: not _opened(servers.open, servers.store), "the store stays open")
    assert read(servers.open, "/filters").status_code == 200


def _opened(running: Gateway, store: str) -> int:
    """How often a gateway holds the store open, beside the writer's own."""
    return sum(Path(file.path).name == Path(store).name for file in running.watched.open_files())


@pytest.mark.parametrize("error", [_history.DamagedError("torn page 7"), _history.HistoryError("busy", retry=True)])
def test_a_store_that_fails_is_for_the_log(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """The client learns that it is no fault of the request, and nothing of the store."""

    def fail() -> None:
        raise error

    with pytest.raises(Refusal) as caught:
        _or_refuse(fail)
    assert (caught.value.status, caught.value.code) == (503, "history_failed")
    assert str(error) not in caught.value.message
    assert str(error) in caplog.text
