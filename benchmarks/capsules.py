"""Section `capsules`: what it costs to seal and to open what a client carries of a provider's thought.

Once for each thought of a reply, and once for each that comes back; never for a frame. The reference is writing the
same proof as JSON, which is what would be sent without a seal.
"""

from __future__ import annotations

from functools import partial

import msgspec

from asides._gateway.capsules import PREFIX, CapsuleContent, CapsuleOwner, Capsules
from asides.reply._items import PlacedProof
from benchmarks import measure, samples

SIZES = (0, 2_000, 20_000, 150_000)
"""Characters of the thought; the signature comes on top of it."""
OWNER = CapsuleOwner("anthropic https://api.anthropic.com claude", "0" * 32, b'["",[]]')


def run() -> None:
    """Print the table."""
    capsules = Capsules((b"k" * 48,), 256 * 1024)
    rows = []
    for size in SIZES:
        block = {"type": "thinking", "thinking": samples.of_length(samples.PROSE, size), "signature": "s" * 600}
        content = CapsuleContent(PlacedProof(0, 0, "anthropic", block), "0" * 32)
        sealed = capsules.seal(content, OWNER)
        assert sealed.startswith(PREFIX)
        found = measure.best_of_each(
            {
                "plain": partial(msgspec.json.encode, content),
                "seal": partial(capsules.seal, content, OWNER),
                "open": partial(capsules.open, sealed, OWNER),
            },
            number=100,
        )
        rows.append(
            [f"{size:,}", f"{len(sealed):,}", *(measure.duration(found[name]) for name in ("plain", "seal", "open"))]
        )
    measure.print_table(
        "Capsules", ["characters of the thought", "of the capsule", "as JSON", "sealed", "opened"], rows
    )
