-- The fence inside the user's own transactions and on the user's own tables. A transaction holds a set of pairs of resource and token, proved when they are presented, and a
-- guarded row is written only under the pair of exactly its own resource (G5). The gateway's HTTP path uses nothing from this file.
-- SQLSTATEs: PLS01 stale token, PLS02 sequence out of order, PLS03 no pair or a malformed one, PLS04 a fenced table cannot be truncated, PLS06 fence the table again,
-- PLS10 no gateway has confirmed that this database has every fence.
-- No literal of a function here contains a backslash: a function is parsed under the caller's standard_conforming_strings.

-- The fence of a resource; null where there is none.
create function palisade.fence_of(resource text) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return (select stored.token from palisade.resources as stored where stored.resource = $1);
end
$$;
revoke execute on function palisade.fence_of(text) from public;

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
  -- The lock starts at 100 times the Unix time in milliseconds and counts leases, so no lease would pass such a fence before the year 2100: a mistake or an attack.
  -- Where an operator has moved the fence that far, the lock goes on from there.
  if $2 > greatest(410244480000000, 100000000000000 + palisade.fence_of($1)) then
    raise exception 'the fencing token % for % is beyond all that the lock issues before the year 2100', $2, $1 using errcode = 'PLS03';
  end if;
end
$$;

