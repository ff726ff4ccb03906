"""What a model's name says. Knows names only: nothing is opened, and nothing is asked of anyone.

One rule holds for every row of the table: a version that stands in a name must be one that the row lists. A newer
version of a known family may write quite differently, so it is never taken for an older one: its family is named, and
the format is left to the other sources or to `auto`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..families import formats, get_format
from ..families.registry import fold
from .markers import GENERIC
from .result import Finding, Start, own_begin


class Named(NamedTuple):
    """What is known of the models whose names match a pattern."""

    family: str
    pattern: str
    """`{}` in it stands for the version, which then must be one of those below; a row without it is for any."""
    versions: str
    format: str
    thinks: bool | None
    who: str = ""
    """What it is, in words, where that is more than a family and a version."""
    start: Start | None = None
    """Where output begins, if not where the format says."""


class Known(NamedTuple):
    """What a name was found to be."""

    row: Named | None
    """None where nothing but the family is known."""
    family: str = ""
    version: str = ""


MODELS = (
    # The first that matches decides: tunes and distillations before what they were made from, and the
    # particular before the general. Names are lower case, with hyphens for underscores and spaces.
    Named("gpt-oss", r"gpt-?oss", "", "harmony", True),
    Named("Qwen", r"\bqwq", "", "qwen3_thinking", True, "QwQ"),
    Named("DeepSeek", r"r1-distill|deepseek-reasoner", "", "deepseek_r1", True, "DeepSeek R1 or a distillation of it"),
    Named("DeepSeek", r"deepseek-?r{}", "1", "deepseek_r1", True, "DeepSeek R1 or a distillation of it"),
    Named("DeepSeek", r"deepseek-?math-?v{}", "2", "deepseek_r1", True, "DeepSeek Math"),
    Named("DeepSeek", r"deepseek-?v{}-exp", "3.2", "deepseek_v31", True, "DeepSeek V3.2 Exp with the calls of V3.1"),
    Named("DeepSeek", r"deepseek-?v{}", "4", "deepseek_v4", True),
    Named("DeepSeek", r"deepseek-?v{}", "3.2", "deepseek_v32", True),
    Named("DeepSeek", r"deepseek-?v{}", "3.1", "deepseek_v31", True),
    Named("DeepSeek", r"deepseek-?v{}", "3", "deepseek_v3", False),
    Named(
        "DeepSeek",
        r"skywork-or1|acereason|light-r1|openreasoning",
        "",
        "deepseek_r1",
        True,
        "a model made from an R1 distillation",
    ),
    Named("Hermes", r"deephermes", "", "hermes", True, "DeepHermes"),
    Named("Hermes", r"hermes-?{}", "4 4.3", "hermes", True),
    Named("Hermes", r"hermes-?{}", "2 2.5 3", "hermes", False),
    Named("Nemotron", r"nemotron-?{}", "3 3.5", "nemotron_v3", True),
    Named("Nemotron", r"nemotron-nano-?{}|nemotron-nano.*-v2", "2", "nemotron_nano_v2", True, "Nemotron Nano 2"),
    Named("Llama Nemotron", r"llama.*nemotron|nemotron.*llama", "", "nemotron_deci", True),
    Named("Nemotron", r"nemotron.*-v{}", "3", "nemotron_v3", True),
    Named("OpenThinker", r"openthinker|sky-t1", "", "think_tag", True, "a model that writes begin_of_thought"),
    Named("Marco", r"marco-o1", "", "think_tag", True, "Marco-o1"),
    Named("Reka", r"reka-flash-?{}", "3 3.1", "think_tag", True, "Reka Flash 3"),
    Named("EXAONE", r"exaone-?deep|(?<!k-)exaone-?{}", "4 4.0", "think_tag", True, "EXAONE Deep or 4"),
    Named("K2 Think", r"(?<!kimi-)\bk2-think\b", "", "think_tag", True),
    Named("Ring", r"\bring-?{}", "2.5 2.6", "ling3", True),
    Named("Ring", r"\bring-(?:lite|mini|flash|1t)", "", "think_tag", True, "a Ring before 2.5"),
    Named("Holo", r"\bholo-?{}", "2", "qwen3_thinking", True),
    Named("Ornith", r"ornith", "", "qwen3.5", True),
    Named("Cogito", r"cogito(?:-v?{})?", "1 2 2.1", "deepseek_r1", True, "Cogito, which thinks when asked to", "text"),
    Named("MiMo", r"\bmimo-v{}", "2", "mimo", True),
    Named("MiMo", r"\bmimo-(?:vl|7b)", "", "qwen3", True, "MiMo before the second"),
    Named("MiMo", r"\bmimo$", "", "mimo", True),
    Named("IQuest", r"iquest-coder.*thinking", "", "qwen3_thinking", True, "IQuest Coder Thinking"),
    Named("Tongyi", r"tongyi-deepresearch", "", "qwen3", True, "Tongyi DeepResearch"),
    Named("MiniCPM", r"minicpm-?{}", "5", "minicpm5", True),
    Named("MiniCPM", r"minicpm-?(?:[vo]-?)?{}", "4.1 4.5", "qwen3", True),
    Named("Intern", r"intern-?s{}", "1", "interns1", True, "Intern-S1"),
    Named("Intern", r"intern-?s{}", "2", "qwen3.5", True, "Intern-S2"),
    Named("InternLM", r"internlm-?{}", "2 2.5", "internlm", False),
    Named("Nanbeige", r"nanbeige-?{}", "4.2", "qwen3_coder", True),
    Named("Trinity", r"trinity-large-thinking", "", "qwen3.5", True, "Trinity Large Thinking"),
    Named("Trinity", r"trinity-(?:mini|nano)", "", "trinity", None),
    Named("Qwen", r"qwen-?{}", "3.5 3.6 3.8", "qwen3.5", True),
    Named("Qwen", r"qwen-?{}.*(?:embedding|reranker|guard)", "3", "qwen3", False, "a Qwen 3 that writes no answers"),
    Named("Qwen", r"qwen-?{}-?coder", "3", "qwen3_coder", False, "Qwen 3 Coder"),
    Named("Qwen", r"qwen-?{}.*(?<!disable-)thinking", "3", "qwen3_thinking", True, "Qwen 3 Thinking"),
    Named("Qwen", r"qwen-?{}.*instruct", "3", "qwen3", False, "Qwen 3 Instruct"),
    Named("Qwen", r"qwen-?{}-?(?:vl|omni|next)", "3", "qwen3", None, "Qwen 3, of which there are variants that think"),
    Named("Qwen", r"qwen-?{}", "3", "qwen3", True),
    Named("Qwen", r"qwen-?{}", "1 1.5 2 2.5", "qwen25", False),
    Named("Qwen", r"qwen-?\d+b|codeqwen", "", "qwen25", False, "a Qwen before the third"),
    Named("GLM", r"glm-?{}", "4.5 4.6", "glm45", True),
    Named("GLM", r"glm-?{}", "4.7 5 5.1 5.3", "glm47", True),
    Named("GLM", r"glm-?z1|glm-?{}v.*thinking", "4.1", "think_tag", True, "GLM Z1 or 4.1V Thinking"),
    Named("GLM", r"\bglyph\b", "", "glm45", True, "Glyph"),
    Named("Kimi", r"kimi-?k{}", "3", "kimi_k3", True),
    Named("Kimi", r"kimi-?k{}", "2.5 2.6", "kimi_k25", True),
    Named("Kimi", r"kimi-?k{}.*thinking", "2", "kimi_k2", True, "Kimi K2 Thinking"),
    Named("Kimi", r"kimi-?k{}", "2", "kimi_k2", False),
    Named("Kimi", r"kimi-?linear|moonlight", "", "kimi_k2", False, "Kimi Linear or Moonlight"),
    Named("Kimi", r"kimi-?vl.*thinking|kimi-?dev", "", "kimi", True, "Kimi VL Thinking or Kimi Dev"),
    Named("Kimi", r"kimi-?vl", "", "kimi", False, "Kimi VL"),
    Named("MiniMax", r"minimax-?m{}", "3", "minimax_m3", True),
    Named("MiniMax", r"minimax-?m{}", "2 2.1 2.5", "minimax_m2", True),
    Named("MiniMax", r"minimax-?m{}", "1", "auto", True, "MiniMax M1, which opens its thoughts itself"),
    Named("Gemma", r"functiongemma", "", "functiongemma", False, "FunctionGemma"),
    Named("Gemma", r"gemma-?{}", "4", "gemma4", True),
    Named("Gemma", r"gemma-?{}", "1 1.1 2 3", "auto", False),
    Named("Gemma", r"gemma", "", "auto", False, "a Gemma before the fourth"),
    Named("Mistral", r"magistral|ministral.*reasoning", "", "mistral", True, "a Mistral that thinks"),
    Named("Mistral", r"mistral-small-{}", "4", "mistral", True, "Mistral Small 4"),
    Named("Mistral", r"mistral-medium-{}", "3.5", "mistral", True, "Mistral Medium 3.5"),
    Named(
        "Mistral",
        r"mistral-(?:small|medium|large)-{}",
        "2 2.1 3 3.1 3.2",
        "mistral",
        False,
        "a Mistral that does not think",
    ),
    Named(
        "Mistral",
        r"devstral|ministral|mistral|mixtral|codestral|pixtral",
        "",
        "mistral",
        False,
        "a Mistral that does not think",
    ),
    Named("Seed-OSS", r"seed-?oss", "", "seed_oss", True),
    Named("Command", r"command-?a-?(?:reasoning|plus)|cohere-?2-?moe", "", "cohere", True, "a Command that thinks"),
    Named("Command", r"command-?r7b", "", "cohere_command3", True, "Command R7B, which thinks before it calls"),
    Named("Command", r"command-?a\b", "", "cohere_command3", False, "a Command that does not think"),
    Named("Command", r"command-?r\b", "", "auto", False, "Command R"),
    Named("Apriel", r"apriel-?{}", "1.6", "apriel_1.6", True),
    Named("Apriel", r"apriel-?{}", "1.5", "apriel", True),
    Named("Apriel", r"apriel", "", "apriel", True),
    Named(
        "Apertus",
        r"apertus(?:-v{})?",
        "1",
        "apertus",
        None,
        "Apertus, whose format has thoughts that are off unless asked for",
    ),
    Named("Solar Open", r"solar-?open(?:-?v?{})?", "1", "solar_open", True),
    Named("Hunyuan", r"\b(?:hy|hunyuan)-?v?{}", "3", "hy_v3", True, "Hy3"),
    Named("Hunyuan", r"hunyuan", "", "hunyuan_a13b", True),
    Named("Step", r"\bstep-?{}-?vl", "3", "qwen3_thinking", True, "Step3-VL"),
    Named("Step", r"\bstep-?{}", "3.5", "step3p5", True),
    Named("Step", r"\bstep-?{}", "3", "step3", True),
    Named("SmolLM", r"smollm-?{}", "3", "smollm3", True),
    Named("Bielik", r"bielik.*-v{}", "3 3.0", "bielik", True),
    Named("Granite", r"granite.*20b.*func", "", "granite_20b_fc", False, "Granite 20B for function calls"),
    Named("Granite", r"granite-?{}", "3 3.0 3.1", "granite", False),
    Named("Granite", r"granite-?{}", "3.2", "granite", True),
    Named("Granite", r"granite-?{}", "3.3", "granite_3.3", True),
    Named("Granite", r"granite-?{}", "4 4.0 4.1", "granite4", False),
    Named("LFM", r"lfm-?{}.*thinking", "2 2.5", "lfm2", True, "an LFM2 that thinks"),
    Named("LFM", r"lfm-?{}-8b", "2.5", "lfm2", True, "an LFM2 that thinks"),
    Named("LFM", r"lfm-?{}", "2 2.5", "lfm2", False),
    Named("Olmo", r"olmo-?{}.*think", "3 3.1", "olmo3_think", True, "Olmo 3 Think"),
    Named("Olmo", r"olmo-?{}", "3 3.1", "olmo3", False, "Olmo 3 Instruct"),
    Named("Phi", r"\bphi-?{}-mini.*reasoning", "4", "phi4", True, "Phi-4 mini reasoning"),
    Named("Phi", r"\bphi-?{}.*reasoning", "4", "think_tag", True, "Phi-4 reasoning"),
    Named("Phi", r"\bphi-?{}", "3 3.5 4", "phi4", False),
    Named("Jamba", r"jamba.*reasoning", "", "jamba", True, "Jamba Reasoning"),
    Named("Jamba", r"jamba-?{}", "1.5 1.6 1.7", "jamba", False),
    Named("Jamba", r"jamba", "", "jamba", False),
    Named("ERNIE", r"ernie-?{}.*thinking", "4.5", "ernie45", True, "ERNIE 4.5 Thinking"),
    Named("ERNIE", r"ernie-?{}", "4.5", "ernie45", False),
    Named("LongCat", r"longcat(?:-v?{})?.*thinking", "", "longcat", True, "LongCat Thinking"),
    Named("LongCat", r"longcat(?:-v?{})?", "", "longcat", False),
    Named("Ling", r"\bling-?{}", "2.5", "qwen3", False),
    Named("Ling", r"\bling-?{}", "2.6", "qwen3", True),
    Named("Ling", r"\bling-?{}", "3 3.0", "ling3", True),
    Named("Laguna", r"laguna-?s-?{}", "2.1", "poolside_v1", True, "Laguna S", "thinking"),
    Named("Laguna", r"laguna-?(?:xs|m)[.-]?{}", "1 2 2.1", "poolside_v1", True),
    Named("Laguna", r"laguna", "", "poolside_v1", True),
    Named("GigaChat", r"gigachat-?{}", "3 3.1", "gigachat3", False),
    Named("RWKV", r"rwkv", "", "rwkv_world", True, "RWKV World"),
    Named("Reka", r"reka-?edge", "", "reka_edge", True, "Reka Edge"),
    Named("Functionary", r"functionary.*-v{}", "3.2", "functionary", False),
    Named("Firefunction", r"firefunction", "", "auto", False),
    Named("Muse", r"\bmuse\b|glimmer", "", "muse", True),
    Named("Inkling", r"inkling", "", "inkling", True),
    Named("xLAM", r"xlam", "", "xlam", False),
    Named("ToolACE", r"toolace", "", "pythonic", False),
    # Of these no format is known, or none for certain.
    Named("Falcon", r"falcon-?h1r", "", "auto", True, "Falcon H1R", "thinking"),
    Named("INTELLECT", r"intellect-?{}", "3 3.1", "auto", True),
    Named("HyperCLOVA X", r"hyperclova-?x.*think", "", "auto", True),
    Named("K2 Horizon", r"k2-?horizon", "", "auto", True),
    Named("PLaMo", r"plamo-?{}", "3", "auto", None),
    Named("Beam", r"\bbeam-?{}", "1 1.0", "auto", True),
    Named("Spark", r"\bspark-?x?{}", "2.5", "auto", None),
    Named("A.X", r"\ba\.?x-k{}", "1 2", "auto", None),
    Named("IQuest", r"iquest-q{}", "1", "auto", True),
    Named("Llama", r"llama-?{}", "4", "llama4_pythonic", False),
    Named("Llama", r"llama-?{}", "2 3 3.1 3.2 3.3", "llama3_json", False),
)
"""What names mean. A row is added by looking at the model's own chat template."""

