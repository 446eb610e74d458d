-- The tables and functions of the fenced store. SQLSTATEs: PLS01 stale token, PLS05 another operation of the transaction was refused, PLS07 a fence never falls by a
-- plain statement, PLS10 the database was restored, PLS12 a transaction would answer too much.
-- Every function names its search path: an overload in a schema of the user's can fit a call better than the function of Postgres, which takes any type.
create schema if not exists palisade;

-- Integers that JavaScript can hold. Domains, because Postgres reads the text of a CHECK of a table anew for every statement that writes, and that of a domain once for
-- a session.
create domain palisade.token as bigint check (value between 1 and 999999999999999);
create domain palisade.seq as bigint check (value between 0 and 999999999999999);
create domain palisade.rev as bigint check (value >= 0);

-- A row is never deleted: it is the memory of a fence, and a forgotten fence lets stale writes in. Names are judged where they come in; an operation is what
-- Palisade's own statement says.
create table palisade.resources (
  -- The highest token whose write or seal was accepted, and the highest sequence number within it (0: none was given).
  token palisade.token not null,
  seq palisade.seq not null,
  -- Counts accepted writes and is never reset. A seal does not count: the document, and with it the ETag, stays what it was. 0: sealed, never written.
  rev palisade.rev not null,
  -- The revision at which the present document came into being. Equal to rev right after a write that created it.
  born bigint not null,
  -- What the last accepted request demanded (null nothing, 0 no document, -1 any document, n exactly revision n) and did. Besides telling the story of the row, these
  -- two bring the request to where ON CONFLICT can see it, which is only the row proposed for insertion.
  expected bigint,
  updated_at timestamptz not null,
  deleted boolean not null,
  -- "C": prefix lists then use the primary key, and the order does not change with the operating system.
  resource text collate "C" not null,
  op text not null,
  holder text,
  value jsonb,
  -- The transaction that holds the pair of this resource. Written under the lock of the row, which that transaction keeps until it ends, by palisade.guard alone. It
  -- needs no cleaning up: a transaction's number is never given again. A rolled back savepoint takes it back, and a prepared transaction keeps it.
  guarded_by xid8,
  constraint resources_pkey primary key (resource),
  constraint resources_deleted_check check (deleted = (value is null))
  -- No index on anything that a write changes, and room left in each page: updates stay heap-only (HOT) and leave the index alone.
) with (fillfactor = 80);

-- Every accepted write, when history is on; written by the statement that writes the resource.
create table palisade.history (
  rev bigint not null,
  token bigint not null,
  seq bigint not null,
  written_at timestamptz not null,
  resource text collate "C" not null,
  op text not null,
  holder text,
  constraint history_pkey primary key (resource, rev)
);
create index history_written_at on palisade.history (written_at);

-- Fences moved by hand, by whom and why.
create table palisade.fence_changes (
  id bigint generated always as identity,
  changed_at timestamptz not null default now(),
  previous_token bigint,
  token bigint not null,
  resource text collate "C" not null,
  changed_by text not null,
  reason text not null,
  constraint fence_changes_pkey primary key (resource, id)
);

-- Whether this database still has everything that its gateways saw in it. A restored backup is an
-- earlier state of the same database: it has fewer beats than the lock's nodes remember, or its row
-- was written by another transaction than the one that it names.
create table palisade.lineage (
  only_row boolean primary key default true check (only_row),
  -- The same in every copy.
  id uuid not null default gen_random_uuid(),
  -- Rises at most once a second while writes are acknowledged; remembered by the lock's nodes.
  beat bigint not null default 1,
  -- The transaction that last wrote this row, as Palisade's own functions do. Rows that were loaded from a dump were written by another one; 0: it was found to be
  -- restored, and waits for the recovery.
  written_by xid not null default pg_current_xact_id()::xid,
  -- Of the cluster in which the fences were known to be complete.
  system_identifier bigint not null,
  -- After a recovery: a resource without a row accepts only tokens above it.
  fence_floor bigint not null default 0,
  -- Null: no gateway that knows the lock's nodes has ever looked, and own tables ask nothing. A copy by CREATE DATABASE needs no start.
  confirmed_start timestamptz,
  confirmed_database bigint
);
insert into palisade.lineage (system_identifier) select system_identifier from pg_control_system();

-- Every recovery, and every word of an operator that none was needed.
create table palisade.recoveries (
  id bigint generated always as identity primary key,
  recovered_at timestamptz not null default now(),
  beat bigint not null,
  fence_floor bigint not null,
  raised bigint not null,
  recovered_by text not null,
  reason text not null
);

-- Called in the place of a result when some operation of a transaction was refused: undoes the others by failing the statement.
create function palisade.refuse_all() returns text language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'another operation of this transaction was refused' using errcode = 'PLS05';
end
$$;

-- The same, where the documents that it seals are more than one answer may hold.
create function palisade.refuse_answer() returns text language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'the documents that this transaction seals are too large for one answer' using errcode = 'PLS12';
end
$$;

