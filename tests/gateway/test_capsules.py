"""Capsules under attack: nothing opens but what was sealed, by whom it was sealed for, with a key that is known."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from asides._config.schema import ContinuitySettings
from asides._gateway.capsules import (
    PREFIX,
    CapsuleContent,
    CapsuleOwner,
    Capsules,
    key_file,
    make_capsules,
    read_key_file,
)
from asides._gateway.proofs import open_turn
from asides.dialects._request import RequestTurn, TextPiece, ThinkingPiece
from asides.reply._items import PlacedProof
from tests.posix import needs_posix

pytest.importorskip("cryptography")

KEY = b"k" * 40
OWNER = CapsuleOwner("anthropic https://api.anthropic.com claude", "0" * 32, b'["user",[]]')
PROOF = CapsuleContent(
    PlacedProof(1, 2, "anthropic", {"type": "thinking", "thinking": "é\ud7ff", "signature": "s" * 300}), "0" * 32
)
LIMIT = 256 * 1024


def made(*keys: bytes) -> Capsules:
    return Capsules(keys or (KEY,), LIMIT)


def test_what_is_sealed_opens() -> None:
    capsule = made().seal(PROOF, OWNER)
    assert capsule.startswith(PREFIX)
    assert made().open(capsule, OWNER) == PROOF


def test_no_two_are_alike_and_none_shows_what_is_in_it() -> None:
    """A salt and a nonce of its own each time."""
    capsules = {made().seal(PROOF, OWNER) for _ in range(50)}
    assert len(capsules) == 50
    assert not any("thinking" in capsule for capsule in capsules)


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "anthropic https://api.anthropic.com claude-2"},
        {"issuer": "responses https://api.anthropic.com claude"},
        {"credential": "1" * 32},
        {"credential": ""},
        {"session": b'["another",[]]'},
        {"session": b""},
    ],
)
def test_it_opens_for_nobody_else(change: dict[str, object]) -> None:
    """Not for another credential, user, session, upstream or model: it is of no use to who has read it elsewhere."""
    capsule = made().seal(PROOF, OWNER)
    assert made().open(capsule, msgspec.structs.replace(OWNER, **change)) is None


def test_fields_cannot_be_moved_into_each_other() -> None:
    """What is authenticated has its lengths: one field's end is never another's beginning."""
    capsule = made().seal(PROOF, msgspec.structs.replace(OWNER, issuer="ab", credential="c"))
    assert made().open(capsule, msgspec.structs.replace(OWNER, issuer="a", credential="bc")) is None


def test_tampered_ones_never_open() -> None:
    """Any character changed, anywhere; none that is left out or added."""
    capsule = made().seal(CapsuleContent(PlacedProof(0, 0, "anthropic", {"a": 1})), OWNER)
    capsules = made()
    for place in range(len(capsule)):
        for other in ("A", "z"):
            if capsule[place] != other:
                assert capsules.open(capsule[:place] + other + capsule[place + 1 :], OWNER) is None
        assert capsules.open(capsule[:place], OWNER) is None
    for more in ("A", "AAAA", "=", "\n", "é", "\x00", capsule):
        assert capsules.open(capsule + more, OWNER) is None


@pytest.mark.parametrize("text", ["", PREFIX, PREFIX + "A", PREFIX + "AAAA" * 40, PREFIX + "é", PREFIX + "=" * 99, "x"])
def test_what_is_none_does_not_open(text: str) -> None:
    assert made().open(text, OWNER) is None


def test_keys_can_be_changed() -> None:
    """The first seals, all open; one that was taken away opens no more."""
    old, new = made(KEY), made(b"n" * 40, KEY)
    assert new.open(old.seal(PROOF, OWNER), OWNER) == PROOF
    assert old.open(new.seal(PROOF, OWNER), OWNER) is None
    assert made(b"n" * 40).open(old.seal(PROOF, OWNER), OWNER) is None


@pytest.mark.parametrize("size", [100, 1000, 10_000])
def test_large_ones_are_not_made(size: int) -> None:
    """`limits.capsule` counts the characters of the whole."""
    proof = CapsuleContent(PlacedProof(0, 0, "x", {"data": "d" * size}))
    length = len(made().seal(proof, OWNER))
    assert len(Capsules((KEY,), length).seal(proof, OWNER)) == length
    assert Capsules((KEY,), length - 1).seal(proof, OWNER) == ""
    assert Capsules((KEY,), length - 1).open(made().seal(proof, OWNER), OWNER) is None


def test_a_turn_loses_its_capsules_whether_they_open_or_not() -> None:
    """An upstream never sees one; text that the client was shown stays."""
    good, bad = made().seal(CapsuleContent(PlacedProof(0, 0, "anthropic", {"is": "A"})), OWNER), PREFIX + "AAAA"
    pieces = (
        ThinkingPiece("shown", bad),
        ThinkingPiece("", details=({"type": "reasoning", "encrypted_content": good}, {"type": "reasoning.text"})),
        ThinkingPiece("", details=({"type": "reasoning.encrypted", "data": bad},)),
        TextPiece("t"),
    )

    def opened(text: str) -> PlacedProof | None:
        content = made().open(text, OWNER)
        return content.proof if content is not None else None

    found = open_turn(RequestTurn("assistant", pieces), opened)
    assert (found.opened, found.unopened) == (1, 2)
    assert PREFIX not in str(found.turn)
    assert [piece.proof.data for piece in found.turn.pieces if isinstance(piece, ThinkingPiece) and piece.proof] == [
        {"is": "A"}
    ]
    lost = open_turn(RequestTurn("assistant", pieces[:1]), lambda text: None)
    assert lost.turn.pieces == (ThinkingPiece("shown"),)


# The key file.


@needs_posix
def test_a_key_file_is_made_once_for_its_user_alone(tmp_path: Path) -> None:
    """By several at once too: all have the same key."""
    path = tmp_path / "state" / "asides" / "continuity.key"
    found: list[bytes] = []
    threads = [Thread(target=lambda: found.append(read_key_file(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@needs_posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "continuity.key"
    read_key_file(path)
    path.chmod(mode)
    with pytest.raises(ValueError, match="may be read by others"):
        read_key_file(path)


@needs_posix
def test_no_link_is_followed_and_no_short_key_taken(tmp_path: Path) -> None:
    real, link, short = tmp_path / "real", tmp_path / "link", tmp_path / "short"
    read_key_file(real)
    link.symlink_to(real)
    with pytest.raises(OSError, match=r".+"):
        read_key_file(link)
    short.write_text("short")
    short.chmod(0o600)
    with pytest.raises(ValueError, match="no key of at least 32"):
        read_key_file(short)


def test_the_key_is_never_in_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    assert key_file().is_absolute()
    assert "here" not in key_file().parts


def test_without_a_key_nothing_is_carried_and_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.path.abspath(os.devnull))
    assert make_capsules(ContinuitySettings(), LIMIT) is None
    assert "set continuity.keys" in caplog.text
    assert make_capsules(ContinuitySettings(keys=("k" * 40,)), LIMIT) is not None