MOST = 500
"""Characters of a name that are looked at."""

_SIZE = r"\.?\d*[bmt]\b"
"""What follows a number that is a size: 8b, 0.6b, 100m."""
_VERSION = rf"(?P<version>(?>\d{{1,3}}(?!\d|{_SIZE})(?:[.p]\d{{1,2}}(?!\d|{_SIZE})|-\d{{1,2}}(?![\w.]))*))"
"""4, 4.1, 4p1, 4-1, 41; not the size behind it, nor a date (0905, 2507)."""
_GOES_ON = re.compile(rf"[-_.\s]?v?\d{{1,3}}(?!\d|{_SIZE})")
"""A version behind the name of a format."""


def look_up(name: str) -> Named | None:
    """What is known of a model of this name, or None. Organisations, tags and quantisations may stand around it."""
    return _find(name).row


def is_newer(name: str) -> bool:
    """Whether a name is of a known family, but of a version that is not known."""
    found = _find(name)
    return found.row is None and found.version != ""


@cache
def _patterns() -> tuple[tuple[Named, re.Pattern[str]], ...]:
    return tuple((row, re.compile(row.pattern.replace("{}", _VERSION))) for row in MODELS)


def _find(name: str) -> Known:
    """What a name is by the model's own part of it, or else by the whole, organisation and folders included."""
    found = _search(_plain(_base(name)))
    return found if found.family else _search(_plain(name))


