-- The fence inside the user's own transactions and on the user's own tables. The gateway's HTTP path uses nothing from this file.
-- SQLSTATEs: PLS01 stale token, PLS02 sequence out of order, PLS03 token missing or malformed, PLS04 a fenced table cannot be truncated.

-- A seal inside the caller's transaction: the row of the resource stays locked until it ends, so a stale holder's transaction fails here, and a newer holder
-- waits here until the older one has committed. To be called first; READ COMMITTED is enough, stricter levels answer 40001 in a race.
-- Security definer: whoever may call it needs no right on the table, and can only raise.
create function palisade.guard(resource text, token bigint, seq bigint default null, holder text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  known record;
begin
  if $2 is null or $2 not between 1 and 999999999999999 then
    raise exception 'the fencing token % is not an integer between 1 and 999999999999999', coalesce($2::text, 'null') using errcode = 'PLS03';
  end if;
  if $3 not between 1 and 999999999999999 then
    raise exception 'the sequence number % is not an integer between 1 and 999999999999999', $3 using errcode = 'PLS03';
  end if;
  insert into palisade.resources as stored (resource, token, seq, rev, born, op, deleted, holder, updated_at)
  values ($1, $2, coalesce($3, 0), 0, 0, 'seal', true, $4, now())
  on conflict on constraint resources_pkey do update set
    token = excluded.token,
    seq = case when excluded.token > stored.token then excluded.seq else greatest(stored.seq, excluded.seq) end,
    op = excluded.op,
    expected = null,
    holder = excluded.holder,
    updated_at = excluded.updated_at
  where stored.token <= excluded.token
    and (excluded.token > stored.token or excluded.seq = 0 or excluded.seq > stored.seq);
  if not found then
    -- A hint: this reads after the refusal, so it can show a later state than the one that refused.
    select stored.token, stored.seq into known from palisade.resources as stored where stored.resource = $1;
    if known.token = $2 then
      raise exception 'sequence % of token % for % is out of order: % came before', $3, $2, $1, known.seq
        using errcode = 'PLS02', detail = known.seq::text;
    end if;
    raise exception 'token % for % is stale: the fence stands at %', $2, $1, known.token
      using errcode = 'PLS01', detail = known.token::text, hint = 'The lease is lost for good: stop, do not retry.';
  end if;
  return $2;
end
$$;
revoke execute on function palisade.guard(text, bigint, bigint, text) from public;

-- The fence of a resource; null where there is none.
create function palisade.fence_of(resource text) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select stored.token from palisade.resources as stored where stored.resource = $1
$$;
revoke execute on function palisade.fence_of(text) from public;

-- Presents a token for the rest of this transaction, for the row trigger. The transaction's number goes with it: a token set by a plain SET outlives its
-- transaction and, through a connection pool, its owner; the trigger would fence a stranger's writes with it.
create function palisade.present(token bigint) returns void language plpgsql as $$
begin
  if $1 is null or $1 not between 1 and 999999999999999 then
    raise exception 'the fencing token % is not an integer between 1 and 999999999999999', coalesce($1::text, 'null') using errcode = 'PLS03';
  end if;
  perform pg_catalog.set_config('palisade.token', $1 || '@' || pg_catalog.pg_current_xact_id(), true);
end
$$;

create function palisade.presented_token() returns bigint language plpgsql stable as $$
declare
  -- After a transaction that used SET LOCAL the setting is '' and not null.
  presented text := nullif(pg_catalog.current_setting('palisade.token', true), '');
  belongs_to text := split_part(presented, '@', 2);
begin
  if presented is null then
    raise exception 'this table is fenced and no token was presented'
      using errcode = 'PLS03', hint = 'Call palisade.present(token) in this transaction first.';
  end if;
  if presented !~ '^[1-9][0-9]{0,14}@[0-9]+$' or belongs_to <> pg_catalog.pg_current_xact_id()::text then
    raise exception 'palisade.token was not presented in this transaction'
      using errcode = 'PLS03', hint = 'Call palisade.present(token); a plain SET would leak to whoever gets this connection next.';
  end if;
  return split_part(presented, '@', 1)::bigint;
end
$$;

-- The resource that guards a row is derived from the row: a prefix and the values of the named columns, joined by '/'. Never from a setting alone, or a valid
-- token for something else would pass.
create function palisade.resource_of(fields jsonb, arguments text[]) returns text language plpgsql immutable as $$
declare
  first integer := array_lower(arguments, 1); -- 0 for the arguments of a trigger.
  name text := arguments[first];
  part text;
begin
  for i in first + 1 .. array_upper(arguments, 1) loop
    part := fields ->> arguments[i];
    if part is null then
      raise exception 'the fenced row has no value in column %', arguments[i] using errcode = 'PLS03';
    end if;
    name := name || case when i > first + 1 then '/' else '' end || part;
  end loop;
  return name;
end
$$;

-- An update that changes the key is a write to both resources; the lower name goes first, so that two of them do not deadlock.
create function palisade.guard_row() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  presented bigint := palisade.presented_token();
  guarded text;
begin
  for guarded in
    select distinct name collate "C" from (values
      (case when tg_op <> 'INSERT' then palisade.resource_of(to_jsonb(old), tg_argv) end),
      (case when tg_op <> 'DELETE' then palisade.resource_of(to_jsonb(new), tg_argv) end)
    ) as names(name) where name is not null order by 1
  loop
    perform palisade.guard(guarded, presented);
  end loop;
  return case tg_op when 'DELETE' then old else new end;
end
$$;

create function palisade.refuse_truncate() returns trigger language plpgsql as $$
begin
  raise exception 'table % is fenced: TRUNCATE would pass no row to the fence', tg_relid::regclass using errcode = 'PLS04';
end
$$;

-- Fences a table: palisade.fence_table('orders', 'orders/', 'id') makes row 7 the resource orders/7.
create function palisade.fence_table(fenced regclass, prefix text, variadic key_columns text[]) returns void language plpgsql as $$
declare
  arguments text;
  missing text;
begin
  select string_agg(name, ', ') into missing from unnest(key_columns) as name
    where not exists (select from pg_catalog.pg_attribute where attrelid = fenced and attname = name and attnum > 0 and not attisdropped);
  if missing is not null then
    raise exception 'table % has no column %', fenced, missing using errcode = '42703';
  end if;
  select string_agg(quote_literal(argument), ', ' order by place) into arguments
    from unnest(array_prepend(prefix, key_columns)) with ordinality as list(argument, place);
  execute format('create trigger palisade_guard_row before insert or update or delete on %s for each row execute function palisade.guard_row(%s)', fenced, arguments);
  execute format('create trigger palisade_refuse_truncate before truncate on %s for each statement execute function palisade.refuse_truncate()', fenced);
end
$$;
