-- Generated from a migrated database by `npm test -- store-schema -u`; nothing executes this file. What
-- the migrations come to: tables, views and functions in force, each under the names of the migrations
-- that made and changed it, where the reasons stand. On Citus the functions of citus/functions.sql take
-- the place of those with the same name. Who may do what: grants.sql.

-- 0013_changes.sql
create table palisade.changes (
  only_row boolean default true not null,
  last bigint default 0 not null,
  forgotten bigint default 0 not null,
  constraint changes_only_row_check CHECK (only_row),
  constraint changes_pkey PRIMARY KEY (only_row)
);

-- 0001_resources.sql
create table palisade.fence_changes (
  id bigint generated always as identity not null,
  changed_at timestamp with time zone default now() not null,
  previous_token bigint,
  token bigint not null,
  resource text collate "C" not null,
  changed_by text not null,
  reason text not null,
  constraint fence_changes_pkey PRIMARY KEY (id)
);

-- 0001_resources.sql, 0007_growth.sql, 0013_changes.sql
create table palisade.history (
  rev bigint not null,
  token bigint not null,
  seq bigint not null,
  written_at timestamp with time zone not null,
  resource text collate "C" not null,
  op text not null,
  holder text,
  position bigint,
  constraint history_pkey PRIMARY KEY (resource, rev)
);
CREATE UNIQUE INDEX history_position ON palisade.history USING btree ("position") WHERE ("position" IS NOT NULL);
CREATE INDEX history_unordered ON palisade.history USING btree (resource, rev) WHERE ("position" IS NULL);
CREATE INDEX history_written_at ON palisade.history USING btree (written_at);

-- 0009_lineage.sql, 0010_confirmed_lineage.sql
create table palisade.lineage (
  only_row boolean default true not null,
  id uuid default gen_random_uuid() not null,
  beat bigint default 1 not null,
  system_identifier bigint not null,
  fence_floor bigint default 0 not null,
  confirmed_start timestamp with time zone,
  confirmed_table bigint,
  confirmed_database bigint,
  constraint lineage_only_row_check CHECK (only_row),
  constraint lineage_pkey PRIMARY KEY (only_row)
);

-- migrate.ts
create table palisade.migrations (
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone default now() not null,
  runs_with text,
  constraint migrations_pkey PRIMARY KEY (name)
);

-- 0009_lineage.sql
create table palisade.recoveries (
  id bigint generated always as identity not null,
  recovered_at timestamp with time zone default now() not null,
  beat bigint not null,
  fence_floor bigint not null,
  raised bigint not null,
  recovered_by text not null,
  reason text not null,
  constraint recoveries_pkey PRIMARY KEY (id)
);

-- 0012_refusals.sql
create table palisade.refusals (
  id bigint generated always as identity not null,
  refused_at timestamp with time zone not null,
  presented_token bigint,
  current_token bigint,
  missed bigint not null,
  resource text collate "C" not null,
  code text not null,
  caller text not null,
  constraint refusals_pkey PRIMARY KEY (id)
);
CREATE INDEX refusals_refused_at ON palisade.refusals USING btree (refused_at);

-- 0001_resources.sql, 0004_pairs.sql, 0011_fewer_checks.sql
create table palisade.resources (
  token bigint not null,
  seq bigint not null,
  rev bigint not null,
  born bigint not null,
  expected bigint,
  updated_at timestamp with time zone not null,
  deleted boolean not null,
  resource text collate "C" not null,
  op text not null,
  holder text,
  value jsonb,
  guarded_by xid8,
  constraint resources_deleted_check CHECK ((deleted = (value IS NULL))),
  constraint resources_pkey PRIMARY KEY (resource),
  constraint resources_rev_check CHECK ((rev >= 0)),
  constraint resources_seq_check CHECK (((seq >= 0) AND (seq <= '999999999999999'::bigint))),
  constraint resources_token_check CHECK (((token >= 1) AND (token <= '999999999999999'::bigint)))
) with (fillfactor=80);
CREATE TRIGGER fence_only_rises AFTER UPDATE ON palisade.resources FOR EACH ROW WHEN (((new.token < old.token) OR ((new.token = old.token) AND (new.seq < old.seq)) OR (new.rev < old.rev))) EXECUTE FUNCTION palisade.refuse_lower_fence();