def _search(plain: str) -> Known:
    """The row that fits, or the family whose version no row lists."""
    newer = Known(None)
    for row, pattern in _patterns():
        match = pattern.search(plain) if newer.family in ("", row.family) else None
        if match is None:
            continue
        version = re.sub(r"[p-]", ".", match.groupdict().get("version") or "")
        if not version and newer.version:
            continue  # a family's general row is not for versions that its particular ones do not list
        if not version or version.replace(".", "") in row.versions.replace(".", "").split():
            return Known(row, row.family, version)
        # Other versions of the family may follow. What it was made from may not: that is not how it writes.
        newer = newer if newer.family else Known(None, row.family, version)
    return newer


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name[:MOST].strip().lower())


def _base(name: str) -> str:
    return re.split(r"[/\\]", name[:MOST].rstrip("/\\"))[-1]


def probe(name: str) -> Finding:
    """What a name says of its model."""
    found = _find(name)
    row = found.row
    named = _format_named(name)
    if row is not None and row.format != "auto" and named in ("", get_format(row.format).name):
        return _told(name, row, found.version)
    if named:
        return Finding(source="name", formats=(named,), reasons=(f"{name!r} is the name of the format {named}",))
    family = found.family or _family(_base(name))
    own = _format_begun(_base(name), family)
    if own:
        return Finding(source="name", formats=(own,), reasons=(f"{name!r} begins with the name of the format {own}",))
    if row is not None:
        return _told(name, row, found.version)
    if found.version:
        reason = f"{name!r} is {family}, but of version {found.version}, which is not known here"
    elif family:
        reason = f"{name!r} is of the family {family}, but not a model of it that is known here"
    else:
        reason = f"{name!r} says nothing that is known here"
    return Finding(source="name", reasons=(reason,))


