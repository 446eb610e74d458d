-- The functions that are others on distributed tables, and those that workers need. May be run
-- again at any time, and is after every migration.
set local citus.multi_shard_modify_mode = 'sequential';

-- Called for each row that is written, on the worker that keeps it: the coordinator does not know
-- how that one commits. It passes for immutable, or Citus would not send it there; it reads the
-- settings of the session. SQLSTATE PLS11: commits there are not as durable as demanded.
create or replace function palisade.demand_durability(resource text, demanded text) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('synchronous_commit') not in ('on', 'remote_apply')
    or demanded = 'sync' and current_setting('synchronous_standby_names') = '' then
    raise exception 'the worker that keeps % does not commit with durability %: synchronous_commit is %, synchronous_standby_names is "%"',
      resource, demanded, current_setting('synchronous_commit'), current_setting('synchronous_standby_names')
      using errcode = 'PLS11';
  end if;
  return true;
end
$$;

-- The settings of a transaction, for every worker that takes part in it. Citus passes on what SET
-- LOCAL says, with the whole text that it stands in, so each is a text of its own. The beat that the
-- statements of plain Postgres demand is known to the coordinator alone.
create or replace function palisade.tell_workers(lock_wait_ms integer, statement_timeout_ms integer, commits text, beat bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform palisade.demand_beat($4), pg_catalog.set_config('client_min_messages', 'warning', true), pg_catalog.set_config('citus.propagate_set_commands', 'local', true),
    pg_catalog.set_config('datestyle', 'ISO', true);
  execute 'set local lock_timeout = ' || $1;
  execute 'set local statement_timeout = ' || $2;
  execute pg_catalog.format('set local synchronous_commit = %L', $3);
end
$$;

-- What the shards of this database keep is on the workers; whether a gateway has confirmed that the
-- database was not restored is known to the coordinator, and asked first. Numbers and times of the
-- transaction are the coordinator's, and times go to the workers as text, in the style of the
-- session. Workers read as they have committed: a stricter level of the caller would read its own
-- tables as they were before the guard waited, and is refused.
create or replace function palisade.guard(resource text, token bigint, seq bigint default null, holder text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set datestyle = 'ISO' as $$
#variable_conflict use_column
declare
  known record;
  number xid8 := pg_current_xact_id();
begin
  if coalesce(octet_length($1), 0) not between 1 and 512 or coalesce($2, 0) not between 1 and 410244480000000 or $3 not between 1 and 999999999999999 then
    perform palisade.refuse_malformed($1, $2, $3);
  end if;
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'on Citus a token is presented in a transaction that is read committed, not %', current_setting('transaction_isolation')
      using errcode = '0A000', hint = 'begin isolation level read committed';
  end if;
  if not exists (select from palisade.confirmed_lineage) then
    raise exception 'no gateway has confirmed since the start of the server that this database has every fence: it may have been restored'
      using errcode = 'PLS10', hint = 'A gateway that reaches the lock confirms it within a second or two; a restored database needs npx @palisade/gateway recover.';
  end if;
  loop
    update palisade.resources as stored set
      token = $2,
      seq = case when $2 > stored.token then coalesce($3, 0) else greatest(stored.seq, $3) end,
      op = 'seal',
      expected = null,
      holder = $4,
      updated_at = now(),
      guarded_by = number
    where stored.resource = $1 and stored.token <= $2 and ($2 > stored.token or $3 is null or $3 > stored.seq);
    if found then
      return $2;
    end if;
    insert into palisade.resources (resource, token, seq, rev, born, op, deleted, holder, updated_at, guarded_by)
      values ($1, $2, coalesce($3, 0), 0, 0, 'seal', true, $4, now(), number) on conflict (resource) do nothing;
    if found then
      return $2;
    end if;
    select stored.token, stored.seq into known from palisade.resources as stored where stored.resource = $1;
    if known.token > $2 then
      raise exception 'token % for % is stale: the fence stands at %', $2, $1, known.token
        using errcode = 'PLS01', detail = known.token::text, hint = 'The lease is lost for good: stop, do not retry.';
    end if;
    if known.token = $2 and $3 <= known.seq then
      raise exception 'sequence % of token % for % is out of order: % came before', $3, $2, $1, known.seq
        using errcode = 'PLS02', detail = known.seq::text;
    end if;
    -- Another transaction made the row between the two statements.
  end loop;
end
$$;

create or replace function palisade.holds_pair(resource text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set datestyle = 'ISO' as $$
declare
  number xid8 := pg_current_xact_id();
  began timestamptz := now();
begin
  perform from palisade.resources as stored where stored.resource = $1 and stored.guarded_by = number and stored.updated_at = began;
  return found;
end
$$;

create or replace function palisade.fence_of(resource text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  known bigint;
begin
  select stored.token into known from palisade.resources as stored where stored.resource = $1;
  return known;
end
$$;

-- Each shard forgets by itself, at most so many rows, in a transaction of its own: a worker that is
-- away keeps the others from nothing.
create or replace function palisade.forget_history(older_than interval, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if older_than < interval '1 minute' then
    raise exception 'an entry of the history is kept for at least one minute' using errcode = '22023';
  end if;
  return (select least($2, coalesce(sum(result::bigint), 0)) from run_command_on_shards('palisade.history', format(
    'with gone as (delete from %%1$s where ctid = any (array(
       select ctid from %%1$s where written_at < %L order by written_at limit %s for update skip locked)) returning 1)
     select count(*) from gone', now() - $1, $2)) where success);
end
$$;

-- What the statements call on the workers.
select create_distributed_function('palisade.demand_durability(text, text)');
