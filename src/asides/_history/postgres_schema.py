"""The tables of the PostgreSQL store: named migrations, append-only. What has a name here is never changed again."""

from __future__ import annotations

LOCK = 0x4153494445
"""The advisory lock under which migrations run: ASIDE."""

MIGRATIONS: dict[str, tuple[str, ...]] = {
    "001_replies_and_thoughts": (
        """CREATE TABLE replies (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id text COLLATE "C" NOT NULL UNIQUE,
            time bigint NOT NULL,
            model text NOT NULL,
            source text NOT NULL,
            agent text NOT NULL,
            conversation text NOT NULL,
            format text NOT NULL,
            text text NOT NULL,
            exact bytea,
            body text NOT NULL
        )""",
        "CREATE INDEX replies_by_time ON replies (time, number)",
        "CREATE INDEX replies_by_model ON replies (model, source, time)",
        "CREATE INDEX replies_by_conversation ON replies (conversation, time)",
        """CREATE TABLE thoughts (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            reply bigint NOT NULL REFERENCES replies (number),
            place integer NOT NULL,
            characters integer NOT NULL,
            complete integer NOT NULL,
            seconds double precision,
            text text NOT NULL,
            exact bytea,
            words tsvector NOT NULL
        )""",
        "CREATE INDEX thoughts_of_reply ON thoughts (reply, place) INCLUDE (characters)",
        "CREATE INDEX thoughts_by_words ON thoughts USING gin (words)",
    ),
    "002_client": (
        "ALTER TABLE replies ADD COLUMN client text NOT NULL DEFAULT ''",
        "CREATE INDEX replies_by_client ON replies (client, time)",
    ),
    "003_entries": (
        """CREATE TABLE entries (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            kind text COLLATE "C" NOT NULL,
            client text COLLATE "C" NOT NULL,
            id text COLLATE "C" NOT NULL,
            previous text COLLATE "C" NOT NULL,
            time bigint NOT NULL,
            used bigint NOT NULL,
            size bigint NOT NULL,
            model text NOT NULL,
            source text NOT NULL DEFAULT 'gateway',
            agent text NOT NULL DEFAULT '',
            conversation text NOT NULL,
            data bytea NOT NULL,
            UNIQUE (kind, client, id)
        )""",
        "CREATE INDEX entries_by_use ON entries (kind, used, number, size)",
    ),
}