-- The only way to delete anything, and only from the history: the gateway's own role has no DELETE. At most so many at once, so that no call is long.
create function palisade.forget_history(older_than interval, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  forgotten integer;
begin
  if older_than < interval '1 minute' then
    raise exception 'an entry of the history is kept for at least one minute' using errcode = '22023';
  end if;
  delete from palisade.history where ctid = any (array(
    select ctid from palisade.history where written_at < now() - older_than order by written_at limit at_most for update skip locked
  ));
  get diagnostics forgotten = row_count;
  return forgotten;
end
$$;
revoke execute on function palisade.forget_history(interval, integer) from public;

-- Moving a fence by hand, with who and why on record. Nothing else may ever lower a token. raise: up to the token, also for a resource never seen. lower: down to the token,
-- and the sequence starts again. Anything else changes nothing. With the rights of the owner: the gateway's role lowers no fence by itself. The record is written
-- first, because the trigger below looks for it.
create function palisade.move_fence(direction text, resource text, token bigint, changed_by text, reason text)
  returns table (changed boolean, previous bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  changed := false;
  if $1 = 'raise' then
    insert into palisade.resources (resource, token, seq, rev, born, op, deleted, holder, updated_at)
      values ($2, $3, 0, 0, 0, 'seal', true, $4, now()) on conflict on constraint resources_pkey do nothing;
    changed := found;
  end if;
  if not changed then
    select stored.token into previous from palisade.resources as stored where stored.resource = $2 for update;
    changed := coalesce(case $1 when 'raise' then previous < $3 when 'lower' then previous > $3 end, false);
  end if;
  if changed then
    insert into palisade.fence_changes (resource, previous_token, token, changed_by, reason) values ($2, previous, $3, $4, $5);
    update palisade.resources as stored set token = $3, seq = 0, op = 'seal', expected = null, holder = $4, updated_at = now()
      where stored.resource = $2 and previous is not null;
  end if;
  return next;
end
$$;
revoke execute on function palisade.move_fence(text, text, bigint, text, text) from public;

create function palisade.refuse_lower_fence() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.token < old.token and new.rev >= old.rev and exists (
    select from palisade.fence_changes as moved
    where moved.resource = new.resource and moved.token = new.token and moved.previous_token = old.token and moved.changed_at = now()
  ) then
    return null;
  end if;
  raise exception 'the fence of % stands at token %, sequence %, revision %, and none of them falls', old.resource, old.token, old.seq, old.rev
    using errcode = 'PLS07', hint = 'palisade.move_fence lowers a fence, and keeps who did it and why.';
end
$$;

-- After the row and not before it: a trigger before would lock every row a second time, and write that to the log.
create trigger fence_only_rises after update on palisade.resources for each row
when ((new.token, new.seq) < (old.token, old.seq) or new.rev < old.rev)
execute function palisade.refuse_lower_fence();

-- By a gateway that has just heard of the nodes that they remember no beat above this one. Counts one and confirms own tables, or keeps for everybody that this
-- database is not the one that had it.
create function palisade.beat(at_least bigint) returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  counted bigint;
begin
  perform from palisade.lineage for update;
  update palisade.lineage set beat = beat + 1, written_by = pg_current_xact_id()::xid, confirmed_start = pg_postmaster_start_time(),
    confirmed_database = (select oid::bigint from pg_database where datname = current_database())
  where beat >= $1 and written_by = xmin and system_identifier = (select system_identifier from pg_control_system())
  returning beat into counted;
  if counted is null then
    update palisade.lineage set written_by = '0', confirmed_start = '-infinity' where written_by <> '0';
  end if;
  return counted;
end
$$;
revoke execute on function palisade.beat(bigint) from public;

-- PLS10: this database was restored. Every statement that writes looks itself, and calls this only to fail.
create function palisade.demand_beat(demanded bigint) returns boolean language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  known bigint := (select lineage.beat from palisade.lineage where lineage.written_by = lineage.xmin);
begin
  if coalesce(known < $1, $1 is not null) then
    raise exception 'this database was at beat % before, and is at % now: it was restored', $1, coalesce(known::text, 'none that counts') using errcode = 'PLS10';
  end if;
  return true;
end
$$;

-- For writes that do not come through the gateway, whose own statement asks for the floor itself.
-- recover creates the trigger: a database that was never restored pays nothing for it.
create function palisade.refuse_below_floor() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  lowest bigint;
begin
  select lineage.fence_floor into strict lowest from palisade.lineage;
  if new.token <= lowest and not exists (select from palisade.resources as stored where stored.resource = new.resource) then
    raise exception 'token % for % is stale: after a recovery the fence of a new resource stands at %', new.token, new.resource, lowest
      using errcode = 'PLS01', detail = lowest::text, hint = 'The lease is lost for good: stop, do not retry.';
  end if;
  return new;
end
$$;

-- Transactions on the user's own tables go through no gateway, so nothing there asks the lock's nodes whether the database was restored. Here it asks itself: since the
-- server was started, has a gateway said that this very row has every beat?
create view palisade.confirmed_lineage as
  select from palisade.lineage where confirmed_start is null or confirmed_start = pg_postmaster_start_time() and written_by = lineage.xmin
    and confirmed_database = (select oid::bigint from pg_database where datname = current_database());
