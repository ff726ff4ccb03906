"""Reports on templates of strangers: the process in which one is studied, and who starts it.

`report_on` is called by commands and the page. It starts this file as a script, which is given what to study as JSON,
loads the tokenizer, bounds its own memory and time, and only then looks at the template. What it says comes back as
JSON too. A template that loops, fills memory or breaks out of Jinja's limits ends that process and not the caller's.

    report_on(tokenizer=Path("./Qwen3-8B")).next_prompts
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asides._conversation._conversation import Conversation
    from asides._conversation._report_subject import TemplateReport
    from asides.detect._facts import Facts

MEMORY = 1 << 30
"""Bytes of address space for a template, beyond what the tokenizer takes."""
LOADING_MEMORY = 12 << 30
LOADING_SECONDS = 60
"""Seconds of computing to load a tokenizer. The largest take five."""
SECONDS = 10
"""Seconds of computing for all renderings of one template. A real one needs less than one."""
PATIENCE = 120.0
STANDS_FOR = {"bos_token": "<bos_token>", "eos_token": "<eos_token>"}
"""What is written for a tokenizer's own tokens where there is no tokenizer."""


def report_on(
    tokenizer: Path | None = None,
    template: str | None = None,
    *,
    model: str = "",
    twin: Path | None = None,
) -> TemplateReport:
    """Study a template. `tokenizer`: a file or folder of a model; `template`: Jinja, in place of the one in there.

    `twin`: a training template to compare with; otherwise TRL's, where it is installed and has one.
    """
    import msgspec

    from asides._conversation._report_subject import TemplateReport
    from asides._conversation._report_twin import find_twin
    from asides.detect._facts import read
    from asides.detect._files import read_text
    from asides.detect._sandbox import check_source, run_apart
    from asides.errors import UsageError

    facts = read(tokenizer) if tokenizer is not None else None
    beside = _beside(tokenizer, facts)
    if template is None:
        template = facts.template if facts is not None else None
    if template is None and beside is not None:
        template = read(beside).template
    if template is None:
        raise UsageError(
            f"{tokenizer}: holds no chat template; it is in a chat_template.jinja, a tokenizer_config.json or a GGUF"
        )
    check_source(template)
    found, note = find_twin(template) if twin is None else ((str(twin), read_text(twin)), "")
    source = beside or tokenizer
    request = {
        "tokenizer": str(source) if source is not None else None,
        "template": template,
        "model": model,
        "twin": found,
        "seconds": SECONDS,
    }
    answer = run_apart(Path(__file__), request, PATIENCE)
    try:
        said = msgspec.json.decode(answer)
        if "error" in said:
            raise UsageError(str(said["error"]))
        report = msgspec.convert(said, TemplateReport)
    except (msgspec.DecodeError, TypeError) as error:
        raise UsageError("the process that studies chat templates gave no answer that can be read") from error
    return msgspec.structs.replace(report, twin_note=note)


def _beside(tokenizer: Path | None, facts: Facts | None) -> Path | None:
    """The folder of a file that alone lacks a template or a tokenizer, where the other lies beside it."""
    if tokenizer is None or facts is None or tokenizer.is_dir() or tokenizer.suffix == ".gguf":
        return None
    folder = tokenizer.parent
    names = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json")
    if tokenizer.name not in names or not (folder / "tokenizer.json").is_file():
        return None
    return folder if facts.template is None or facts.file is None else None


# In the process.


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    sys.path[:] = request["path"]
    # It starts threads for lists of texts, of which there are none here.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from asides.errors import Error

    answer: Any
    try:
        answer = _study(request)
    except Error as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"the chat template needs more memory than the {MEMORY >> 20} MiB allowed"}
    except RecursionError:
        answer = {"error": "the chat template calls itself too deeply"}
    # ASCII, so that no half of a surrogate pair can stand in the way.
    sys.stdout.write(json.dumps(answer))


def _study(request: dict[str, Any]) -> Any:
    import msgspec

    from asides._conversation._conversation import Conversation
    from asides._conversation._report import study
    from asides.detect._facts import Facts, read
    from asides.detect._template_process import bound

    bound(LOADING_MEMORY, LOADING_SECONDS)
    path, template, model = request["tokenizer"], request["template"], request["model"] or None
    facts = read(path) if path is not None else Facts()
    exact = facts.file is not None and find_spec("tokenizers") is not None
    if exact:
        facts = msgspec.structs.replace(facts, live=facts.loaded())
    # From here on the template is looked at.
    bound(_address_space() + MEMORY, int(time.process_time()) + 1 + request["seconds"])
    if exact:
        conversation = Conversation(facts, template, model=model)
    else:
        conversation = _by_characters(facts, template, model)
    twin = request["twin"]
    counted = f"ids by {facts.file.name}" if exact and facts.file is not None else _why_no_ids(facts)
    report = study(conversation, characters=not exact, counted=counted, twin=tuple(twin) if twin else None)
    return msgspec.to_builtins(report)


def _address_space() -> int:
    """Bytes that this process has mapped, where the system says it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return LOADING_MEMORY


def _why_no_ids(facts: Facts) -> str:
    if facts.file is not None:
        from asides._extras import install_command

        return f"no ids, because tokenizers is not installed ({install_command('tokenizers')}): characters are counted"
    return "no ids, because there is no tokenizer.json: characters are counted"


def _by_characters(facts: Facts, template: str, model: str | None) -> Conversation:
    """A conversation whose ids are characters, and its markers those that the tokenizer has, or the template writes."""
    from asides._conversation._characters import CharacterTokenizer
    from asides._conversation._conversation import Conversation
    from asides.reading import Reading

    used = {name: text for name, text in STANDS_FOR.items() if name in template}
    begin, stop = facts.begin or used.get("bos_token", ""), facts.stop or used.get("eos_token", "")
    format = Reading.of(model, chat_template=template).format
    markers = list(facts.added or ())
    if not markers:
        bare = Conversation(CharacterTokenizer((), begin, stop), template, format=format)
        markers = _written_markers(bare)
    return Conversation(CharacterTokenizer(markers, begin, stop), template, model=model, format=format)


def _written_markers(conversation: Conversation) -> list[str]:
    """What looks like a marker in what a template writes by itself."""
    import re

    from asides._conversation._origin import NOBODY
    from asides._conversation._report_subject import QUESTION, RESULT, SYSTEM, TOOLS, make_answer, make_call
    from asides.detect._markers import TAG
    from asides.errors import UsageError

    found: dict[str, None] = {}
    tooled = conversation.but(tools=TOOLS)
    field = "reasoning_content"
    for asked, messages in (
        (conversation, [QUESTION]),
        (conversation, [SYSTEM, QUESTION, make_answer(field), QUESTION]),
        (conversation, [QUESTION, make_answer(field)]),
        (tooled, [QUESTION, make_call(field), RESULT]),
        (tooled, [QUESTION, make_call(field, json.dumps({"city": "Rome"})), RESULT]),
    ):
        try:
            chat = asked.prompt(messages)._chat
        except UsageError:
            continue
        # Letters that others wrote are blanked, so that no marker has one; roles are the template's own words.
        text, at = "", 0
        for end, leaf in chat.runs:
            own = leaf == NOBODY or chat.leaves.field(leaf) == "role"
            text += chat.text[at:end] if own else "\n" * (end - at)
            at = end
        found |= dict.fromkeys(re.findall(TAG, text))
    return list(found)


if __name__ == "__main__":
    main()