def _told(name: str, row: Named, version: str) -> Finding:
    """What a row says."""
    format = get_format(row.format)
    known = {True: "thinks", False: "does not think", None: "may think"}[row.thinks]
    who = row.who or f"{row.family} {version}".strip()
    reason = f"{name!r} is {who}" + ("" if "think" in who else f", which {known}")
    reason += " and has no format of its own that is known here" if format.settle is not None else ""
    begin = row.start or own_begin(format, row.thinks)
    return Finding(source="name", formats=(format.name,), thinks=row.thinks, begin=begin, reasons=(reason,))


def _family(base: str) -> str:
    """The family whose name stands in a model's."""
    plain = _plain(base)
    for family in dict.fromkeys(row.family for row in MODELS):
        if re.search(rf"\b{re.escape(_plain(family))}(?![a-z])", plain):
            return family
    return ""


def _format_named(name: str) -> str:
    """The format that is called so itself, as somebody who knows its name may call the model."""
    if not name or re.search(r"[/\\:]", name):
        return ""  # a model's name, for which not every family need be imported
    wanted = fold(name[:MOST])
    known = ((format, alias) for format in formats() for alias in (format, *get_format(format).aliases))
    return next((format for format, alias in known if fold(alias) == wanted), "")


def _format_begun(base: str, family: str) -> str:
    """The format whose name a model's name begins with, the longest if several do.

    What follows must be no version. Where the family is known, the format must be of it and of a version: `granite`
    alone is one Granite of many.
    """
    found = [
        (len(fold(known)), format)
        for format in formats()
        if format not in GENERIC
        for known in (format, *get_format(format).aliases)
        if len(fold(known)) > 3 and _is_of(known, family) and _begins(base, fold(known))
    ]
    return max(found)[1] if found else ""


def _is_of(known: str, family: str) -> bool:
    return not family or (fold(known).startswith(fold(family)) and re.search(r"\d", known) is not None)


def _begins(base: str, plain: str) -> bool:
    match = re.match(r"[-_.\s]*".join(map(re.escape, plain)) + r"(?![^\W_])", base.casefold())
    return match is not None and _GOES_ON.match(base.casefold(), match.end()) is None
