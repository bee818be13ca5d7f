-- The schema's history: numbered steps, each applied once; released ones stay as they are.

-- m001_projects
--   Settings, people, projects and who may do what in them.
        CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE people (name TEXT PRIMARY KEY, added_at REAL NOT NULL);
        CREATE TABLE projects (
            id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at REAL NOT NULL,
            payload TEXT NOT NULL
        );
        CREATE TABLE members (
            project_id TEXT NOT NULL REFERENCES projects(id),
            person TEXT NOT NULL REFERENCES people(name),
            role TEXT NOT NULL CHECK (role IN ('annotator', 'lead', 'admin')),
            added_at REAL NOT NULL,
            PRIMARY KEY (project_id, person)
        );

-- m002_sources
--   Files in libraries, what was read in them, and the index over it (one per content).
        CREATE TABLE library (
            project_id TEXT NOT NULL REFERENCES projects(id),
            source_id TEXT NOT NULL,
            name TEXT NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL,
            status TEXT NOT NULL, problem TEXT NOT NULL DEFAULT '',
            added_by TEXT NOT NULL, added_at REAL NOT NULL, removed_at REAL,
            PRIMARY KEY (project_id, source_id)
        );
        CREATE INDEX library_name ON library (project_id, name);
        CREATE TABLE readings (
            source_id TEXT PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL,
            pages TEXT NOT NULL, boxes TEXT NOT NULL, language TEXT NOT NULL,
            notes TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
            reader TEXT NOT NULL, seconds REAL NOT NULL, read_at REAL NOT NULL
        );
        CREATE TABLE passages (
            id INTEGER PRIMARY KEY, source_id TEXT NOT NULL REFERENCES readings(source_id),
            number INTEGER NOT NULL, page INTEGER, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
            text TEXT NOT NULL
        );
        CREATE UNIQUE INDEX passages_place ON passages (source_id, number);
        CREATE VIRTUAL TABLE passage_terms USING fts5 (terms, source UNINDEXED);
        CREATE TABLE embeddings (
            source_id TEXT NOT NULL REFERENCES readings(source_id),
            encoder TEXT NOT NULL, rows INTEGER NOT NULL, width INTEGER NOT NULL,
            data BLOB NOT NULL, muted BLOB NOT NULL,
            PRIMARY KEY (source_id, encoder)
        );

-- m003_runs
--   Cases, the runs over them, and each run's events.
        CREATE TABLE cases (
            id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects(id),
            response TEXT NOT NULL, question TEXT NOT NULL, fingerprint TEXT NOT NULL,
            author TEXT NOT NULL, created_at REAL NOT NULL, payload TEXT NOT NULL
        );
        CREATE INDEX cases_fingerprint ON cases (project_id, fingerprint);
        CREATE VIRTUAL TABLE case_terms USING fts5 (terms, case_id UNINDEXED);
        CREATE TABLE runs (
            id TEXT PRIMARY KEY, case_id TEXT NOT NULL REFERENCES cases(id),
            project_id TEXT NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL,
            started_at REAL NOT NULL, finished_at REAL,
            label TEXT, cause TEXT, p_hallucinated REAL, confidence REAL,
            origin TEXT NOT NULL, parent_id TEXT,
            owner TEXT, heartbeat_at REAL, stop_requested_by TEXT
        );
        CREATE INDEX runs_started ON runs (project_id, started_at DESC);
        CREATE INDEX runs_case ON runs (case_id, started_at);
        CREATE INDEX runs_alive ON runs (status) WHERE status IN ('queued', 'running');
        CREATE TABLE events (
            run_id TEXT NOT NULL REFERENCES runs(id), seq INTEGER NOT NULL,
            kind TEXT NOT NULL, at REAL NOT NULL, payload TEXT NOT NULL,
            PRIMARY KEY (run_id, seq)
        ) WITHOUT ROWID;

