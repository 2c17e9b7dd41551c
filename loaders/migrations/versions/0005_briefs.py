"""The daily brief: who gets one and when, each one's state and text, who is still to be told of it, what models cost.

The trigger is on our own table: a subscription may be edited by plain SQL, and then its next run has to be
computed anew, and what was already made for the old time must not come as well. It runs as its owner, so that
who may edit subscriptions needs no right on briefs.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

DDL = """
CREATE TABLE fw_subscriptions (
    user_id UUID NOT NULL,
    zone TEXT NOT NULL,
    at TIME WITHOUT TIME ZONE DEFAULT '09:00:00' NOT NULL,
    weekday SMALLINT,
    active BOOLEAN DEFAULT true NOT NULL,
    channels TEXT[] DEFAULT '{chat}' NOT NULL,
    when_empty TEXT DEFAULT 'brief' NOT NULL,
    tenant TEXT,
    last_visit_at TIMESTAMP WITH TIME ZONE,
    next_run_at TIMESTAMP WITH TIME ZONE,
    next_date DATE,
    error TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id),
    CONSTRAINT fw_subscriptions_at_known CHECK (at < '24:00:00'),
    CONSTRAINT fw_subscriptions_weekday_known CHECK (weekday between 0 and 6),
    CONSTRAINT fw_subscriptions_channels_known CHECK (channels <@ array['chat', 'mail']),
    CONSTRAINT fw_subscriptions_when_empty_known CHECK (when_empty in ('brief', 'none'))
);
CREATE INDEX fw_subscriptions_next_run_at ON fw_subscriptions (next_run_at) WHERE active and error is null;
COMMENT ON TABLE fw_subscriptions IS 'Who gets a brief, and when. May be edited by plain SQL: a trigger has the next run computed anew.';
CREATE TABLE fw_briefs (
    user_id UUID NOT NULL,
    local_date DATE NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    zone TEXT NOT NULL,
    tenant TEXT,
    due_at TIMESTAMP WITH TIME ZONE,
    told_at TIMESTAMP WITH TIME ZONE,
    asked_at TIMESTAMP WITH TIME ZONE,
    build_at TIMESTAMP WITH TIME ZONE NOT NULL,
    quiet_until TIMESTAMP WITH TIME ZONE DEFAULT '-infinity' NOT NULL,
    sends INTEGER DEFAULT 0 NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    lease TEXT,
    revision INTEGER DEFAULT 0 NOT NULL,
    reason TEXT,
    words TEXT,
    document JSONB,
    lines JSONB,
    stamp TEXT,
    facts BYTEA,
    since TIMESTAMP WITH TIME ZONE,
    generated_at TIMESTAMP WITH TIME ZONE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (user_id, local_date),
    CONSTRAINT fw_briefs_state_known CHECK (state in ('pending', 'generating', 'ready', 'failed', 'skipped', 'missed')),
    CONSTRAINT fw_briefs_kind_known CHECK (kind in ('daily', 'return', 'asked'))
);
CREATE INDEX fw_briefs_claim ON fw_briefs (tenant, quiet_until) WHERE state in ('pending', 'generating');
CREATE INDEX fw_briefs_created_at ON fw_briefs (created_at);
CREATE INDEX fw_briefs_due_at ON fw_briefs (due_at) WHERE state in ('pending', 'generating');
CREATE INDEX fw_briefs_failed ON fw_briefs (user_id) WHERE state = 'failed';
CREATE INDEX fw_briefs_generating ON fw_briefs (quiet_until) WHERE state = 'generating';
CREATE INDEX fw_briefs_sent ON fw_briefs (tenant) WHERE sends > 0;
COMMENT ON TABLE fw_briefs IS 'One row per user and local date: whether there is a brief, and what it says.';
CREATE TABLE fw_announcements (
    user_id UUID NOT NULL,
    local_date DATE NOT NULL,
    channel TEXT NOT NULL,
    not_before TIMESTAMP WITH TIME ZONE NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    sent_at TIMESTAMP WITH TIME ZONE,
    dead_at TIMESTAMP WITH TIME ZONE,
    error TEXT,
    revision INTEGER NOT NULL,
    PRIMARY KEY (user_id, local_date, channel),
    CONSTRAINT fw_announcements_channel_known CHECK (channel in ('stream', 'webhook'))
);
CREATE INDEX fw_announcements_dead ON fw_announcements (dead_at) WHERE dead_at is not null;
CREATE INDEX fw_announcements_waiting ON fw_announcements (not_before) WHERE sent_at is null and dead_at is null;
COMMENT ON TABLE fw_announcements IS 'That a brief is ready is told once on each channel: what is still to be told, and what was.';
CREATE TABLE fw_model_calls (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    user_id UUID NOT NULL,
    local_date DATE NOT NULL,
    at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    prompt TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cost NUMERIC,
    milliseconds INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX fw_model_calls_at ON fw_model_calls (at);
COMMENT ON TABLE fw_model_calls IS 'What was asked of a model for briefs, what it cost, and what became of it.';
"""

# Taken back is what is due later, and of who wants no more briefs also what is late. What somebody asked for by hand
# stays, and nobody is told of it. The next run is null until the tick, or who edits, has computed it; one that is
# overdue stays, so that the tick catches up with it, or records it as missed, by the new rule.
TAKE_BACK = """
CREATE FUNCTION {schema}.fw_take_back() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, {schema}, pg_temp AS $$
declare
  ended boolean := tg_op = 'DELETE' or not new.active;
begin
  delete from fw_announcements a using fw_briefs b
  where b.user_id = old.user_id and (b.due_at > clock_timestamp() or ended)
    and a.user_id = b.user_id and a.local_date = b.local_date and a.sent_at is null;
  update fw_briefs set due_at = null, told_at = null, kind = 'asked',
    state = case when revision > 0 and state <> 'generating' then 'ready' else state end
  where user_id = old.user_id and asked_at is not null
    and (due_at > clock_timestamp() or (ended and told_at is null and due_at is not null and state in ('pending', 'generating')));
  delete from fw_briefs b
  where user_id = old.user_id and asked_at is null
    and not exists (select from fw_announcements a
      where a.user_id = b.user_id and a.local_date = b.local_date and a.sent_at is not null)
    and (due_at > clock_timestamp() or (ended and told_at is null and due_at is not null and state in ('pending', 'generating')));
  if tg_op = 'DELETE' then
    return old;
  end if;
  new.error := null;
  if new.active <> old.active or old.next_run_at is null or old.next_run_at > clock_timestamp() then
    new.next_run_at := null;
    new.next_date := null;
  end if;
  return new;
end $$;
REVOKE EXECUTE ON FUNCTION {schema}.fw_take_back() FROM PUBLIC;
CREATE TRIGGER fw_edited BEFORE UPDATE OF zone, at, weekday, active ON {schema}.fw_subscriptions FOR EACH ROW
  WHEN ((old.zone, old.at, old.weekday, old.active) IS DISTINCT FROM (new.zone, new.at, new.weekday, new.active))
  EXECUTE FUNCTION {schema}.fw_take_back();
CREATE TRIGGER fw_removed BEFORE DELETE ON {schema}.fw_subscriptions FOR EACH ROW
  EXECUTE FUNCTION {schema}.fw_take_back();
"""


def upgrade() -> None:
    bind = op.get_bind()
    schema = bind.execute(sa.text("select quote_ident(current_schema())")).scalar_one()
    op.execute(DDL)
    op.execute(sa.text(TAKE_BACK.format(schema=schema).replace(":", r"\:")))


def downgrade() -> None:
    op.execute("DROP TABLE fw_subscriptions, fw_briefs, fw_announcements, fw_model_calls")
    op.execute("DROP FUNCTION fw_take_back()")