-- 0001_resources.sql, 0007_growth.sql
create table palisade.used_keys (
  used_at timestamp with time zone not null,
  key text collate "C" not null,
  fingerprint text not null,
  outcome jsonb not null,
  constraint used_keys_key_check CHECK (((octet_length(key) >= 1) AND (octet_length(key) <= 512))),
  constraint used_keys_pkey PRIMARY KEY (key)
);
CREATE INDEX used_keys_used_at ON palisade.used_keys USING btree (used_at);

-- 0010_confirmed_lineage.sql
create view palisade.confirmed_lineage as
  select from palisade.lineage where confirmed_start is null or confirmed_start = pg_postmaster_start_time() and confirmed_table = lineage.tableoid::bigint
    and confirmed_database = (select oid::bigint from pg_database where datname = current_database());

-- 0005_fenced_tables.sql
create view palisade.fenced_tables as
  select tgrelid::regclass as relation, arguments[1] as prefix, arguments[2:cardinality(arguments) - 1] as key_columns, tgenabled <> 'D' as enabled,
    tgfoid::regprocedure as guarded_by
  from pg_trigger, lateral (
    -- The arguments of a trigger are one value, with a zero byte after each.
    select string_to_array(convert_from(decode(replace(encode(tgargs, 'escape'), '\000', '\001'), 'escape'), getdatabaseencoding()), chr(1)) as arguments
  ) as stored
  where tgname = 'palisade_guard_row' and tgparentid = 0;

-- 0009_lineage.sql
CREATE OR REPLACE FUNCTION palisade.beat()
 RETURNS bigint
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  update palisade.lineage set beat = beat + 1 returning beat
$function$;
revoke execute on function palisade.beat() from public;

-- 0006_calls.sql
CREATE OR REPLACE FUNCTION palisade.call_function(called text, arguments jsonb, search_path text)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  known record;
  names text[];
  types text[];
  wrong text;
  given text;
  passed text;
  call text;
  is_void boolean;
  result jsonb;
begin
  if jsonb_typeof($2) is distinct from 'object' then
    raise exception 'the arguments of a function are the members of an object' using errcode = 'PLS08';
  end if;
  select pg_proc.*, nspname, count(*) over () as versions into known from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
    where nspname = split_part($1, '.', 1) and proname = split_part($1, '.', 2) limit 1;
  if not found or known.versions > 1 or known.prokind <> 'f' or known.provariadic <> 0 then
    raise exception 'there is no single function % that can be called', $1 using errcode = 'PLS09';
  end if;
  select coalesce(array_agg(coalesce(name, '') order by place), '{}'),
      coalesce(array_agg(format('%I.%I', typnamespace::regnamespace::name, typname) order by place), '{}') into names, types
    from unnest(coalesce(known.proallargtypes, known.proargtypes::oid[]), known.proargnames, known.proargmodes) with ordinality as parameter(type, name, mode, place)
    join pg_type on pg_type.oid = type where coalesce(mode, 'i') in ('i', 'b');
  select format('%s has no parameter %s', $1, key) into wrong from jsonb_object_keys($2) as key where key <> all (names) or key = '' limit 1;
  if wrong is null then
    select format('%s needs the parameter %s', $1, coalesce(nullif(name, ''), place::text)) into wrong
      from unnest(names) with ordinality as parameter(name, place)
      where place <= known.pronargs - known.pronargdefaults and not $2 ? name order by place limit 1;
  end if;
  if wrong is not null then
    raise exception '%', wrong using errcode = 'PLS08';
  end if;
  select string_agg(format('%I %s', name, type), ', '), string_agg(format('%1$I => given.%1$I', name), ', ') into given, passed
    from unnest(names, types) as parameter(name, type) where $2 ? name;
  passed := format('%I.%I(%s)', known.nspname, known.proname, passed);
  given := ' from pg_catalog.jsonb_to_record($1) as given(' || given || ')';
  is_void := known.prorettype = 'void'::regtype;
  call := case
    when known.proretset then 'select coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(answer)), ''[]'')'
      || case when given is null then ' from ' else given || ', lateral ' end || passed || ' as answer'
    when is_void then 'select ' || passed || coalesce(given, '')
    else 'select pg_catalog.to_jsonb(' || passed || ')' || coalesce(given, '')
  end;
  -- From here on names and operators are looked up in the caller's schemas.
  perform set_config('search_path', $3, true);
  if is_void then
    execute call using $2;
  else
    execute call into strict result using $2;
  end if;
  return result;
