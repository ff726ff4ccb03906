"""docs/how-to/analysis.md and docs/reference/figures.md: the example runs, lists and numbers are the code's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from asides.analysis import _figures as figures
from asides.analysis import _repetition as repetition
from asides.analysis._chart_figures import CHARTED
from asides.analysis._figures import PARTS
from asides.analysis._summary import COUNTED, HAVING, MOST_GROUPS
from asides.analysis._traces import OUTPUT_FIELDS, REASONING_FIELDS, SECONDS_FIELDS
from asides.analysis._turns import APART
from tests.cli.running import COMMAND, environment
from tests.waiting import PATIENCE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("how-to/analysis.md", "reference/figures.md"))
FLAT = " ".join(PAGE.split())


def test_the_example_is_what_the_command_prints(tmp_path: Path) -> None:
    """The traces on the page give the table on the page."""
    traces, shown = re.findall(
        r"```json\n(.*?)```.*?```\n\$ asides stats traces.jsonl --by model\n(.*?)```", PAGE, re.S
    )[0]
    (tmp_path / "traces.jsonl").write_text(traces, encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "stats", "traces.jsonl", "--by", "model"],
        cwd=tmp_path,
        env=environment(COLUMNS="80", LC_ALL="C.UTF-8"),
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.stdout.decode() == shown


def test_every_field_that_is_looked_for_is_named() -> None:
    """In the order in which they are looked for."""
    for fields in (OUTPUT_FIELDS, REASONING_FIELDS, tuple(SECONDS_FIELDS)):
        *others, last = [f"`{field}`" for field in fields]
        assert any(f"{', '.join(others)}{joined}{last}" in FLAT for joined in (", ", " or "))


def test_every_figure_and_every_part_is_explained() -> None:
    """What JSON holds has its row."""
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    for name in (*COUNTED, *HAVING, *PARTS):
        plain = name.replace("thinking_", "").replace("text_", "").replace("call_", "")
        assert plain in rows or plain == "thinking", name


def test_the_numbers_are_those_of_the_code() -> None:
    """A constant that changes must change here too."""
    for said in (
        f"words / ({figures.ENOUGH_WORDS} × thoughts)",
        f"{figures.STEP_WORDS} × steps / words",
        f"{figures.CHECK_WORDS} × (questions + turns) / max(words, {figures.CHECK_WORDS})",
        f"1 up to {figures.STEADY_TURNS:.0f} turns in 100 words, falling evenly to 0 at {figures.RESTLESS_TURNS:.0f}",
        f"runs of {repetition.SIZE} words",
        f"at least {repetition.LOOP_TIMES} times in a row and covers at least {repetition.LOOP_WORDS} words; "
        f"{repetition.PLAIN_LOOP_WORDS} if it has no letter",
        f"at most {APART} characters between them",
        f"the first {MOST_GROUPS}",
        f"the {CHARTED} groups of the most replies",
    ):
        assert said in FLAT, said
