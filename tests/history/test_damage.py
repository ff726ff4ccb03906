"""Files that are really damaged: what is wrong is told in words, what can be read is read, and nothing is changed."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
import pytest

from asides import _history as history
from asides._history import DamagedError, KeptReply
from asides._history.sqlite_damage import examine
from asides._history.sqlite_pages import TABLE_LEAF, Pages
from asides._history.sqlite_salvage import Salvage, Salvaged
from tests.history.samples import HOSTILE, reply

COUNT = 300
PAGE = 4096


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound store with replies short and long."""
    path = tmp_path_factory.mktemp("sound") / "h.db"
    with history.open(str(path)) as store:
        store.add(made())
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copy(whole, tmp_path / "h.db"))


@cache
def made() -> list[KeptReply]:
    """The replies."""
    return [
        reply(
            f"first thought {number} " * (number % 40 + 1),
            f"second {number}",
            answer=f"answer {number} " * (900 if number % 10 == 0 else 1),
            after=number,
            client="c" * 32 if number % 3 else "",
            seconds=float(number),
        )
        for number in range(COUNT)
    ]


@cache
def written() -> frozenset[bytes]:
    """Each of them as one string."""
    return frozenset(map(msgspec.json.encode, made()))


def salvaged(path: Path) -> list[Salvaged]:
    """What is left; the file is not changed for it."""
    before = path.read_bytes()
    with Salvage(path) as salvage:
        for _ in salvage.scan():
            pass
        found = list(salvage.replies())
    assert path.read_bytes() == before
    return found


def problems(path: Path) -> list[str]:
    """What is wrong, however little SQLite can do with it; the file is not changed for it."""
    before = path.read_bytes()
    try:
        with history.open(str(path), create=False) as store:
            found = [problem for step in store.verify() for problem in step.problems]
    except DamagedError:
        found = [problem for step in examine(path) for problem in step.problems]
    assert path.read_bytes() == before
    return found


def leaf_pages(path: Path, table: str) -> list[int]:
    """The pages with rows of a table."""
    connection = sqlite3.connect(path)
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    connection.close()
    with Pages(path) as pages:
        return [number for number in pages.children(root) if pages.kind(number) == TABLE_LEAF]


def overwrite(path: Path, *numbers: int) -> None:
    """Put noise into pages."""
    noise = random.Random(7)
    with path.open("r+b") as file:
        for number in numbers:
            file.seek((number - 1) * PAGE)
            file.write(noise.randbytes(PAGE))


def test_a_sound_file_is_read_without_sqlite(path: Path) -> None:
    """The same replies as SQLite gives, each with its id, none missing."""
    found = salvaged(path)
    assert [one.reply for one in found] == made()
    assert not any(one.missing for one in found)
    assert problems(path) == []


def test_what_only_the_log_holds_is_read(tmp_path: Path) -> None:
    """Replies that are not yet in the file itself, and any text."""
    path = tmp_path / "h.db"
    kept = [reply(text, answer=text, after=number) for number, text in enumerate(HOSTILE)]
    with history.open(str(path)) as store:
        store.add(kept)
        store.add([reply("later", after=900)])
        assert (tmp_path / "h.db-wal").stat().st_size
        found = salvaged(path)
    assert [one.reply for one in found] == [*kept, reply("later", after=900)]
    # A log whose end was never written: what was committed before it counts.
    with history.open(str(path)) as store:
        store.add([reply("last", after=901)])
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{tmp_path}/copy.db{ending}")
    log = tmp_path / "copy.db-wal"
    log.write_bytes(log.read_bytes()[:-100])
    assert len(salvaged(tmp_path / "copy.db")) == len(kept) + 1


@pytest.mark.parametrize("table", ["replies", "thoughts"])
def test_overwritten_pages(path: Path, table: str) -> None:
    """The page and its table are named, and every reply that is not whole; all others are read."""
    damaged = leaf_pages(path, table)[3:5]
    overwrite(path, *damaged)
    told = problems(path)
    for number in damaged:
        assert any(line.startswith(f"page {number}, of the table {table}:") for line in told)
    found = salvaged(path)
    whole = [one.reply for one in found if not one.missing]
    partly = [one for one in found if one.missing]
    assert len(found) == COUNT
    assert COUNT - 100 < len(whole) < COUNT
    assert set(map(msgspec.json.encode, whole)) <= written()
    for one in partly:
        assert any(one.id in line for line in told)
        assert one.reply is None or [notice.code for notice in one.reply.reply.notices] == ["salvaged"]
        assert one.reply is None or one.reply.id != one.id
    # What reads it says that it is damaged, and never more than that.
    with history.open(str(path), create=False) as store, pytest.raises(DamagedError, match="verify"):
        list(store.replies())


def test_an_inner_page_is_gone(path: Path) -> None:
    """The tree no longer leads to any row; every row is found."""
    connection = sqlite3.connect(path)
    roots = [root for (root,) in connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'replies'")]
    connection.close()
    overwrite(path, *roots)
    assert any(line.startswith(f"page {roots[0]}, of the table replies:") for line in problems(path))
    assert [one.reply for one in salvaged(path)] == made()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_file_that_was_cut_off(path: Path, share: float) -> None:
    """How much is missing is told, and what is before the cut is read."""
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share) + 100])
    assert any("the file ends too early" in line for line in problems(path))
    found = salvaged(path)
    kept = [one.reply for one in found if not one.missing]
    assert len(kept) > COUNT * share / 2
    assert set(map(msgspec.json.encode, kept)) <= written()