end
$function$;

-- 0010_confirmed_lineage.sql
CREATE OR REPLACE FUNCTION palisade.confirm_lineage(at_least bigint)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  update palisade.lineage set confirmed_start = pg_postmaster_start_time(), confirmed_table = lineage.tableoid::bigint,
    confirmed_database = (select oid::bigint from pg_database where datname = current_database())
  where beat >= $1
$function$;
revoke execute on function palisade.confirm_lineage(bigint) from public;

-- 0009_lineage.sql
CREATE OR REPLACE FUNCTION palisade.demand_beat(demanded bigint)
 RETURNS void
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  known bigint;
begin
  select lineage.beat into known from palisade.lineage;
  if known < $1 then
    raise exception 'this database is at beat %, and was at % before: it was restored', known, $1 using errcode = 'PLS10';
  end if;
end
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.demand_fence(whole regclass, part regclass)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if (select count(*) from pg_trigger where tgrelid = $2 and tgname in ('palisade_guard_row', 'palisade_refuse_truncate')) < 2 then
    raise exception 'table % belongs to % and is not fenced as a whole', $2, $1
      using errcode = 'PLS06', hint = format('Call palisade.fence_table(%L, …) again, with its prefix and key columns.', $1);
  end if;
end
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.demand_fenced_children()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform palisade.demand_fence(tg_relid, part) from palisade.parts_of(tg_relid) as part;
  return null;
