/** What brings a file from one version to the next; the first makes it. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE conversations (
    tenant TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX conversations_by_use ON conversations (tenant, updated_at, id);

  CREATE TABLE turns (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, conversation_id TEXT NOT NULL, question TEXT NOT NULL,
    status TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT, stop_reason TEXT, superseded_by TEXT,
    answer TEXT, result TEXT, dataset_id TEXT, dataset_hash TEXT, dataset_bytes INTEGER, idempotency_key TEXT, request_hash TEXT,
    UNIQUE (tenant, id), UNIQUE (tenant, idempotency_key)
  ) STRICT;
  CREATE INDEX turns_of_conversation ON turns (tenant, conversation_id, position);
  CREATE INDEX turns_by_dataset ON turns (tenant, dataset_id);

  CREATE TABLE events (
    tenant TEXT NOT NULL, turn_id TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, event TEXT NOT NULL,
    PRIMARY KEY (tenant, turn_id, seq)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE evidence (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, alias TEXT NOT NULL, turn_id TEXT,
    record TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL,
    UNIQUE (tenant, conversation_id, alias)
  ) STRICT;
  CREATE INDEX evidence_by_hash ON evidence (tenant, sha256);

  CREATE TABLE uploads (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, conversation_id TEXT NOT NULL, alias TEXT NOT NULL, at TEXT NOT NULL,
    record TEXT NOT NULL, sha256 TEXT NOT NULL, bytes INTEGER NOT NULL,
    UNIQUE (tenant, conversation_id, alias)
  ) STRICT;
  CREATE INDEX uploads_by_hash ON uploads (tenant, sha256);

  CREATE TABLE artifacts (
    tenant TEXT NOT NULL, turn_id TEXT NOT NULL, content_hash TEXT NOT NULL, type TEXT NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, turn_id, content_hash, type)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX artifacts_by_hash ON artifacts (tenant, content_hash);

  CREATE TABLE cell_runs (
    position INTEGER PRIMARY KEY, tenant TEXT NOT NULL, turn_id TEXT NOT NULL, run TEXT NOT NULL
  ) STRICT;
  CREATE INDEX cell_runs_of_turn ON cell_runs (tenant, turn_id, position);

  CREATE TABLE sessions (
    sha256 TEXT PRIMARY KEY, tenant TEXT NOT NULL, is_operator INTEGER NOT NULL, expires_at TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE published (
    tenant TEXT NOT NULL, content_hash TEXT NOT NULL, type TEXT NOT NULL, bytes INTEGER NOT NULL, published_at TEXT NOT NULL,
    PRIMARY KEY (tenant, content_hash, type)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX published_by_age ON published (tenant, published_at);
  `,
  `
  CREATE TABLE dataset_bodies (
    tenant TEXT NOT NULL, turn_id TEXT NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (tenant, turn_id, sha256)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX dataset_bodies_by_hash ON dataset_bodies (tenant, sha256);
  `,
];

/** The newest form of the file that this version knows. */
export const historyVersion: number = migrations.length;