-- Proves a pair, and presents it for the rest of the transaction. The row of the resource stays locked until the transaction ends, so a stale holder's transaction
-- fails here, and a newer holder waits here until the older one has committed. To be called before the first read; READ COMMITTED is enough, stricter levels answer
-- 40001 in a race.
-- Security definer: a caller needs no right on the table, and can only raise.
-- That the lineage is confirmed is asked within its statements: one more would cost as much as the guard.
create function palisade.guard(resource text, token bigint, seq bigint default null, holder text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  known record;
begin
  if coalesce(octet_length($1), 0) not between 1 and 512 or coalesce($2, 0) not between 1 and 410244480000000 or $3 not between 1 and 999999999999999 then
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
    where stored.resource = $1 and stored.token <= $2 and ($2 > stored.token or $3 is null or $3 > stored.seq)
      and exists (select from palisade.confirmed_lineage);
    if found then
      return $2;
    end if;
    insert into palisade.resources (resource, token, seq, rev, born, op, deleted, holder, updated_at, guarded_by)
      select $1, $2, coalesce($3, 0), 0, 0, 'seal', true, $4, now(), pg_current_xact_id() where exists (select from palisade.confirmed_lineage)
      on conflict on constraint resources_pkey do nothing;
    if found then
      return $2;
    end if;
    if not exists (select from palisade.confirmed_lineage) then
      raise exception 'no gateway has confirmed since the start of the server that this database has every fence: it may have been restored'
        using errcode = 'PLS10', hint = 'A gateway that reaches the lock confirms it within a second or two; a restored database needs npx @palisade/gateway recover.';
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
revoke execute on function palisade.guard(text, bigint, bigint, text) from public;

-- The same without a sequence number, for further leases of the same transaction.
create function palisade.present(resource text, token bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  return palisade.guard($1, $2);
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

-- What a row's triggers ask, with the names of the row before and after the write. The time tells this transaction from one with the same number in another cluster,
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

create function palisade.refuse_truncate() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'table % is fenced: TRUNCATE would pass no row to the fence', tg_relid::regclass using errcode = 'PLS04';
end
$$;

-- A table with its partitions or children, and theirs.
create function palisade.parts_of(whole regclass) returns setof regclass
language sql stable set search_path = pg_catalog, pg_temp as $$
  with recursive part(relation) as (
    select $1::oid
    union
    select inhrelid from pg_inherits join part on inhparent = part.relation
  )
  select relation::regclass from part
$$;

-- Where a row moves to another partition, Postgres tries the condition of the update once more, for the whole table and without a tableoid; the delete and the insert of
-- the move are judged like any other.
create function palisade.demand_fence(whole regclass, part regclass) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if $2 <> 0 and (select count(*) from pg_trigger where tgrelid = $2
      and tgname in ('palisade_guard_insert', 'palisade_guard_update', 'palisade_guard_delete', 'palisade_refuse_truncate')) < 4 then
    raise exception 'table % belongs to % and is not fenced as a whole', $2, $1
      using errcode = 'PLS06', hint = format('Call palisade.fence_table(%L, …) again, with its prefix and key columns.', $1);
  end if;
  return true;
end
$$;

-- A child (INHERITS) that was made after the table was fenced has no trigger, and a statement on the table would change its rows. Partitions are looked at row by row. A
-- table without children is not looked at, because this would cost every statement as much as the row trigger does.
create function palisade.demand_fenced_children() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform palisade.demand_fence(tg_relid, part) from palisade.parts_of(tg_relid) as part;
  return null;
end
$$;

-- The text of a key column as an expression: equal values have one text, whatever the settings of the session. Null where the type has none.
create function palisade.key_text(type oid, value text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select format(case
    when $1 = any ('{smallint,integer,bigint,text,varchar,char,uuid,boolean,time}'::regtype[]) then '%s::text'
    when $1 = 'numeric'::regtype then 'trim_scale(%s)::text'
    when $1 = any ('{date,timestamp}'::regtype[]) then '(to_jsonb(%s) #>> ''{}''::text[])'
    when $1 = 'timestamptz'::regtype then '((to_jsonb(%s at time zone ''UTC'') #>> ''{}''::text[]) || ''+00:00'')'
    when $1 = 'bytea'::regtype then '(chr(92) || ''x'' || encode(%s, ''hex''))'
  end, $2)
$$;

-- The name of a row's resource as an expression: the prefix and the columns of the key. With several columns a separator within a value is escaped, so that different
-- keys have different names.
create function palisade.name_expression(fenced regclass, prefix text, key_columns text[], the_row text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  name text;
  known record;
  part text;
  parts text[] := '{}';
begin
  foreach name in array key_columns loop
    select atttypid, attgenerated, attcollation, collisdeterministic into known from pg_attribute left join pg_collation on pg_collation.oid = attcollation
      where attrelid = fenced and attname = name and attnum > 0 and not attisdropped;
    if not found then
      raise exception 'table % has no column %', fenced, name using errcode = '42703';
    end if;
    part := palisade.key_text(known.atttypid, format('%s.%I', the_row, name));
    if part is null or known.collisdeterministic is false or known.attgenerated = 'v' then
      raise exception 'column % of table % cannot be part of a fenced key: % has no canonical text here', name, fenced, known.atttypid::regtype
        using errcode = '0A000', hint = 'Fence by a column of a type that docs/own-tables.md lists.';
    end if;
    if cardinality(key_columns) > 1 then
      part := format('replace(replace(%s, ''%%'', ''%%25''), ''/'', ''%%2F'')', part);
    end if;
    -- Texts of several collations could not be one.
    parts := parts || case when known.attcollation in (0, '"default"'::regcollation) then part else part || ' collate "C"' end;
  end loop;
  return format('(%L || %s)', prefix, array_to_string(parts, ' || ''/'' || '));
end
$$;

-- The condition of the triggers, with the names of the row before and after the write: raises, or is false.
create function palisade.refuse_row(before text, after text) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  name text;
begin
  if palisade.holds_pair($1) and ($1 = $2 or palisade.holds_pair($2)) then
    return false;
  end if;
  name := case when palisade.holds_pair($1) then $2 else $1 end;
  if name is null then
    raise exception 'the fenced row has no value in a column of its key' using errcode = 'PLS03';
  end if;
  raise exception 'this transaction presented no token for %', name
    using errcode = 'PLS03', hint = 'Call palisade.guard(resource, token) first in this transaction; a row is written only under the token of its own resource.';
end
$$;

-- A trigger must have a function; that of these is not reached, because their conditions refuse: only there the columns of the key are known.
create function palisade.refuse_write() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception 'table % is fenced', tg_relid::regclass using errcode = 'PLS03';
end
$$;

-- One of the three triggers that guard the rows of a table. Its condition is judged as soon as the row is written, as whoever writes it: it sees what other triggers and
-- generated columns made of the row, renders the columns of the key and nothing else, and hands a text to the owner of the fences. Postgres binds its functions and
-- columns when the trigger is made, follows a column that is renamed, and refuses to change its type. It reads the condition anew in every statement: so it is short.
create function palisade.guard_trigger(event text, relation regclass, fenced regclass, prefix text, key_columns text[]) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  the_row text := case event when 'insert' then 'new' else 'old' end;
  before text := palisade.name_expression(fenced, prefix, key_columns, the_row);
  after text := palisade.name_expression(fenced, prefix, key_columns, case event when 'update' then 'new' else the_row end);
begin
  return format('create trigger palisade_guard_%s after %1$s on %s for each row when (%spalisade.refuse_row(%s, %s)) execute function palisade.refuse_write(%s)',
    event, relation,
    case (select relkind from pg_class where oid = fenced) when 'p' then format('palisade.demand_fence(%L::regclass, %s.tableoid::regclass) and ', fenced, the_row) end,
    before, after,
    (select string_agg(quote_literal(argument), ', ' order by place) from unnest(array_prepend(prefix, key_columns)) with ordinality as list(argument, place)));
end
$$;

-- Whether a trigger is what fence_table makes now. Postgres writes the same with other blanks, parentheses, casts and backslashes.
create function palisade.is_guard_trigger(made oid, event text, relation regclass, fenced regclass, prefix text, key_columns text[]) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  noise text := format('[()[:space:]%s]|::text|[[:<:]]e(?='')', repeat(chr(92), 2));
begin
  return regexp_replace(lower(pg_get_triggerdef(made)), noise, '', 'g')
    = regexp_replace(lower(palisade.guard_trigger(event, relation, fenced, prefix, key_columns)), noise, '', 'g');
exception when undefined_column or feature_not_supported then
  return false;
end
$$;

create function palisade.refuse_unfit_table(fenced regclass) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  unfit record;
begin
  select pg_class.oid::regclass as relation, relkind, relpersistence into unfit
    from palisade.parts_of(fenced) as part join pg_class on pg_class.oid = part
    where relkind not in ('r', 'p') or relpersistence = 't' or relnamespace::regnamespace::text in ('palisade', 'pg_catalog', 'information_schema') limit 1;
  if found then
    raise exception '% cannot be fenced: %', unfit.relation, case when unfit.relpersistence = 't' then 'it is temporary' else 'it is not a table of the user' end
      using errcode = '42809';
  end if;
end
$$;

-- Fences a table, or fences it anew: palisade.fence_table('orders', 'orders/', 'id') makes row 7 the resource orders/7. Runs as its caller, who must own the table.
create function palisade.fence_table(fenced regclass, prefix text, variadic key_columns text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  has_children boolean := exists (select from pg_class join pg_inherits on inhparent = pg_class.oid where pg_class.oid = fenced and relkind = 'r');
  part record;
  event text;
begin
  if cardinality(key_columns) = 0 or cardinality(key_columns) <> (select count(distinct name) from unnest(key_columns) as name) then
    raise exception 'a fenced table needs the columns of its key, each once' using errcode = '22023';
  end if;
  perform palisade.refuse_unfit_table(fenced);
  if exists (select from pg_trigger where tgrelid = fenced and tgname like 'palisade_guard_%' and tgparentid = 0) then
    perform palisade.unfence_table(fenced);
  end if;
  for part in select relation, relispartition from palisade.parts_of(fenced) as relation join pg_class on pg_class.oid = relation loop
    -- A partition gets the row triggers of its parent from Postgres, now and later; children, and triggers of statements, are not provided for.
    foreach event in array case when part.relation = fenced or not part.relispartition then '{insert,update,delete}'::text[] else '{}' end loop
      execute palisade.guard_trigger(event, part.relation, fenced, prefix, key_columns);
    end loop;
    execute format('create or replace trigger palisade_refuse_truncate before truncate on %s
      for each statement execute function palisade.refuse_truncate()', part.relation);
    if has_children then
      execute format('create or replace trigger palisade_fenced_children before insert or update or delete on %s
        for each statement execute function palisade.demand_fenced_children()', part.relation);
    end if;
  end loop;
end
$$;

-- Takes the fence from a table; the fences of its resources stay. Runs as its caller, who must own the table.
create function palisade.unfence_table(fenced regclass) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  made record;
begin
  if not exists (select from pg_trigger where tgrelid = fenced and tgname like 'palisade_guard_%' and tgparentid = 0) then
    raise exception 'table % is not fenced', fenced using errcode = '42704';
  end if;
  for made in select tgname, tgrelid::regclass as relation from palisade.parts_of(fenced) as part join pg_trigger on tgrelid = part
    where tgparentid = 0 and (tgname like 'palisade_guard_%' or tgname in ('palisade_refuse_truncate', 'palisade_fenced_children')) loop
    execute format('drop trigger %I on %s', made.tgname, made.relation);
  end loop;
end
$$;

-- What is fenced, and how.
create view palisade.fenced_tables as
  select tgrelid::regclass as relation, arguments[1] as prefix, arguments[2:cardinality(arguments) - 1] as key_columns, bool_and(tgenabled <> 'D') as enabled
  from pg_trigger, lateral (
    -- The arguments of a trigger are one value, with a zero byte after each.
    select string_to_array(convert_from(decode(replace(encode(tgargs, 'escape'), '\000', '\001'), 'escape'), getdatabaseencoding()), chr(1)) as arguments
  ) as stored
  where tgname in ('palisade_guard_insert', 'palisade_guard_update', 'palisade_guard_delete') and tgparentid = 0 group by tgrelid, arguments;