def test_the_first_page_is_gone(path: Path) -> None:
    """SQLite takes it for no database at all; everything in it is read."""
    with path.open("r+b") as file:
        file.write(bytes(PAGE))
    assert problems(path) == [
        "page 1: the file does not begin as a SQLite database does, so SQLite cannot open it",
    ]
    assert [one.reply for one in salvaged(path)] == made()


def test_an_index_is_damaged(path: Path) -> None:
    """Of the index only, so every reply is whole."""
    connection = sqlite3.connect(path)
    ((root,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'replies_by_time'").fetchall()
    connection.close()
    overwrite(path, root)
    told = problems(path)
    assert told
    assert all("replies_by_time" in line or line.startswith("SQLite: ") for line in told)
    assert [one.reply for one in salvaged(path)] == made()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE words_data SET block = zeroblob(length(block)) WHERE id > 10",
        "DELETE FROM words_docsize WHERE id % 2 = 0",
        "DELETE FROM words_data WHERE id > 10",
    ],
)
def test_the_index_of_words(path: Path, statement: str) -> None:
    """It is told, and built anew from the thoughts; stopped in the middle, all is as it was."""
    with sqlite3.connect(path) as breaking:
        breaking.execute(statement)
    breaking.close()
    told = problems(path)
    assert any("the index of words" in line and "history reindex" in line for line in told), told
    with history.open(str(path), create=False) as store:
        steps = store.reindex()
        next(steps)
        steps.close()  # type: ignore[attr-defined]  # a generator
    assert problems(path) == told
    with history.open(str(path), create=False) as store:
        assert list(store.reindex())[-1] == 2 * COUNT
        assert [hit.thought for hit in store.search('"second 77"').hits] == [2]
    assert problems(path) == []


def test_words_are_built_anew_on_both_stores(store: history.History) -> None:
    """The same is found afterwards as before."""
    store.add([reply(f"thought {number} of Zürich 质数", after=number) for number in range(250)])
    before = [hit.reply for hit in store.search("zurich", limit=300).hits]
    assert len(before) == 250
    assert list(store.reindex()) == [200, 250]
    assert {hit.reply for hit in store.search("zurich", limit=300).hits} == set(before)
    assert len(store.search('"thought 77"').hits) == len(store.search("数", limit=1).hits) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data.replace(b"answer 7 ", b"ansser 7 ", 1),
        lambda data: data.replace(b"answer 7 ", b"ans\xff\xffr 7 ", 1),
        lambda data: data.replace(b'{"asked":[]', b'{"asked":{]', 1),
        lambda data: data.replace(b'"termination":"end"', b'"termination":12345', 1),
    ],
)
def test_a_row_is_damaged(path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Pages and trees are sound, one row is not: it is named, and its words are not lost."""
    path.write_bytes(damage(path.read_bytes()))
    told = problems(path)
    assert len(told) == 1
    (odd,) = (one for one in salvaged(path) if one.missing)
    assert f"reply {odd.id}" in told[0]
    assert odd.reply is not None
    assert len(odd.reply.thoughts) == 2
    assert odd.reply.reply.text.endswith(" ")


@pytest.mark.parametrize("seed", range(25))
def test_noise_anywhere(path: Path, seed: int) -> None:
    """Whatever becomes of the bytes, there are words and never another error."""
    noise = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(noise.choice((1, 5, 50, 1000))):
        place, size = noise.randrange(len(data)), noise.choice((1, 4, 100, 5000))
        data[place : place + size] = noise.randbytes(len(data[place : place + size]))
    path.write_bytes(data[: noise.choice((len(data), len(data), noise.randrange(1, len(data))))])
    problems(path)
    whole = {msgspec.json.encode(one.reply) for one in salvaged(path) if not one.missing}
    assert whole <= written()


@pytest.mark.parametrize("damage", ["time = 9223372036854775807", "body = '{'"])
def test_every_reader_says_that_a_row_is_damaged(store: history.History, damage: str) -> None:
    """Whatever reads a row that no reply could have written says so, on both stores, with no other error."""
    kept = reply("a prime", answer="7", conversation="primes")
    store.add([kept])
    store._rows(f"UPDATE replies SET {damage} WHERE number = 1 RETURNING number")
    readers: list[Callable[[], object]] = [
        lambda: store.reply(kept.id),
        lambda: list(store.replies()),
        lambda: store.newest(),
    ]
    if "time" in damage:
        readers += [store.listed, store.stats, lambda: store.search("prime")]
    else:
        readers += [lambda: store.conversation("primes")]
    for read in readers:
        with pytest.raises(DamagedError, match="history verify"):
            read()
    (problem,) = (problem for step in store.verify() for problem in step.problems)
    assert problem == f"reply {kept.id} cannot be read"