-- m004_people_correct
--   Corrections, batches of claims, and what was learned from them.
        CREATE TABLE corrections (
            id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(id),
            case_id TEXT NOT NULL REFERENCES cases(id), author TEXT NOT NULL, at REAL NOT NULL,
            label TEXT NOT NULL, payload TEXT NOT NULL
        );
        CREATE INDEX corrections_run ON corrections (run_id, at);
        CREATE INDEX corrections_case ON corrections (case_id, at);
        CREATE TABLE batches (
            id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects(id),
            name TEXT NOT NULL, author TEXT NOT NULL, created_at REAL NOT NULL, plan TEXT NOT NULL
        );
        CREATE TABLE batch_rows (
            batch_id TEXT NOT NULL REFERENCES batches(id), row INTEGER NOT NULL,
            case_id TEXT, run_id TEXT, problem TEXT NOT NULL DEFAULT '',
            claim TEXT NOT NULL, sources TEXT NOT NULL,
            PRIMARY KEY (batch_id, row)
        ) WITHOUT ROWID;
        CREATE TABLE holdout (case_id TEXT PRIMARY KEY, held INTEGER NOT NULL, at REAL NOT NULL);
        CREATE TABLE versions (
            id TEXT PRIMARY KEY, created_at REAL NOT NULL, author TEXT NOT NULL,
            card TEXT NOT NULL
        );
        CREATE TABLE activations (
            number INTEGER PRIMARY KEY AUTOINCREMENT, version_id TEXT NOT NULL,
            at REAL NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL
        );
        CREATE TABLE trainings (
            id TEXT PRIMARY KEY, author TEXT NOT NULL, started_at REAL NOT NULL,
            status TEXT NOT NULL, pid INTEGER, heartbeat_at REAL, finished_at REAL,
            progress TEXT NOT NULL, version_id TEXT, message TEXT NOT NULL DEFAULT ''
        );

-- m005_batch_questions
--   A table's questions are kept for rows without a case too; cases know those of old rows.
        ALTER TABLE batch_rows ADD COLUMN question TEXT NOT NULL DEFAULT '';
        UPDATE batch_rows SET question = (SELECT question FROM cases WHERE id = case_id)
            WHERE case_id IN (SELECT id FROM cases);

-- m006_models
--   Calls to language models and what they cost; rosters and prompts as people wrote them. Money
--   is in billionths of a US dollar, whole numbers, so that sums are exact. `counts_nano` and
--   `counts_tokens` are what a call takes from the caps: its worst case while it is under way.
        CREATE TABLE calls (
            id TEXT PRIMARY KEY, run_id TEXT NOT NULL, slot TEXT NOT NULL, digest TEXT NOT NULL,
            project_id TEXT NOT NULL, person TEXT NOT NULL, role TEXT NOT NULL,
            model TEXT NOT NULL, prompt TEXT NOT NULL, prompt_hash TEXT NOT NULL,
            cut TEXT NOT NULL, at REAL NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('reserved', 'done', 'failed')),
            reserved_nano INTEGER, reserved_tokens INTEGER NOT NULL,
            counts_nano INTEGER NOT NULL, counts_tokens INTEGER NOT NULL,
            tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, is_counted INTEGER NOT NULL,
            cost_nano INTEGER, seconds REAL NOT NULL,
            reply TEXT NOT NULL, finish TEXT NOT NULL, problem TEXT NOT NULL,
            reused_from TEXT NOT NULL
        );
        CREATE INDEX calls_run ON calls (run_id, slot, digest);
        CREATE INDEX calls_digest ON calls (digest) WHERE status = 'done';
        CREATE INDEX calls_day ON calls (at, person, counts_nano, counts_tokens, status);
        CREATE TABLE rosters (
            number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, at REAL NOT NULL,
            author TEXT NOT NULL, sheet TEXT
        );
        CREATE INDEX rosters_name ON rosters (name, number);
        CREATE TABLE prompt_edits (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            project_id TEXT NOT NULL REFERENCES projects(id),
            name TEXT NOT NULL, language TEXT NOT NULL, text TEXT NOT NULL,
            at REAL NOT NULL, author TEXT NOT NULL
        );
        CREATE INDEX prompt_edits_prompt ON prompt_edits (project_id, name, language, number);

