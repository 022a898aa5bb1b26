"""The first schema: jobs, verdicts, leases, incidents, captures, nodes, tokens, audit."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_STATEMENTS = (
    "CREATE SEQUENCE verdict_index START 1",
    "CREATE SEQUENCE lease_token START 1",
    """
    CREATE TABLE jobs (
        id text PRIMARY KEY,
        launch text NOT NULL,
        name text NOT NULL,
        attempt integer NOT NULL,
        world_size integer NOT NULL,
        reporting integer NOT NULL,
        state text NOT NULL,
        verdict jsonb NOT NULL,
        verdict_index bigint NOT NULL,
        nodes text[] NOT NULL,
        depth text NOT NULL,
        script text NOT NULL,
        step bigint,
        first_seen timestamptz NOT NULL,
        last_seen timestamptz NOT NULL
    )
    """,
    "CREATE INDEX jobs_newest ON jobs (first_seen DESC, id DESC)",
    "CREATE INDEX jobs_by_name ON jobs (name, first_seen DESC)",
    """
    CREATE TABLE attempts (
        job text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        attempt integer NOT NULL,
        processes jsonb NOT NULL,
        first_seen timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (job, attempt)
    )
    """,
    """
    CREATE TABLE verdicts (
        index bigint PRIMARY KEY,
        job text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        attempt integer NOT NULL,
        at timestamptz NOT NULL DEFAULT now(),
        old_state text NOT NULL,
        new_state text NOT NULL,
        verdict jsonb NOT NULL
    )
    """,
    "CREATE INDEX verdicts_of_job ON verdicts (job, index DESC)",
    """
    CREATE TABLE leases (
        job text PRIMARY KEY,
        holder text NOT NULL,
        token bigint NOT NULL,
        expires_at timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE incidents (
        id text PRIMARY KEY,
        job text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        job_name text NOT NULL,
        attempt integer NOT NULL,
        state text NOT NULL
            CHECK (state IN ('open', 'confirmed', 'resolved', 'ended', 'pruned')),
        kind text NOT NULL,
        summary text NOT NULL,
        culprit_ranks text NOT NULL,
        culprit_nodes text[] NOT NULL,
        opened_at timestamptz NOT NULL,
        confirmed_at timestamptz,
        ended_at timestamptz,
        end_reason text NOT NULL DEFAULT '',
        acknowledged_by text NOT NULL DEFAULT '',
        acknowledged_at timestamptz,
        snoozed_until timestamptz,
        verdict jsonb NOT NULL
    )
    """,
    # At most one active incident per attempt of a job, whatever the replicas do.
    """
    CREATE UNIQUE INDEX incidents_one_active ON incidents (job, attempt)
        WHERE state IN ('open', 'confirmed')
    """,
    "CREATE INDEX incidents_newest ON incidents (opened_at DESC, id DESC)",
    "CREATE INDEX incidents_of_job ON incidents (job, attempt, opened_at DESC)",
    "CREATE INDEX incidents_by_node ON incidents USING gin (culprit_nodes)",
    """
    CREATE TABLE incident_events (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        incident text NOT NULL REFERENCES incidents (id) ON DELETE CASCADE,
        at timestamptz NOT NULL,
        old text NOT NULL,
        new text NOT NULL,
        why text NOT NULL,
        by text NOT NULL
    )
    """,
    "CREATE INDEX incident_events_of_incident ON incident_events (incident, id)",
    """
    CREATE TABLE captures (
        id text PRIMARY KEY,
        job text NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
        attempt integer NOT NULL,
        incident text REFERENCES incidents (id) ON DELETE SET NULL,
        state text NOT NULL CHECK (state IN ('taking', 'complete', 'partial')),
        requested_at timestamptz NOT NULL,
        requested_by text NOT NULL,
        ranks text NOT NULL,
        kinds text[] NOT NULL,
        native boolean NOT NULL
    )
    """,
    "CREATE INDEX captures_of_job ON captures (job, requested_at DESC, id DESC)",
    "CREATE INDEX captures_of_incident ON captures (incident, requested_at)",
    """
    CREATE TABLE capture_parts (
        capture text NOT NULL REFERENCES captures (id) ON DELETE CASCADE,
        rank integer NOT NULL,
        node text NOT NULL,
        pid bigint,
        has_stacks boolean NOT NULL,
        has_entries boolean NOT NULL,
        reason text NOT NULL,
        remedy text NOT NULL,
        stored_at timestamptz NOT NULL,
        part jsonb NOT NULL,
        PRIMARY KEY (capture, rank)
    )
    """,
    """
    CREATE TABLE nodes (
        name text PRIMARY KEY,
        version text NOT NULL,
        ranks integer NOT NULL,
        jobs text[] NOT NULL,
        stacks text NOT NULL,
        stacks_remedy text NOT NULL,
        depth text NOT NULL,
        dropped bigint NOT NULL,
        last_seen timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE tokens (
        id text PRIMARY KEY,
        name text NOT NULL,
        prefix text NOT NULL,
        secret_hash text NOT NULL UNIQUE,
        scopes text[] NOT NULL,
        node text,
        created_at timestamptz NOT NULL,
        last_used_at timestamptz,
        expires_at timestamptz,
        revoked_at timestamptz
    )
    """,
    """
    CREATE TABLE audit (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        at timestamptz NOT NULL,
        who text NOT NULL,
        action text NOT NULL,
        subject text NOT NULL,
        detail text NOT NULL
    )
    """,
    "CREATE INDEX audit_newest ON audit (at DESC)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)
