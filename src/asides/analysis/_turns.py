"""Backtracking: where a thought stops, corrects, checks or tries another way. The phrases, by language, and counting.

A phrase is a regular expression in lower case. `opening` ones count only where a sentence or clause begins, because in
the middle of one they mean something else ("the wait", "it is actually so"); `anywhere` ones count wherever they stand.

All phrases of a script are searched for at once. A search tries every alternative at every word, so `_trie` puts those
that begin alike together: at most words the first letters rule all of them out. An empty group at the end of each
alternative tells the kind of the phrase that was found.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Literal

import msgspec

from ._words import UNSPACED, beyond_ascii

TurnKind = Literal["stop", "correction", "check", "alternative"]

KINDS: dict[TurnKind, str] = {
    "stop": "stops short: wait, hold on, hmm",
    "correction": "takes something back: actually, no, I was wrong",
    "check": "goes over it again: let me check, let me verify",
    "alternative": "tries another way: alternatively, on the other hand, what if",
}
"""Every kind of turn and what it means."""


class Phrases(msgspec.Struct, frozen=True):
    """How one language says one kind of turn."""

    opening: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


_CHECKS = (
    r"(?:double-?|re-?)?(?:check|verify)|re-?(?:read|examine|consider|think|count|calculate|compute|evaluate|do|visit)"
    r"|confirm|make sure|(?:look|think|try) again|go over|step back"
)

ENGLISH: dict[TurnKind, Phrases] = {
    "stop": Phrases(
        ("wait", "hold on", "hang on", "h+m+", "just a (?:moment|second)"), ("but,? wait", "oh,? wait", "no,? wait")
    ),
    "correction": Phrases(
        ("actually", r"no(?=[,!…—]|\.(?! ?\d))", "nope", "oops", "scratch that", "correction", "sorry"),
        (
            "on second thoughts?",
            r"i (?:was|am) (?:wrong|mistaken)",
            "i (?:made|might have made|may have made) (?:a|an) (?:mistake|error)",
            "that(?:'s| is) (?:wrong|not right|not correct|incorrect|a mistake)",
            "that (?:can't|cannot|doesn't|does not|isn't|doesn't seem) (?:be |seem )?(?:right|correct)",
        ),
    ),
    "check": Phrases(
        (r"(?:to )?(?:double|re)-?check(?:ing)?",),
        (
            rf"(?:let me|let's|let us) (?:just |quickly |now |also |first )?(?:{_CHECKS})",
            r"i (?:should|need to|must|have to|want to) (?:double-?check|re-?check|check|verify|make sure)",
            r"we (?:should|need to|must|have to|want to) (?:double-?check|re-?check)",
            "sanity check",
        ),
    ),
    "alternative": Phrases(
        ("alternatively", "what if", "instead(?=,)", "maybe (?:i|we) should"),
        (
            "on the other hand",
            "another (?:way|approach|idea|possibility|option|thought)",
            "(?:let me|let's) try (?:another|a different|again|something else)",
            "a different (?:approach|way|angle)",
        ),
    ),
}
GERMAN: dict[TurnKind, Phrases] = {
    "stop": Phrases(
        (
            r"wart(?:e|en sie)(?: mal)?(?=[,.!…: ])",
            "moment(?: mal|(?=[,.!…:]))",
            "augenblick",
            "halt(?=[,.!…])",
            "stopp",
        ),
    ),
    "correction": Phrases(
        ("eigentlich", "nein(?=[,.!…])", "quatsch", "besser gesagt", "genauer gesagt", "korrektur"),
        (
            "das (?:stimmt (?:so )?nicht|ist (?:falsch|nicht richtig)|kann nicht (?:stimmen|sein))",
            "ich habe mich (?:geirrt|vertan|verrechnet)",
            "ich habe einen fehler",
            "doch nicht",
        ),
    ),
    "check": Phrases(
        ("zur (?:kontrolle|sicherheit)", r"(?:über)?prüfen wir"),
        (
            r"las(?:s|st) (?:mich|uns) (?:\w+ ){0,3}(?:\w*prüfen|nachrechnen|nachsehen)",
            r"ich (?:sollte|muss|werde) (?:\w+ ){0,3}(?:\w*prüfen|nachrechnen|nachsehen)",
            r"noch ?mal(?:s)? (?:\w*prüfen|nachrechnen|nachdenken|von vorn)",
            r"noch einmal (?:\w*prüfen|nachrechnen|nachdenken|von vorn)",
        ),
    ),
    "alternative": Phrases(
        ("alternativ", "oder doch", "was(?:,)? wenn", "vielleicht sollte ich"),
        ("andererseits", r"anderer? (?:ansatz|weg|idee|möglichkeit)", "anders (?:herum|gesagt)"),
    ),
}
FRENCH: dict[TurnKind, Phrases] = {
    "stop": Phrases(("attends", "attendez", "un instant", "une (?:minute|seconde)", "minute(?=[,.!…])", "hum+", "euh")),
    "correction": Phrases(
        ("en fait", "en réalité", "non(?=[,.!…])", "plutôt(?=,)", "oups", "à la réflexion"),
        (
            "ce n'est pas (?:ça|correct|juste|exact|bon)",
            "c'est (?:faux|incorrect|une erreur)",
            "je me (?:suis trompée?|trompe)",
            "j'ai fait une erreur",
        ),
    ),
    "check": Phrases(
        (r"(?:re)?(?:vérifions|calculons|lisons)", "pour vérifier"),
        (
            r"(?:laisse|laissez)[- ]moi (?:(?:re)?vérifier|re(?:lire|calculer|voir|penser))",
            r"je (?:dois|devrais|vais) (?:re)?vérifier",
        ),
    ),
    "alternative": Phrases(
        ("sinon(?=,)", "et si", "ou alors", "alternativement", "peut-être devrais-je"),
        ("d'un autre côté", "une autre (?:approche|façon|manière|possibilité|idée|option)"),
    ),
}
SPANISH: dict[TurnKind, Phrases] = {
    "stop": Phrases(("espera", "esperen", "un (?:momento|segundo)", "mm+", "a ver")),
    "correction": Phrases(
        ("en realidad", "de hecho", "mejor dicho", "corrijo", "perdón"),
        (
            "me (?:equivoqué|he equivocado)",
            "eso (?:no es correcto|es incorrecto|está mal|no puede ser)",
            "pensándolo (?:bien|mejor)",
            "comet[íi] un error",
        ),
    ),
    "check": Phrases(
        (r"(?:comprobemos|verifiquemos|revisemos|repasemos)",),
        tuple(
            rf"{lead} (?:volver a )?(?:comprobar|verificar|revisar|repasar|recalcular)"
            for lead in ("d[ée]jame", "permíteme", "voy a", "vamos a", "debo", "debería", "tengo que")
        ),
    ),
    "alternative": Phrases(
        ("alternativamente", "y si", "quizás? debería"),
        ("por (?:otro lado|otra parte)", "otra (?:forma|opción|manera|posibilidad|idea)"),
    ),
}
RUSSIAN: dict[TurnKind, Phrases] = {
    "stop": Phrases(("подожди(?:те)?", "погоди(?:те)?", "постой(?:те)?", "стоп", "минутку", "секунду", "х+м+")),
    "correction": Phrases(
        ("на самом деле", "вообще-то", "нет(?=[,.!…])", "точнее", "вернее", "упс"),
        (
            "это (?:неверно|неправильно|не так|ошибка)",
            "я ошиб(?:ся|лась|аюсь)",
            "я допустила? ошибку",
        ),
    ),
    "check": Phrases(
        (r"(?:пере)?провер(?:им|ю|яем)", "пересчита(?:ем|ю)"),
        (
            r"(?:давай(?:те)?|надо|нужно|стоит|следует|позвольте|дай(?:те)?) (?:мне )?(?:ещё раз |еще раз |снова )?"
            r"(?:(?:пере)?провер|пересчита|перечита|передума)\w*",
        ),
    ),
    "alternative": Phrases(
        ("альтернативно", "а (?:что,? )?если", "возможно, (?:стоит|мне)"),
        ("с другой стороны", "друг(?:ой|ая) (?:способ|подход|вариант|идея)", "по-другому"),
    ),
}
KOREAN: dict[TurnKind, Phrases] = {
    "stop": Phrases(("잠깐(?:만)?", "잠시만", "음+")),
    "correction": Phrases(("아니(?:야|요|,)?", "사실은?"), ("틀렸", "잘못 (?:생각|계산|이해)")),
    "check": Phrases((), ("다시 (?:확인|생각|계산|검토|살펴)", "확인해 ?(?:보|봐|볼)", "검토해 ?(?:보|봐|볼)")),
    "alternative": Phrases(("아니면",), ("다른 (?:방법|접근|가능성)", "한편(?:으로)?")),
}
CHINESE: dict[TurnKind, Phrases] = {
    "stop": Phrases(("等等(?=[，,！!…—])", "等一下", "等一等", "等下", "稍等", "且慢", "慢着", "嗯+(?=[，,。…])")),
    "correction": Phrases(
        ("不[对對]", "不(?=[，,])", "不是(?=[，,])", "其[实實]", "[实實][际際]上", "更正"),
        ("我?(?:[刚剛]才)?[弄搞算想看写寫说說][错錯]了", "不是[这這][样樣]", "[这這](?:是|里)?(?:[错錯]|不[对對])"),
    ),
    "check": Phrases(
        (),
        (
            "[让讓]我(?:[们們])?(?:再|重新|仔[细細]|[来來])*"
            "(?:[检檢]查|[验驗][证證]|核[对對实實]|[确確][认認]|[验驗]算)",
            "(?:再|重新)(?:次)?(?:[检檢]查|[验驗][证證]|核[对對]|[确確][认認]|[验驗]算|[计計]算|想|考[虑慮]|[审審][视視]|思考)",
            "(?:[检檢]查|[验驗][证證]|核[对對]|[确確][认認]|[验驗]算)一(?:下|遍)",
        ),
    ),
    "alternative": Phrases(
        ("或者(?=[，,说說我可])", "要不", "[还還]是[说說]", "(?:也|或)[许許]我?(?:[应應][该該]|可以)"),
        (
            "另一方面",
            "另一[种種个個](?:方法|思路|可能|[办辦]法|方式|角度)",
            "[换換](?:一?[个個种種])?(?:思路|角度|方法|方式)",
        ),
    ),
}
JAPANESE: dict[TurnKind, Phrases] = {
    "stop": Phrases(
        ("待って", "待てよ", "ちょっと待", "う[ーう]*ん", "え[ーっえ]*と", "あれ(?=[、,？?])"), ("いや待",)
    ),
    "correction": Phrases(
        ("いや(?=[、,。…違])", "いいえ", "実は", "実際(?:に)?は", "違う", "違います", "というか", "訂正"),
        ("間違(?:い|え|って)(?:た|まし|です|だっ|いる|いた)", "そうではな"),
    ),
    "check": Phrases(
        (),
        (
            "もう一度",
            "(?:確認|検証|検算|再確認|チェック|見直|再検討)し(?:て|よう|ましょう|てみ)",
            "考え直",
            "再(?:確認|計算|検討)",
        ),
    ),
    "alternative": Phrases(
        ("あるいは", "それとも", "もしかし(?:たら|て)"),
        ("一方で", "別の(?:方法|アプローチ|考え|見方|可能性|やり方)"),
    ),
}
Language = dict[TurnKind, Phrases]
FoundTurn = tuple[int, int, TurnKind]
"""Where a phrase begins, with what stands before it, where it ends, and its kind."""

CLAUSE = r"\n.!?…:;,(\[—–。！？，、；："
"""What a clause begins after."""
LEADS = ["but", "oh", "ah", "no", "so", "ok", "okay", "well", "and", "hmm"]
LEADS += ["aber", "ach", "mais", "bon", "pero", "но", "а"]
UNSPACED_LEADS = "(?:但是?|啊|哦|でも|あ|え)?[，、]?"
"""Little words that may come before a phrase that opens a clause."""
MOST_ODD = 8
"""A text of which at most one character in so many is not ASCII is searched as if it were ASCII."""
APART = 3
"""Turns of one sentence with no more characters than this between them are one: "wait, no, actually"."""
SENTENCE = frozenset("\n.!?…。！？")
"""What ends a sentence."""


KIND_ENDS: dict[str, TurnKind] = {"\1": "stop", "\2": "correction", "\3": "check", "\4": "alternative"}
"""What the end of a phrase is marked with while patterns are made, by its kind."""
SPECIAL = frozenset(r"\.^$*+?{}[]()|").union(KIND_ENDS)
"""Characters of a regular expression that do not stand for themselves."""


def _trie(phrases: list[str]) -> str:
    """A pattern of the same alternatives, those that begin with the same letter together, in their order.

    What begins with different letters never matches at the same place, so their order does not matter. Where the first
    letter of one cannot be read off its pattern, the alternatives stay as they are.
    """
    groups: dict[str, list[str]] = {}
    spelled = [each for phrase in phrases for each in _spell(phrase)]
    if len(spelled) == 1 or not all(each and each[0] not in SPECIAL for each in spelled):
        return "|".join(phrases)
    for each in spelled:
        # `h+` is an `h` and then any number of them; no other repeat of a first letter reaches this place.
        groups.setdefault(each[0], []).append(f"{each[0]}*{each[2:]}" if each[1:2] == "+" else each[1:])
    return "|".join(
        letter + (tails[0] if len(tails) == 1 else f"(?:{_trie(tails)})") for letter, tails in groups.items()
    )


def _spell(phrase: str) -> list[str]:
    """The same pattern as alternatives that begin with a letter each, where that is plain to see."""
    if phrase.startswith("(?:"):
        inner, rest = _first_group(phrase)
        if rest[:1] not in ("*", "+", "{"):
            optional = rest.startswith("?")
            rest = rest[optional:]
            return [each for one in [*inner, *([""] if optional else [])] for each in _spell(one + rest)]
    if phrase.startswith("["):
        letters, _, rest = phrase[1:].partition("]")
        if rest[:1] not in ("?", "*", "+", "{") and letters.isalpha():
            return [letter + rest for letter in letters]
    if phrase[1:2] == "?" and phrase[0] not in SPECIAL:
        return [phrase[0] + phrase[2:], *_spell(phrase[2:])]
    return [phrase] if phrase[1:2] not in ("*", "{") else [f"(?:{phrase})"]


def _first_group(phrase: str) -> tuple[list[str], str]:
    """The alternatives of the group that a pattern begins with, and what follows it. No class here holds a bracket."""
    depth, alternatives, start = 0, [], len("(?:")
    for at, character in enumerate(phrase):
        depth += (character == "(") - (character == ")")
        if depth == 0 or (depth == 1 and character == "|"):
            alternatives.append(phrase[start:at])
            start = at + 1
            if depth == 0:
                break
    return alternatives, phrase[start:]


class PhraseSearch:
    """Finds the phrases, of every kind, that stand between `before` and `after`. `leads` may come before the phrase."""

    def __init__(self, phrases: dict[TurnKind, list[str]], before: str, leads: str, after: str) -> None:
        self._phrases, self._before, self._leads, self._after = phrases, before, leads, after
        self._kinds: list[TurnKind] = []
        """The kind that each group stands for, but for the first two."""
        ends = {kind: end for end, kind in KIND_ENDS.items()}
        every = _trie([phrase + ends[kind] for kind, each in phrases.items() for phrase in each])
        every = re.sub(f"[{''.join(KIND_ENDS)}]", self._group, every)
        # The first two groups show whether there is a lead.
        self._pattern = re.compile(f"{before}(){leads}()(?:{every}){after}" if leads else f"{before}(?:{every}){after}")

    def _group(self, end: re.Match[str]) -> str:
        self._kinds.append(KIND_ENDS[end[0]])
        return "()"

    @cached_property
    def _by_kind(self) -> list[tuple[TurnKind, re.Pattern[str]]]:
        return [
            (kind, re.compile(f"{self._before}{self._leads}(?:{_trie(each)}){self._after}"))
            for kind, each in self._phrases.items()
            if each
        ]

    def find(self, text: str) -> list[FoundTurn]:
        """Where phrases stand in a text in lower case."""
        kinds, leads = self._kinds, bool(self._leads)
        first = 3 if leads else 1
        found: list[FoundTurn] = []
        for match in self._pattern.finditer(text):
            start, end = match.span()
            # A lead may be a phrase by itself ("no, what if"), and of all kinds that could be meant the first counts.
            # Without one there is one place where a phrase can begin, and alternatives stand in the order of the kinds.
            if leads and match.start(1) != match.start(2):
                kind = next(kind for kind, pattern in self._by_kind if pattern.match(text, start))
            else:
                kind = kinds[(match.lastindex or first) - first]
            found.append((start, end, kind))
        return found


class Script:
    """Languages that share a script, and the patterns that find their phrases. Made when the script is first met."""

    def __init__(self, letters: str, languages: tuple[Language, ...], *, spaced: bool = True) -> None:
        self._letters = letters
        self._languages = languages
        self._spaced = spaced

    @cached_property
    def _letter(self) -> re.Pattern[str]:
        return re.compile(f"[{self._letters}]")

    @cached_property
    def _opening(self) -> PhraseSearch:
        if self._spaced:
            before, leads = rf"[{CLAUSE}][ \t\"'“„«¿¡*_]{{0,4}}+", rf"(?:(?:{_trie(LEADS)})[ ,]{{1,2}}){{0,2}}"
        else:
            before, leads = rf"[{CLAUSE}][ 　「『“\"（]{{0,3}}+", UNSPACED_LEADS
        return self._search("opening", before, leads)

    @cached_property
    def _anywhere(self) -> PhraseSearch:
        # The character before the phrase is taken in, because a class is what a search finds fast.
        return self._search("anywhere", r"[\W_]" if self._spaced else "")

    @cached_property
    def _plain(self) -> PhraseSearch:
        """The same for ASCII: a class without a category is searched for several times as fast."""
        return self._search("anywhere", "[^a-z0-9]")

    def _search(self, place: str, before: str, leads: str = "") -> PhraseSearch:
        phrases: dict[TurnKind, list[str]] = {
            kind: [phrase for language in self._languages for phrase in getattr(language[kind], place)]
            for kind in KINDS
        }
        return PhraseSearch(phrases, before, leads, r"(?!\w)" if self._spaced else "")

    def find(self, text: str, odd: str) -> list[FoundTurn]:
        """Where each phrase stands in a text in lower case; `odd` is what the text has beyond ASCII."""
        if self._letters and self._letter.search(odd) is None:
            return []
        return self._opening.find(text) + self._find_anywhere(text, odd)

    def _find_anywhere(self, text: str, odd: str) -> list[FoundTurn]:
        # Beyond ASCII the plain class takes letters for what stands between words. Few such letters stand directly
        # before what could be a phrase; where one does, the careful class is asked after all.
        if not self._letters and len(odd) * MOST_ODD <= len(text):
            found = self._plain.find(text)
            if not odd or not any(text[start].isalnum() for start, _, _ in found):
                return found
        return self._anywhere.find(text)


LATIN = Script("", (ENGLISH, GERMAN, FRENCH, SPANISH))
SCRIPTS = (
    LATIN,
    Script("а-яё", (RUSSIAN,)),
    Script("가-힣", (KOREAN,)),
    Script(UNSPACED, (CHINESE, JAPANESE), spaced=False),
)


def count_turns(text: str) -> dict[TurnKind, int]:
    """How many turns of each kind a thought takes, in any of the languages here. Several in a row are one."""
    lowered = "\n" + text.lower().replace("’", "'")
    odd = "" if lowered.isascii() else beyond_ascii(lowered)
    counts: dict[TurnKind, int] = dict.fromkeys(KINDS, 0)
    last = -APART
    scripts = SCRIPTS if odd else (LATIN,)
    for start, end, kind in sorted(found for script in scripts for found in script.find(lowered, odd)):
        if start - last >= APART or not SENTENCE.isdisjoint(lowered[last : start + 1]):
            counts[kind] += 1
        last = max(last, end)
    return counts