end
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.drop_trigger(relation regclass, name text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if exists (select from pg_trigger where tgrelid = relation and tgname = name) then
    execute format('drop trigger %I on %s', name, relation);
  end if;
end
$function$;

-- 0002_guard.sql, 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.fence_of(resource text)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return (select stored.token from palisade.resources as stored where stored.resource = $1);
end
$function$;
revoke execute on function palisade.fence_of(text) from public;

-- 0002_guard.sql, 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.fence_table(fenced regclass, prefix text, VARIADIC key_columns text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  guard_function text;
  arguments text;
  has_children boolean;
  part record;
begin
  if cardinality(key_columns) = 0 or cardinality(key_columns) <> (select count(distinct name) from unnest(key_columns) as name) then
    raise exception 'a fenced table needs the columns of its key, each once' using errcode = '22023';
  end if;
  perform palisade.refuse_unfit_table(fenced);
  if exists (select from pg_trigger where tgrelid = fenced and tgname = 'palisade_guard_row' and tgparentid = 0) then
    perform palisade.unfence_table(fenced);
  end if;
  select
      -- Never the name of a function that another table uses, not even after tables were renamed; and without OR REPLACE, never somebody else's function.
      format('%s.%I', relnamespace::regnamespace, format('palisade_guard_%s_%s', left(md5(random()::text), 8), relname)),
      relkind = 'r' and exists (select from pg_inherits where inhparent = fenced)
    into guard_function, has_children from pg_class where oid = fenced;
  execute format('create function %s() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as %L',
    guard_function, palisade.trigger_source(fenced, prefix, key_columns));
  select string_agg(quote_literal(argument), ', ' order by place) into arguments
    from unnest(array_prepend(prefix, key_columns)) with ordinality as list(argument, place);
  for part in select relation, relispartition from palisade.parts_of(fenced) as relation join pg_class on pg_class.oid = relation loop
    -- A partition gets the row trigger of its parent from Postgres, now and later; children, and triggers of statements, are not provided for.
    if part.relation = fenced or not part.relispartition then
      execute format('create trigger palisade_guard_row after insert or update or delete on %s for each row execute function %s(%s)',
        part.relation, guard_function, arguments);
    end if;
    perform palisade.drop_trigger(part.relation, 'palisade_refuse_truncate'), palisade.drop_trigger(part.relation, 'palisade_fenced_children');
    execute format('create trigger palisade_refuse_truncate before truncate on %s for each statement execute function palisade.refuse_truncate()', part.relation);
    if has_children then
      execute format('create trigger palisade_fenced_children before insert or update or delete on %s
        for each statement execute function palisade.demand_fenced_children()', part.relation);
    end if;
  end loop;
end
$function$;

-- 0007_growth.sql, 0013_changes.sql
CREATE OR REPLACE FUNCTION palisade.forget_history(older_than interval, at_most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  deleted record;
begin
  if older_than < interval '1 minute' then
    raise exception 'an entry of the history is kept for at least one minute' using errcode = '22023';
  end if;
  with old as (
    delete from palisade.history where ctid = any (array(
      select ctid from palisade.history where written_at < now() - older_than order by written_at limit at_most for update skip locked
    )) returning position
  )
  select count(*)::integer as rows, max(position) as highest, count(*) > count(position) as unordered into deleted from old;
  if deleted.unordered then
    update palisade.changes set last = last + 1, forgotten = last + 1;
  elsif deleted.highest is not null then
    update palisade.changes set forgotten = greatest(forgotten, deleted.highest);
  end if;
  return deleted.rows;
end
$function$;
revoke execute on function palisade.forget_history(interval,integer) from public;

-- 0012_refusals.sql
CREATE OR REPLACE FUNCTION palisade.forget_refusals(older_than interval, keep_rows bigint, at_most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  forgotten integer;
begin
  delete from palisade.refusals where id = any (array(
    select id from palisade.refusals
    where refused_at < now() - older_than or id <= (select max(id) from palisade.refusals) - keep_rows
    order by id limit at_most for update skip locked
  ));
  get diagnostics forgotten = row_count;
  return forgotten;
end
$function$;
revoke execute on function palisade.forget_refusals(interval,bigint,integer) from public;

-- 0001_resources.sql, 0007_growth.sql
CREATE OR REPLACE FUNCTION palisade.forget_used_keys(older_than interval, at_most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  forgotten integer;
begin
  if older_than < interval '1 minute' then
    raise exception 'a used key is remembered for at least one minute' using errcode = '22023';
  end if;
  delete from palisade.used_keys where ctid = any (array(
    select ctid from palisade.used_keys where used_at < now() - older_than order by used_at limit at_most for update skip locked
  ));
  get diagnostics forgotten = row_count;
  return forgotten;
end
$function$;
revoke execute on function palisade.forget_used_keys(interval,integer) from public;

-- 0002_guard.sql, 0004_pairs.sql, 0010_confirmed_lineage.sql, 0014_token_bound.sql
CREATE OR REPLACE FUNCTION palisade.guard(resource text, token bigint, seq bigint DEFAULT NULL::bigint, holder text DEFAULT NULL::text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
        using errcode = 'PLS10', hint = 'A gateway that reaches the lock confirms it within a second or two; a restored database needs palisade-gateway recover.';
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
$function$;
revoke execute on function palisade.guard(text,bigint,bigint,text) from public;

-- 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.guard_all(resources text[], tokens bigint[], seqs bigint[] DEFAULT NULL::bigint[], holder text DEFAULT NULL::text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

-- 0002_guard.sql, 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.guard_row()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'table % was fenced by an earlier version', tg_relid::regclass
    using errcode = 'PLS06', hint = format('Call palisade.fence_table(%L, …) again, with its prefix and key columns.', tg_relid::regclass);
end
$function$;

-- 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.holds_pair(resource text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return exists (
    select from palisade.resources as stored
    where stored.resource = $1 and stored.guarded_by = pg_current_xact_id() and stored.updated_at = now()
  );
end
$function$;
revoke execute on function palisade.holds_pair(text) from public;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.key_text(type oid, value text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select format(case
    when $1 = any ('{smallint,integer,bigint,text,varchar,char,uuid,boolean,time}'::regtype[]) then '%s::text'
    when $1 = 'numeric'::regtype then 'trim_scale(%s)::text'
    when $1 = any ('{date,timestamp}'::regtype[]) then '(to_jsonb(%s) #>> ''{}'')'
    when $1 = 'timestamptz'::regtype then '((to_jsonb(%s at time zone ''UTC'') #>> ''{}'') || ''+00:00'')'
    when $1 = 'bytea'::regtype then '(chr(92) || ''x'' || encode(%s, ''hex''))'
  end, $2)
$function$;

-- 0001_resources.sql, 0004_pairs.sql, 0007_growth.sql
CREATE OR REPLACE FUNCTION palisade.merge_patch(target jsonb, patch jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  base jsonb;
begin
  if jsonb_typeof(patch) is distinct from 'object' then
    return patch;
  end if;
  if jsonb_typeof(target) is distinct from 'object' then
    if not jsonb_path_exists(patch, 'strict $.** ? (@ == null)') then
      return patch; -- There is nothing to merge with and nothing to remove.
    end if;
    base := '{}';
  else
    base := target || '{}'; -- In memory: otherwise every look at a member reads the whole document again.
  end if;
  return (
    select coalesce(jsonb_object_agg(key, value), '{}') from (
      select kept.key, kept.value from jsonb_each(base) as kept where not patch ? kept.key
      union all
      select given.key, case jsonb_typeof(given.value) when 'object' then palisade.merge_patch(base -> given.key, given.value) else given.value end
        from jsonb_each(patch) as given where jsonb_typeof(given.value) <> 'null'
    ) as merged
  );
end
$function$;

-- 0003_break_glass.sql, 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.move_fence(direction text, resource text, token bigint, changed_by text, reason text)
 RETURNS TABLE(changed boolean, previous bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;
revoke execute on function palisade.move_fence(text,text,bigint,text,text) from public;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.name_expression(fenced regclass, prefix text, key_columns text[], the_row text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  name text;
  known record;
  part text;
  parts text[] := '{}';
begin
  foreach name in array key_columns loop
    select atttypid, attgenerated, collisdeterministic into known from pg_attribute left join pg_collation on pg_collation.oid = attcollation
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
    parts := parts || format('case when pg_typeof(%s.%I)::oid = %s then %s else palisade.refuse_changed_key(tg_relid, %L) end',
      the_row, name, known.atttypid, part, name);
  end loop;
  return format('(%L || %s)', prefix, array_to_string(parts, ' || ''/'' || '));
end
$function$;

-- 0013_changes.sql
CREATE OR REPLACE FUNCTION palisade.order_changes(at_most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  place bigint;
  ordered integer;
begin
  select changes.last into place from palisade.changes for update skip locked;
  if not found then
    return null;
  end if;
  with waiting as (
    select resource, rev, written_at from palisade.history where position is null order by resource, rev limit at_most
  ), timed as (
    select resource, rev, max(written_at) over (partition by resource order by rev) as told_at from waiting
  ), placed as (
    select resource, rev, row_number() over (order by told_at, resource, rev) as number from timed
  ), given as (
    update palisade.history as stored set position = place + placed.number from placed
    where stored.resource = placed.resource and stored.rev = placed.rev returning stored.position
  )
  select count(*), coalesce(max(given.position), place) into ordered, place from given;
  if ordered > 0 then
    update palisade.changes set last = place;
  end if;
  return ordered;
end
$function$;
revoke execute on function palisade.order_changes(integer) from public;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.parts_of(whole regclass)
 RETURNS SETOF regclass
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  with recursive part(relation) as (
    select $1::oid
    union
    select inhrelid from pg_inherits join part on inhparent = part.relation
  )
  select relation::regclass from part
$function$;

-- 0002_guard.sql, 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.present(resource text, token bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return palisade.guard($1, $2);
end
$function$;

-- 0002_guard.sql, 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.present(token bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'token % was presented without the resource it was won for', $1
    using errcode = 'PLS03', hint = 'Call palisade.present(resource, token).';
end
$function$;

-- 0001_resources.sql, 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.refuse_all()
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'another operation of this transaction was refused' using errcode = 'PLS05';
end
$function$;

-- 0009_lineage.sql
CREATE OR REPLACE FUNCTION palisade.refuse_below_floor()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  lowest bigint;
begin
  select lineage.fence_floor into lowest from palisade.lineage;
  if new.token <= lowest and not exists (select from palisade.resources as stored where stored.resource = new.resource) then
    raise exception 'token % for % is stale: after a recovery the fence of a new resource stands at %', new.token, new.resource, lowest
      using errcode = 'PLS01', detail = lowest::text, hint = 'The lease is lost for good: stop, do not retry.';
  end if;
  return new;
end
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.refuse_changed_key(relation oid, name text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'column % of table % has another type than when the table was fenced', $2, $1::regclass
    using errcode = 'PLS06', hint = format('Call palisade.fence_table(%L, …) again, with its prefix and key columns.', $1::regclass);
end
$function$;

-- 0004_pairs.sql
CREATE OR REPLACE FUNCTION palisade.refuse_lower_fence()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

-- 0004_pairs.sql, 0014_token_bound.sql
CREATE OR REPLACE FUNCTION palisade.refuse_malformed(resource text, token bigint, seq bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.refuse_row(before text, after text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  name text := case when palisade.holds_pair($1) then $2 else $1 end;
begin
  if name is null then
    raise exception 'the fenced row has no value in a column of its key' using errcode = 'PLS03';
  end if;
  raise exception 'this transaction presented no token for %', name
    using errcode = 'PLS03', hint = 'Call palisade.guard(resource, token) first in this transaction; a row is written only under the token of its own resource.';
end
$function$;

-- 0002_guard.sql, 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.refuse_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  raise exception 'table % is fenced: TRUNCATE would pass no row to the fence', tg_relid::regclass using errcode = 'PLS04';
end
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.refuse_unfit_table(fenced regclass)
 RETURNS void
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.trigger_source(fenced regclass, prefix text, key_columns text[])
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  before text := palisade.name_expression(fenced, prefix, key_columns, 'old');
  after text := palisade.name_expression(fenced, prefix, key_columns, 'new');
begin
  return format('
declare
  name text;
begin%s
  name := case when tg_op = ''INSERT'' then %s else %s end;
  if not palisade.holds_pair(name) or tg_op = ''UPDATE'' and %s is distinct from name and not palisade.holds_pair(%s) then
    perform palisade.refuse_row(name, %s);
  end if;
  return null;
end
', case (select relkind from pg_class where oid = fenced) when 'p' then '
  perform palisade.demand_fence(' || quote_literal(fenced) || ', tg_relid);' else '' end,
    after, before, after, after, after);
end
$function$;

-- 0005_fenced_tables.sql
CREATE OR REPLACE FUNCTION palisade.unfence_table(fenced regclass)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  guard_function regprocedure;
  part record;
begin
  select tgfoid into guard_function from pg_trigger where tgrelid = fenced and tgname = 'palisade_guard_row' and tgparentid = 0;
  if not found then
    raise exception 'table % is not fenced', fenced using errcode = '42704';
  end if;
  for part in select relation, relispartition from palisade.parts_of(fenced) as relation join pg_class on pg_class.oid = relation loop
    if part.relation = fenced or not part.relispartition then
      perform palisade.drop_trigger(part.relation, 'palisade_guard_row');
    end if;
    perform palisade.drop_trigger(part.relation, 'palisade_refuse_truncate'), palisade.drop_trigger(part.relation, 'palisade_fenced_children');
  end loop;
  -- A child that no longer inherits from the table keeps its trigger, and the trigger its function.
  if guard_function <> 'palisade.guard_row()'::regprocedure and not exists (select from pg_trigger where tgfoid = guard_function) then
    execute format('drop function %s', guard_function);
  end if;
end
$function$;

-- 0007_growth.sql
CREATE OR REPLACE FUNCTION palisade.within_limit(document text, limit_bytes bigint, resource text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if octet_length(document) > limit_bytes then
    raise exception 'the document of % would have % bytes and may have %', resource, octet_length(document), limit_bytes
      using errcode = 'PLS08', detail = octet_length(document) || ' ' || resource;
  end if;
  return document;
end
$function$;
