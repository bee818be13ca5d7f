"""Tables of later migrations, as they create them; released ones are never edited."""

# What each column says is told by the migrations themselves.
GOLDS = """
    CREATE TABLE kept_corrections (
        id TEXT PRIMARY KEY, run_id TEXT REFERENCES runs(id),
        case_id TEXT NOT NULL REFERENCES cases(id), author TEXT NOT NULL, at REAL NOT NULL,
        label TEXT NOT NULL, payload TEXT NOT NULL, withdraws TEXT NOT NULL DEFAULT ''
    );
    INSERT INTO kept_corrections (id, run_id, case_id, author, at, label, payload)
        SELECT id, run_id, case_id, author, at, label, payload FROM corrections ORDER BY rowid;
    DROP TABLE corrections;
    ALTER TABLE kept_corrections RENAME TO corrections;
    CREATE INDEX corrections_run ON corrections (run_id, at);
    CREATE INDEX corrections_case ON corrections (case_id, author, at);
    CREATE INDEX corrections_withdrawn ON corrections (withdraws) WHERE withdraws != '';
    CREATE VIEW standing AS SELECT k.rowid AS place, k.* FROM corrections k
        WHERE k.withdraws = '' AND NOT EXISTS (SELECT 1 FROM corrections w
        WHERE w.withdraws = k.id AND w.withdraws != '');
    CREATE TABLE golds (
        id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES cases(id),
        author TEXT NOT NULL, at REAL NOT NULL, label TEXT NOT NULL, payload TEXT NOT NULL
    );
    CREATE INDEX golds_case ON golds (case_id);
    CREATE TABLE suggestions (
        id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES cases(id),
        agent TEXT NOT NULL, at REAL NOT NULL, payload TEXT NOT NULL
    );
    CREATE INDEX suggestions_case ON suggestions (case_id);
    CREATE TABLE handlings (
        case_id TEXT NOT NULL REFERENCES cases(id), person TEXT NOT NULL, at REAL NOT NULL,
        did TEXT NOT NULL, words TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX handlings_case ON handlings (case_id, at);
    ALTER TABLE items ADD COLUMN differ INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE items ADD COLUMN stances TEXT NOT NULL DEFAULT '';
"""
# `learned` holds small learned things of every kind, `learned_choices` which is in use (0: none).
# A held-out case is never learned from; one that `calibrates` only sets probabilities.
LEARNED = """
    CREATE TABLE learned (
        number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, project_id TEXT NOT NULL,
        at REAL NOT NULL, author TEXT NOT NULL, body TEXT NOT NULL, sha256 TEXT NOT NULL
    );
    CREATE INDEX learned_kind ON learned (kind, project_id, number);
    CREATE TABLE learned_choices (
        number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, project_id TEXT NOT NULL,
        learned INTEGER NOT NULL, at REAL NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL
    );
    CREATE INDEX learned_choices_kind ON learned_choices (kind, project_id, number);
    ALTER TABLE trainings ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
    ALTER TABLE holdout ADD COLUMN calibrates INTEGER NOT NULL DEFAULT 0;
"""
# A search that was sent counts for its run's cap; without `results` it is under way or has failed.
WEB_SEARCHES = """
    CREATE TABLE web_searches (
        number INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, service TEXT NOT NULL,
        language TEXT NOT NULL, query TEXT NOT NULL, at REAL NOT NULL, results TEXT
    );
    CREATE INDEX web_searches_query ON web_searches (service, language, query, at);
    CREATE INDEX web_searches_run ON web_searches (run_id);
"""
