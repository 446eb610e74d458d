-- The fence on the user's own tables, around one rule: a transaction holds a set of pairs of resource and token, proved at its start, and a guarded row is written
-- only under the pair of exactly its own resource (G5). Here the pairs, and the rights on fences; in 0005 the tables. It replaces the setting palisade.token and
-- present(token) of 0002.
-- SQLSTATEs: PLS01 stale token, PLS02 sequence out of order, PLS03 no pair or a malformed one, PLS07 a fence never falls by a plain statement.

-- The transaction that holds the pair of this resource. Written under the lock of the row, which that transaction keeps until it ends, by palisade.guard alone. It needs
-- no cleaning up: a transaction's number is never given again. A rolled back savepoint takes it back, and a prepared transaction keeps it.
alter table palisade.resources add column guarded_by xid8;

create function palisade.refuse_malformed(resource text, token bigint, seq bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if coalesce(octet_length($1), 0) not between 1 and 512 then
    raise exception 'the name of a resource has 1 to 512 bytes' using errcode = 'PLS03';
  end if;
  if coalesce($2, 0) not between 1 and 999999999999999 then
    raise exception 'the fencing token % is not an integer between 1 and 999999999999999', coalesce($2::text, 'null') using errcode = 'PLS03';
  end if;
  if $3 not between 1 and 999999999999999 then
    raise exception 'the sequence number % is not an integer between 1 and 999999999999999', $3 using errcode = 'PLS03';
  end if;
  -- The lock starts at the Unix time in milliseconds and counts leases, so no lease would pass such a fence before the year 2100: a mistake or an attack. Where an
  -- operator has moved the fence that far, the lock goes on from there.
  if $2 > greatest(4102444800000, 1000000000000 + palisade.fence_of($1)) then
    raise exception 'the fencing token % for % is beyond all that the lock issues before the year 2100', $2, $1 using errcode = 'PLS03';
  end if;
end
$$;

-- Proves a pair, and presents it for the rest of the transaction. The row of the resource stays locked until the transaction ends, so a stale holder's transaction
-- fails here, and a newer holder waits here until the older one has committed. To be called before the first read; READ COMMITTED is enough, stricter levels answer
-- 40001 in a race.
-- Security definer: a caller needs no right on the table, and can only raise.
create or replace function palisade.guard(resource text, token bigint, seq bigint default null, holder text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  known record;
begin
  if coalesce(octet_length($1), 0) not between 1 and 512 or coalesce($2, 0) not between 1 and 4102444800000 or $3 not between 1 and 999999999999999 then
    perform palisade.refuse_malformed($1, $2, $3);
  end if;
  loop
    update palisade.resources as stored set
      token = $2,
      seq = case when $2 > stored.token then coalesce($3, 0) else greatest(stored.seq, $3) end,
      op = 'seal',
      expected = null,
      holder = $4,
      updated_at = now(),
      guarded_by = pg_current_xact_id()
    where stored.resource = $1 and stored.token <= $2 and ($2 > stored.token or $3 is null or $3 > stored.seq);
    if found then
      return $2;
    end if;
    insert into palisade.resources (resource, token, seq, rev, born, op, deleted, holder, updated_at, guarded_by)
      values ($1, $2, coalesce($3, 0), 0, 0, 'seal', true, $4, now(), pg_current_xact_id()) on conflict on constraint resources_pkey do nothing;
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

-- The same without a sequence number, for further leases of the same transaction.
drop function palisade.present(bigint);
create function palisade.present(resource text, token bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return palisade.guard($1, $2);
end
$$;

-- A token alone does not say for which resource it was won.
create function palisade.present(token bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'token % was presented without the resource it was won for', $1
    using errcode = 'PLS03', hint = 'Call palisade.present(resource, token).';
end
$$;

-- Several pairs in one round trip, in the order of their names: two transactions that each take all of theirs in one call do not deadlock. Returns how many.
create function palisade.guard_all(resources text[], tokens bigint[], seqs bigint[] default null, holder text default null) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  pair record;
  taken bigint := 0;
begin
  for pair in select * from unnest($1, $2, $3) as given(resource, token, seq) order by given.resource collate "C", given.token loop
    perform palisade.guard(pair.resource, pair.token, pair.seq, $4);
    taken := taken + 1;
  end loop;
  if taken = 0 then
    raise exception 'no pair of resource and token was given' using errcode = 'PLS03';
  end if;
  return taken;
end
$$;

-- What the row trigger asks, with the names of the row before and after the write. The time tells this transaction from one with the same number in another cluster,
-- from which the row may have been copied.
-- Security definer: it reads a table that the caller may not read, and answers only whether the caller's own transaction holds the pair.
create function palisade.holds_pair(resource text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  return exists (
    select from palisade.resources as stored
    where stored.resource = $1 and stored.guarded_by = pg_current_xact_id() and stored.updated_at = now()
  );
end
$$;
revoke execute on function palisade.holds_pair(text) from public;

create or replace function palisade.fence_of(resource text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select stored.token from palisade.resources as stored where stored.resource = $1);
end
$$;

-- An overload in a schema of the user's search path can fit a call better than the function of Postgres, which takes any type.
alter function palisade.merge_patch(jsonb, jsonb) set search_path = pg_catalog, pg_temp;
alter function palisade.refuse_all() set search_path = pg_catalog, pg_temp;

-- As in 0003, with the rights of the owner: the gateway's role lowers no fence and writes no row of fence_changes by itself. The record is written first, because the
-- trigger below looks for it.
create or replace function palisade.move_fence(direction text, resource text, token bigint, changed_by text, reason text)
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
when (new.token < old.token or new.token = old.token and new.seq < old.seq or new.rev < old.rev)
execute function palisade.refuse_lower_fence();