-- m007_batch_columns
--   A table's further columns are kept, so that its results can be told apart by them.
ALTER TABLE batch_rows ADD COLUMN others TEXT NOT NULL DEFAULT '[]';

-- m008_review_queue
--   Cases that people review, who has which of them in hand, and what came of it. `lot` is drawn
--   once for each item; `teaches` says how much its answer would teach. `given` counts the people
--   who have submitted: the queue asks for it on every page.
        CREATE TABLE items (
            case_id TEXT PRIMARY KEY REFERENCES cases(id), project_id TEXT NOT NULL,
            run_id TEXT, added_at REAL NOT NULL, label TEXT NOT NULL, p REAL,
            disagreement REAL NOT NULL, language TEXT NOT NULL, teaches REAL NOT NULL,
            lot REAL NOT NULL, given INTEGER NOT NULL DEFAULT 0,
            state TEXT NOT NULL CHECK (state IN ('open', 'flagged', 'adjudicated'))
        );
        CREATE INDEX items_teaching ON items (project_id, state, teaches DESC);
        CREATE INDEX items_lots ON items (project_id, state, lot);
        CREATE TABLE assignments (
            case_id TEXT NOT NULL REFERENCES items(case_id), person TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('claimed', 'submitted', 'skipped', 'flagged')),
            why TEXT NOT NULL, claimed_at REAL NOT NULL, until REAL NOT NULL, ended_at REAL,
            PRIMARY KEY (case_id, person)
        ) WITHOUT ROWID;
        CREATE INDEX assignments_person ON assignments (person, state);

-- m009_golds
--   Right answers and outside suggestions of cases; corrections of cases that no run checked.
--   `standing` are the corrections that nobody took back, in the order in which they were
--   appended. `differ` says how people's answers differ: 0 not, 1 in marked words, 2 in labels.
--   `stances` are what each agent of the run said, as JSON; empty where it was not looked up yet.
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

-- m010_long_queues
--   A queue of tens of thousands stays quick; nothing but indexes. Counts and pages of the queue,
--   claims in hand, children of a run, judgements to learn from, and what tells whether any run
--   has ended since something was kept.
        DROP INDEX items_teaching;
        CREATE INDEX items_teaching ON items (project_id, state, teaches DESC, added_at);
        CREATE INDEX items_counts ON items (project_id, state, given, differ);
        CREATE INDEX assignments_held ON assignments (until) WHERE state = 'claimed';
        CREATE INDEX runs_ended ON runs (finished_at) WHERE finished_at IS NOT NULL;
        CREATE INDEX runs_parent ON runs (parent_id) WHERE parent_id IS NOT NULL;
        CREATE INDEX events_judged ON events (run_id, seq) WHERE kind = 'judgement_reached';

-- m011_learned
--   What is learned from answers beside the classifier; a training's options; calibration.
--   `learned` holds small learned things of every kind, `learned_choices` which is in use (0:
--   none). A held-out case is never learned from; one that `calibrates` only sets probabilities.
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

-- m012_web_searches
--   Searches of the web: what was asked of whom, when, and what came of it. A search that was sent
--   counts for its run's cap; without `results` it is under way or has failed.
        CREATE TABLE web_searches (
            number INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, service TEXT NOT NULL,
            language TEXT NOT NULL, query TEXT NOT NULL, at REAL NOT NULL, results TEXT
        );
        CREATE INDEX web_searches_query ON web_searches (service, language, query, at);
        CREATE INDEX web_searches_run ON web_searches (run_id);

