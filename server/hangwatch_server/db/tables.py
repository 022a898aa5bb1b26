"""The tables as SQLAlchemy Core sees them. The schema itself is made by `migrations/` alone.

Statements on rows live beside the question they answer; a test holds these tables and the
migrations to the same shape.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Sequence,
    Table,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from hangwatch_server.db.codec import PlainText

metadata = MetaData()

# Shared by all jobs, so that an index is never used twice, by whichever replica.
verdict_index = Sequence("verdict_index", metadata=metadata, start=1)
lease_token = Sequence("lease_token", metadata=metadata, start=1)

_TIME = DateTime(timezone=True)

jobs = Table(
    "jobs",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("launch", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("world_size", Integer, nullable=False),
    Column("reporting", Integer, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("verdict", JSONB, nullable=False),
    Column("verdict_index", BigInteger, nullable=False),
    Column("nodes", ARRAY(PlainText), nullable=False),
    Column("depth", PlainText, nullable=False),
    Column("script", PlainText, nullable=False),
    Column("step", BigInteger),
    Column("first_seen", _TIME, nullable=False),
    Column("last_seen", _TIME, nullable=False),
    Index("jobs_newest", text("first_seen DESC"), text("id DESC")),
    Index("jobs_by_name", "name", text("first_seen DESC")),
    Index("jobs_live", "last_seen", postgresql_where=text("state NOT IN ('finished', 'failed')")),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job", PlainText, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    # rank -> [node, pid, start ticks]: how a restarted server tells old processes from new ones
    Column("processes", JSONB, nullable=False),
    Column("first_seen", _TIME, nullable=False, server_default=func.now()),
)

job_timelines = Table(
    "job_timelines",
    metadata,
    Column("job", PlainText, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("at", _TIME, nullable=False),  # from which the ages of the points are counted back
    Column("points", JSONB, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("index", BigInteger, primary_key=True, autoincrement=False),
    Column("job", PlainText, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("at", _TIME, nullable=False, server_default=func.now()),
    Column("old_state", PlainText, nullable=False),
    Column("new_state", PlainText, nullable=False),
    Column("verdict", JSONB, nullable=False),
    Index("verdicts_of_job", "job", text("index DESC")),
)

leases = Table(
    "leases",
    metadata,
    Column("job", PlainText, primary_key=True),  # no foreign key: claimed before the job is saved
    Column("holder", PlainText, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_at", _TIME, nullable=False),
)

incidents = Table(
    "incidents",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("job", PlainText, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("job_name", PlainText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("kind", PlainText, nullable=False),
    Column("summary", PlainText, nullable=False),
    Column("culprit_ranks", PlainText, nullable=False),
    Column("culprit_nodes", ARRAY(PlainText), nullable=False),
    Column("opened_at", _TIME, nullable=False),
    Column("confirmed_at", _TIME),
    Column("ended_at", _TIME),
    Column("end_reason", PlainText, nullable=False, server_default=""),
    Column("acknowledged_by", PlainText, nullable=False, server_default=""),
    Column("acknowledged_at", _TIME),
    Column("snoozed_until", _TIME),
    Column("is_snoozed_to_end", Boolean, nullable=False, server_default=text("false")),
    Column("verdict", JSONB, nullable=False),
    Column("told_at", _TIME),  # over, and nothing more is to be told of it
    Index(
        "incidents_to_tell",
        "confirmed_at",
        "id",
        postgresql_where=text("confirmed_at IS NOT NULL AND told_at IS NULL"),
    ),
    Index(
        "incidents_one_active",
        "job",
        "attempt",
        unique=True,
        postgresql_where=text("state IN ('open', 'confirmed')"),
    ),
    Index("incidents_newest", text("opened_at DESC"), text("id DESC")),
    Index("incidents_of_job", "job", "attempt", text("opened_at DESC")),
    Index("incidents_by_node", "culprit_nodes", postgresql_using="gin"),
)

incident_events = Table(
    "incident_events",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("incident", PlainText, ForeignKey("incidents.id", ondelete="CASCADE"), nullable=False),
    Column("at", _TIME, nullable=False),
    Column("old", PlainText, nullable=False),
    Column("new", PlainText, nullable=False),
    Column("why", PlainText, nullable=False),
    Column("by", PlainText, nullable=False),
    Index("incident_events_of_incident", "incident", "id"),
)

incident_comments = Table(
    "incident_comments",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("incident", PlainText, ForeignKey("incidents.id", ondelete="CASCADE"), nullable=False),
    Column("at", _TIME, nullable=False),
    Column("by", PlainText, nullable=False),
    Column("text", PlainText, nullable=False),
    Index("incident_comments_of_incident", "incident", "id"),
)

incident_moments = Table(
    "incident_moments",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("incident", PlainText, ForeignKey("incidents.id", ondelete="CASCADE"), nullable=False),
    Column("at", _TIME, nullable=False),
    Column("moment", JSONB, nullable=False),
    Index("incident_moments_of_incident", "incident", "id"),
)

captures = Table(
    "captures",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("job", PlainText, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("incident", PlainText, ForeignKey("incidents.id", ondelete="SET NULL")),
    Column("state", PlainText, nullable=False),
    Column("requested_at", _TIME, nullable=False),
    Column("requested_by", PlainText, nullable=False),
    Column("ranks", PlainText, nullable=False),
    Column("kinds", ARRAY(PlainText), nullable=False),
    Column("native", Boolean, nullable=False),
    Index("captures_of_job", "job", text("requested_at DESC"), text("id DESC")),
    Index("captures_of_incident", "incident", "requested_at"),
)

capture_parts = Table(
    "capture_parts",
    metadata,
    Column("capture", PlainText, primary_key=True),
    Column("rank", Integer, primary_key=True),
    Column("node", PlainText, nullable=False),
    Column("pid", BigInteger),
    Column("has_stacks", Boolean, nullable=False),
    Column("has_entries", Boolean, nullable=False),
    Column("reason", PlainText, nullable=False),
    Column("remedy", PlainText, nullable=False),
    Column("stored_at", _TIME, nullable=False),
    Column("part", JSONB, nullable=False),
    Column("outline", LargeBinary),  # of its stacks; null in rows of servers before 0004
    ForeignKeyConstraint(
        ["capture"], ["captures.id"], name="capture_parts_capture_fkey", ondelete="CASCADE"
    ),
)

nodes = Table(
    "nodes",
    metadata,
    Column("name", PlainText, primary_key=True),
    Column("version", PlainText, nullable=False),
    Column("ranks", Integer, nullable=False),
    Column("jobs", ARRAY(PlainText), nullable=False),
    Column("stacks", PlainText, nullable=False),
    Column("stacks_remedy", PlainText, nullable=False),
    Column("depth", PlainText, nullable=False),
    Column("dropped", BigInteger, nullable=False),
    Column("last_seen", _TIME, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("name", PlainText, nullable=False),
    Column("prefix", PlainText, nullable=False),
    Column("secret_hash", PlainText, nullable=False, unique=True),
    Column("scopes", ARRAY(PlainText), nullable=False),
    Column("node", PlainText),
    Column("created_at", _TIME, nullable=False),
    Column("last_used_at", _TIME),
    Column("expires_at", _TIME),
    Column("revoked_at", _TIME),
    Column("jobs", PlainText, nullable=False, server_default=""),  # pattern of names, "" for all
    Column("nodes", PlainText, nullable=False, server_default=""),  # that it may enrol: a pattern
    Column("uses_left", Integer),  # of an enrolment token; null for any number
    Column("may_replace", Boolean, nullable=False, server_default=text("false")),
    Column("enrolled_by", PlainText, ForeignKey("tokens.id", ondelete="SET NULL")),
    Index("tokens_of_node", "node", postgresql_where=text("revoked_at IS NULL")),
)

sessions = Table(
    "sessions",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("secret_hash", PlainText, nullable=False, unique=True),
    Column("kind", PlainText, nullable=False),
    Column("who", PlainText, nullable=False),
    Column("scopes", ARRAY(PlainText), nullable=False),
    Column("token", PlainText, ForeignKey("tokens.id", ondelete="CASCADE")),
    Column("address", PlainText, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("last_used_at", _TIME, nullable=False),
    Column("expires_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    Index("sessions_newest", text("created_at DESC"), text("id DESC")),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("at", _TIME, nullable=False),
    Column("who", PlainText, nullable=False),
    Column("action", PlainText, nullable=False),
    Column("subject", PlainText, nullable=False),
    Column("detail", PlainText, nullable=False),
    Index("audit_newest", text("at DESC")),
)

channels = Table(
    "channels",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("name", PlainText, nullable=False, unique=True),
    Column("kind", PlainText, nullable=False),
    Column("target", PlainText, nullable=False),
    Column("options", JSONB, nullable=False),
    Column("secrets", JSONB, nullable=False),
    Column("topics", ARRAY(PlainText), nullable=False),
    Column("matchers", JSONB, nullable=False),
    Column("after_s", Double, nullable=False),
    Column("remind_s", Double, nullable=False),
    Column("is_enabled", Boolean, nullable=False),
    Column("disabled_reason", PlainText, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("created_by", PlainText, nullable=False),
)

# The outbox: a message is a row here before it is sent, and one row for ever.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", PlainText, primary_key=True),
    # Order within a channel: a message never overtakes an earlier one about the same.
    Column("sequence", BigInteger, Identity(always=True), nullable=False),
    Column("channel", PlainText, ForeignKey("channels.id", ondelete="CASCADE"), nullable=False),
    Column("incident", PlainText, ForeignKey("incidents.id", ondelete="CASCADE")),
    Column("about", PlainText, nullable=False),
    Column("topic", PlainText, nullable=False),
    Column("number", Integer, nullable=False),  # of a reminder: 1, 2, …; 0 for all else
    Column("state", PlainText, nullable=False),
    Column("reason", PlainText, nullable=False, server_default=""),
    Column("message", JSONB, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("next_at", _TIME),
    Column("sent_at", _TIME),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("claimed_until", _TIME),
    Column("claim", PlainText, nullable=False, server_default=""),
    Column("thread", PlainText, nullable=False, server_default=""),
    UniqueConstraint("about", "channel", "topic", "number"),
    Index("deliveries_due", "channel", "next_at", postgresql_where=text("state = 'pending'")),
    # Whether an earlier one about the same waits: asked for each that is due.
    Index(
        "deliveries_in_order",
        "channel",
        "about",
        "sequence",
        postgresql_where=text("state = 'pending'"),
    ),
    Index("deliveries_newest", text("created_at DESC"), text("id DESC")),
    Index("deliveries_of_channel", "channel", text("sequence DESC")),
    Index("deliveries_of_incident", "incident", "created_at"),
)

delivery_attempts = Table(
    "delivery_attempts",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("delivery", PlainText, ForeignKey("deliveries.id", ondelete="CASCADE"), nullable=False),
    Column("at", _TIME, nullable=False),
    Column("status", Integer),
    Column("error", PlainText, nullable=False),
    Column("took_s", Double, nullable=False),
    Index("delivery_attempts_of_delivery", "delivery", "id"),
)

silences = Table(
    "silences",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("matchers", JSONB, nullable=False),
    Column("starts_at", _TIME, nullable=False),
    Column("ends_at", _TIME, nullable=False),
    Column("repeat", PlainText, nullable=False),
    Column("created_at", _TIME, nullable=False),
    Column("created_by", PlainText, nullable=False),
    Column("comment", PlainText, nullable=False),
    Column("cancelled_at", _TIME),
)

# One row for an incident, for ever: its presence is what keeps a command from running twice.
actions = Table(
    "actions",
    metadata,
    Column("incident", PlainText, ForeignKey("incidents.id", ondelete="CASCADE"), primary_key=True),
    Column("job", PlainText, nullable=False),
    Column("state", PlainText, nullable=False),
    Column("command", ARRAY(PlainText), nullable=False),
    Column("why", PlainText, nullable=False),
    Column("begun_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    Column("claim", PlainText, nullable=False),
    Column("claimed_until", _TIME),
    Column("exit_code", Integer),
    Column("output", PlainText, nullable=False, server_default=""),
    Index("actions_newest", text("begun_at DESC")),
)

blind_spells = Table(
    "blind_spells",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("cause", PlainText, nullable=False),
    Column("subject", PlainText, nullable=False),
    Column("job_name", PlainText, nullable=False),
    Column("text", PlainText, nullable=False),
    Column("began_at", _TIME, nullable=False),
    Column("ended_at", _TIME),
    Column("end_reason", PlainText, nullable=False, server_default=""),
    Column("told_at", _TIME),  # over, and nothing more is to be told of it
    Index(
        "blind_spells_one_active",
        "cause",
        "subject",
        unique=True,
        postgresql_where=text("ended_at IS NULL"),
    ),
    Index("blind_spells_to_tell", "began_at", postgresql_where=text("told_at IS NULL")),
)

# What was asked under a key of the caller's, so that the same again does not do it twice.
idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("caller", PlainText, primary_key=True),
    Column("key", PlainText, primary_key=True),
    Column("fingerprint", PlainText, nullable=False),
    Column("claimed_at", _TIME, nullable=False),
    Column("status", Integer),  # null until it is done
    Column("body", LargeBinary),  # null where the answer holds a secret
    Column("location", PlainText),
    Index("idempotency_keys_oldest", "claimed_at"),
)
