"""The words that show what a step of a thought does, by language: it restates, plans, tries or concludes.

The words of turns, checks and corrections are those of `_turns`. A phrase counts only where a sentence begins, after
the little words that may lead it in. `PATTERNS` has them all, in a form that Python and JavaScript read alike.
"""

from __future__ import annotations

from typing import Literal

from . import _turns
from ._turns import LEADS, UNSPACED_LEADS, TurnKind

CueKind = Literal["restate", "plan", "try", "conclude"]
Cues = dict[CueKind, tuple[str, ...]]

_WORK = "solve|find|figure|work|determine|understand|approach|tackle|answer|write|build|make|get|prove|show|decide"
_COUNT = (
    "compute|calculate|evaluate|simplify|expand|substitute|plug|count|add|multiply|divide|subtract|integrate|"
    "differentiate|factor|rewrite|convert|enumerate|list|denote|define|set|call|use|apply|take|start with|try|do"
)


def _cues(restate: tuple[str, ...], plan: tuple[str, ...], trial: tuple[str, ...], conclude: tuple[str, ...]) -> Cues:
    return {"restate": restate, "plan": plan, "try": trial, "conclude": conclude}


ENGLISH = _cues(
    (
        r"the (?:question|problem|task|user|prompt|goal|puzzle|exercise) "
        r"(?:asks?|is asking|is|says|states|wants|gives|here)",
        r"(?:we|i)(?: are|'re| am|'m) (?:given|asked|told|looking for|trying to)",
        "(?:we|i) have (?:to|the following|a (?:problem|question))",
        r"the (?:given|original) (?:problem|question|information|statement|equation|string|list|numbers?)",
        "given(?: that|:| the)?",
        "i (?:need|have) to (?:figure out|find out|answer)",
        "(?:we|i) know that",
        "from the (?:question|problem|statement)",
    ),
    (
        rf"to (?:{_WORK})(?: out)? (?:this|the|it|that|how|what|whether|a)",
        r"(?:first|next|then|second|third|finally|secondly|thirdly),? "
        r"(?:(?:i|we)(?:'ll| will| need| should| must| have| want|'m going| can)|let me|let's)",
        r"(?:first|next) (?:step|action)",
        r"(?:so )?step by step",
        r"(?:i|we)(?:'ll| will| need to| should| must| have to| can) (?:now |first |then |also )?"
        r"(?:start|begin|break|look|search|need|visit|gather|proceed|follow)",
        r"let(?:'s| me| us) (?:start|begin|break|think|plan|outline|approach|proceed|go step|look for|search|tackle"
        r"|structure|draft|explore)",
        "(?:my|the|our) (?:plan|approach|strategy|idea|first step|next step)",
        "(?:the )?(?:steps|plan|approach|strategy):",
        "here(?:'s| is) (?:the|my|a) (?:plan|approach|strategy)",
        "step(?:s)? (?:by step|to follow)",
    ),
    (
        rf"(?:let(?:'s| me| us)|i(?:'ll| will)|we(?:'ll| will)?) (?:now |just |first |also |then )?(?:{_COUNT})",
        rf"(?:now,? )?(?:we|i) (?:can )?(?:now |also |then )?(?:{_COUNT})",
        "suppose",
        "assum(?:e|ing)",
        "if (?:we|i|you)",
        "consider",
        "(?:for|in) (?:the )?(?:case|example|instance)",
        "(?:trying|starting with|using|substituting|plugging|applying|multiplying|adding|expanding)",
        "let [a-z](?:_?[a-z0-9])? (?:be|=)",
        "case [0-9a-z]{1,3}[:.]",
    ),
    (
        r"(?:so|therefore|thus|hence|then),? (?:the|our|my) (?:final |correct |right |best )?"
        r"(?:answer|result|solution|total|output|number|value|minimum|maximum)",
        "the (?:final |correct |right |best )(?:answer|result|solution|output)",
        "the answer (?:is|should be|must be|would be|to the|seems)",
        r"(?:therefore|thus|hence)(?!,? (?:we|this|by)|:)",
        "(?:consequently|in conclusion|in summary|to summarize|to conclude|overall|in short|finally, the)",
        "(?:so )?putting (?:it|this|these|everything|all)(?: all)? together",
        "so,? (?:overall|in total|altogether|all in all|to sum up|i(?:'ll| will) (?:answer|go with)|that means)",
        r"(?:i|we)(?:'ll| will| can| should)? (?:conclude|go with|answer with)",
        r"(?:based on|given) (?:this|these|the above|all)",
        r"i (?:now )?have (?:enough|all the|sufficient)",
    ),
)
GERMAN = _cues(
    (
        "die (?:frage|aufgabe) (?:ist|lautet|fragt|verlangt)",
        "gegeben (?:ist|sind)",
        "(?:wir haben|gesucht ist)",
        "der nutzer (?:fragt|möchte|will)",
    ),
    ("zuerst", "zunächst", "als (?:erstes|nächstes)", "um (?:das|die|den)", r"ich (?:werde|muss|sollte)"),
    ("angenommen", "nehmen wir an", "wenn (?:wir|ich)", "versuchen wir", "berechnen wir", "sei [a-z]"),
    ("also ist", "daher", "folglich", "somit", "die antwort (?:ist|lautet)", "zusammenfassend", "insgesamt"),
)
FRENCH = _cues(
    (
        "la question (?:est|demande)",
        "le problème (?:est|demande)",
        "on (?:nous )?(?:demande|donne)",
        "l'utilisateur (?:demande|veut)",
    ),
    ("d'abord", "tout d'abord", "ensuite", "commençons", "pour (?:résoudre|trouver|répondre)", "je (?:vais|dois)"),
    ("supposons", "si (?:on|nous|je)", "essayons", "calculons", "prenons", "soit [a-z]"),
    ("donc", "ainsi", "par conséquent", "la réponse (?:est|finale)", "en (?:conclusion|résumé)", "finalement"),
)
SPANISH = _cues(
    (
        "la pregunta (?:es|pide)",
        "el problema (?:es|pide|dice)",
        "(?:se )?nos (?:dan|piden)",
        "el usuario (?:pregunta|quiere|pide)",
    ),
    ("primero", "en primer lugar", "luego", "empecemos", "para (?:resolver|encontrar|responder)", "necesito"),
    ("supongamos", "si (?:tomamos|usamos|ponemos)", "intentemos", "calculemos", "sea [a-z]"),
    (
        "por (?:lo )?tanto",
        "así que",
        "entonces,? la respuesta",
        "la respuesta (?:es|final)",
        "en (?:conclusión|resumen)",
    ),
)
RUSSIAN = _cues(
    ("в (?:задаче|вопросе)", "(?:нам )?дано", "вопрос (?:в том|такой)", "пользователь (?:спрашивает|хочет|просит)"),
    ("сначала", "во-первых", "затем", "начн[её]м", "чтобы (?:решить|найти|ответить)", "(?:мне )?нужно"),
    ("предположим", "допустим", "пусть", "если (?:мы|взять)", "попробуем", "вычислим", "посчитаем"),
    ("итак", "следовательно", "таким образом", "значит", "ответ:?", "в итоге"),
)
KOREAN = _cues(
    ("문제는", "질문은", "사용자(?:가|는)", "주어진"),
    ("먼저", "우선", "다음으로", "첫째"),
    ("가정하", "만약", "계산해", "시도해"),
    ("따라서", "그러므로", "결론적으로", "정답은", "답은"),
)
CHINESE = _cues(
    ("(?:题目|问题|用户)(?:要求|说|问|是|给出|想)?", "(?:已知|给定)"),
    ("首先", "接下来", "第一步", "(?:我|我们)(?:需要|应该|要|先)", "为了"),
    ("假设", "假如", "如果", "(?:让我|我们)?(?:试试|尝试|计算|代入|考虑)", "设"),
    ("所以", "因此", "综上", "总之", "(?:最终)?答案(?:是|为)?", "由此可见"),
)
JAPANESE = _cues(
    ("問題は", "質問は", "ユーザー(?:は|が)", "与えられ"),
    ("まず", "最初に", "次に", "はじめに"),
    ("仮に", "もし", "仮定", "計算(?:する|し)", "試し"),
    ("したがって", "よって", "つまり", "結論", "答えは", "以上(?:より|から)"),
)
_SPACED = (
    (_turns.ENGLISH, ENGLISH),
    (_turns.GERMAN, GERMAN),
    (_turns.FRENCH, FRENCH),
    (_turns.SPANISH, SPANISH),
    (_turns.RUSSIAN, RUSSIAN),
    (_turns.KOREAN, KOREAN),
)
_UNSPACED = ((_turns.CHINESE, CHINESE), (_turns.JAPANESE, JAPANESE))
_OPENS = r"""^[\s"'“„«¿¡*_(「『（]{0,4}"""


def _patterns() -> list[tuple[TurnKind | CueKind, str]]:
    """Patterns and what a sentence, in lower case, that begins with one is. The first that matches counts."""
    scripts = ((_SPACED, f"(?:(?:{'|'.join(LEADS)})[ ,]{{1,2}}){{0,2}}", r"(?!\w)"), (_UNSPACED, UNSPACED_LEADS, ""))
    made: list[tuple[TurnKind | CueKind, str]] = []
    for kind in (*_turns.KINDS, *ENGLISH):
        for languages, leads, after in scripts:
            phrases = [each for language in languages for each in _phrases(*language, kind)]
            made.append((kind, f"{_OPENS}{leads}(?:{'|'.join(phrases)}){after}"))
    return made


def _phrases(turns: dict[TurnKind, _turns.Phrases], cues: Cues, kind: TurnKind | CueKind) -> tuple[str, ...]:
    """How one language says one kind."""
    for turn, phrases in turns.items():
        if turn == kind:
            return phrases.opening + phrases.anywhere
    return next(said for cue, said in cues.items() if cue == kind)


PATTERNS = _patterns()