-- m013_blocks
--   What each stretch of a reading is: a heading, a paragraph, a row of a table.
ALTER TABLE readings ADD COLUMN blocks TEXT NOT NULL DEFAULT '[]';

-- m014_run_names
--   What people call a run; empty: by the first words of its claim.
ALTER TABLE runs ADD COLUMN name TEXT NOT NULL DEFAULT '';

-- m015_disputed
--   An item tells answers without a majority (3) from labels that merely differ (2).
UPDATE items SET differ = 3 WHERE differ = 2 AND (
    SELECT 2 * max(n) <= sum(n) FROM (
        SELECT count(*) AS n FROM standing k WHERE k.case_id = items.case_id AND NOT EXISTS (
            SELECT 1 FROM standing m WHERE m.case_id = k.case_id AND m.author = k.author
            AND (m.at, m.place) > (k.at, k.place))
        GROUP BY k.label));

-- There are no m016 and m017: those numbers were never used.
-- m018_guidelines
--   What a project's leads tell its annotators, every version. Who assigned an item to a person, as
--   a claim whose time has not begun; empty: it came from the queue.
        CREATE TABLE guidelines (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            project_id TEXT NOT NULL REFERENCES projects(id),
            text TEXT NOT NULL, at REAL NOT NULL, author TEXT NOT NULL
        );
        CREATE INDEX guidelines_project ON guidelines (project_id, number);
        ALTER TABLE assignments ADD COLUMN assigned_by TEXT NOT NULL DEFAULT '';
        CREATE INDEX assignments_assigned ON assignments (person)
            WHERE state = 'claimed' AND assigned_by != '';

-- m019_benchmarks
--   Measurements on labelled rows: what was asked (spec), under which conditions (card), the rows,
--   and one result for each cell and row. A wish (pause, cancel) is for the process that runs it.
        CREATE TABLE benchmarks (
            id TEXT PRIMARY KEY, project_id TEXT NOT NULL REFERENCES projects(id),
            name TEXT NOT NULL, author TEXT NOT NULL, created_at REAL NOT NULL,
            repeats TEXT NOT NULL DEFAULT '', spec TEXT NOT NULL, card TEXT NOT NULL DEFAULT '{}',
            status TEXT NOT NULL DEFAULT 'queued', wish TEXT NOT NULL DEFAULT '',
            message TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '',
            heartbeat_at REAL, started_at REAL, finished_at REAL
        );
        CREATE INDEX benchmarks_project ON benchmarks (project_id, created_at);
        CREATE TABLE benchmark_rows (
            benchmark_id TEXT NOT NULL REFERENCES benchmarks(id), position INTEGER NOT NULL,
            digest TEXT NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (benchmark_id, position)
        );
        CREATE TABLE benchmark_results (
            benchmark_id TEXT NOT NULL REFERENCES benchmarks(id), cell INTEGER NOT NULL,
            position INTEGER NOT NULL, at REAL NOT NULL, is_failed INTEGER NOT NULL,
            calls INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL, seconds REAL NOT NULL,
            payload TEXT NOT NULL, PRIMARY KEY (benchmark_id, cell, position)
        );
        CREATE INDEX benchmark_results_at ON benchmark_results (benchmark_id, at);

-- m020_answers_counted
--   `given` counts all people whose answer stands, imported ones too, unless they are to answer
--   anew. An index of the cases that were given back.
        UPDATE items SET given = (SELECT count(*) FROM (
            SELECT a.person FROM assignments a WHERE a.case_id = items.case_id
            AND a.state = 'submitted'
            UNION SELECT s.author FROM standing s WHERE s.case_id = items.case_id AND NOT EXISTS (
                SELECT 1 FROM assignments b WHERE b.case_id = s.case_id AND b.person = s.author
                AND b.state = 'claimed')));
        CREATE INDEX handlings_reopened ON handlings (case_id, at) WHERE did = 'reopened';
