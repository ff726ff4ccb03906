"""Backtracking, in every language that is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.analysis._turns import KINDS, SCRIPTS, count_turns
from asides.analysis._words import beyond_ascii

SAID = [
    # English
    ("Wait, that is odd.", "stop"),
    ("It is 4. But wait, there is more.", "stop"),
    ("Hmm. Let us see.", "stop"),
    ("So it is 5. Actually, it is 6.", "correction"),
    ("No, it cannot be.", "correction"),
    ("I think I made a mistake there", "correction"),
    ("That can’t be right", "correction"),
    ("Now let me check the sum", "check"),
    ("so let's double-check", "check"),
    ("I should verify this", "check"),
    ("Alternatively, add them.", "alternative"),
    ("it could, on the other hand, be 7", "alternative"),
    # German
    ("Moment mal, das ist seltsam.", "stop"),
    ("Warte, es sind drei.", "stop"),
    ("Eigentlich sind es vier.", "correction"),
    ("Die Summe, das stimmt nicht", "correction"),
    ("Lass mich das noch einmal überprüfen", "check"),
    ("Es könnte andererseits regnen", "alternative"),
    # French
    ("Attends, c'est bizarre.", "stop"),
    ("En fait, c'est quatre.", "correction"),
    ("Laisse-moi vérifier le total", "check"),
    ("Vérifions le total.", "check"),
    ("Il y a une autre approche ici", "alternative"),
    # Spanish
    ("Espera, es raro.", "stop"),
    ("En realidad, son cuatro.", "correction"),
    ("Ahora déjame comprobar la suma", "check"),
    ("Podría, por otro lado, llover", "alternative"),
    # Russian
    ("Подожди, это странно.", "stop"),
    ("На самом деле их четыре.", "correction"),
    ("Теперь давайте ещё раз проверим сумму", "check"),
    ("Но, с другой стороны, можно иначе", "alternative"),
    # Korean
    ("잠깐, 이상하다.", "stop"),
    ("합을 다시 확인 하자", "check"),
    # Chinese, simplified and traditional
    ("等等，这很奇怪。", "stop"),
    ("答案是五。不对，是六。", "correction"),
    ("所以让我检查一下这个和", "check"),
    ("現在讓我驗證這個", "check"),
    ("我们可以换个思路来做", "alternative"),
    # Japanese
    ("待って、おかしい。", "stop"),
    ("答えは五。いや、六だ。", "correction"),
    ("合計をもう一度計算する", "check"),
    ("ここで別の方法を使う", "alternative"),
]


@pytest.mark.parametrize(("text", "kind"), SAID, ids=[text for text, _ in SAID])
def test_a_turn_is_found_in_every_language(text: str, kind: str) -> None:
    """One turn, of this kind and no other."""
    assert {found: count for found, count in count_turns(text).items() if count} == {kind: 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The wait was long and the waiter kind.",
        "It is actually four.",
        "There is no way. See No. 5.",
        "Let me think about the sum.",
        "We can check the list for a name.",
        "Moment of inertia.",
        "苹果、香蕉等等。",
        "这个检查很重要。",
        "一方は赤い。",
    ],
)
def test_what_only_looks_like_a_turn_is_none(text: str) -> None:
    """The same words in the middle of a sentence, or with another meaning, do not count."""
    assert sum(count_turns(text).values()) == 0


def test_several_in_a_row_are_one_turn() -> None:
    """Of phrases with next to nothing between them, the first counts."""
    assert count_turns("Wait, no, actually, it is five.") == {"stop": 1, "correction": 0, "check": 0, "alternative": 0}
    assert sum(count_turns("No, wait - actually, it is five.").values()) == 1


def test_each_sentence_has_turns_of_its_own() -> None:
    """However short it is."""
    assert sum(count_turns("Wait. It is five after all. Wait. It is six.").values()) == 2
    assert sum(count_turns("Let me check.\n\nActually, no. Hmm.").values()) == 3


def test_of_a_lead_that_is_a_turn_itself_the_first_kind_counts() -> None:
    """With a lead there are two readings; without one, there is one."""
    assert count_turns("No, what if it is five?") == {"stop": 0, "correction": 1, "check": 0, "alternative": 0}
    assert count_turns("So what if it is five?")["alternative"] == 1
    assert count_turns("But no, wait.")["stop"] == 1


def test_a_letter_before_a_phrase_makes_it_another_word() -> None:
    """Letters beyond ASCII too; signs beyond ASCII are no letters."""
    assert sum(count_turns("The cafélet me check x" + "." * 200).values()) == 0
    assert count_turns("a → b. I think→let me check x" + "." * 200)["check"] == 1
    # What the letter hides must not hide what stands behind it.
    assert count_turns("πlet me check. Now let me check" + "." * 200)["check"] == 1


PIECES = [text for text, _ in SAID] + [
    *("No, ", "so ", "but no, ", "what if", "Hmm, ", "wait", "а ", "что если", "但", "或者，", "でも", "いや、"),
    *(" ", "\n", ". ", ", ", "… ", "— ", "“", "é", "λ", "²", "_", "word ", "は"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_short_ways_find_what_the_careful_patterns_find(text: str) -> None:
    """The plain class beyond ASCII, the group that tells a kind, the scripts that are passed over."""
    lowered, odd = "\n" + text.lower(), beyond_ascii(text.lower())
    for script in SCRIPTS:
        careful = [
            (
                match.start(),
                match.end(),
                next(kind for kind, each in search._by_kind if each.match(lowered, match.start())),
            )
            for search in (script._opening, script._anywhere)
            for match in search._pattern.finditer(lowered)
        ]
        assert sorted(script.find(lowered, odd)) == sorted(careful)
        assert sorted(script.find(lowered + " " * 500, odd)) == sorted(careful)


@given(st.text(max_size=300))
def test_any_text_can_be_counted(text: str) -> None:
    """Whatever is in it, and in any script."""
    assert set(count_turns(text)) == set(KINDS)
