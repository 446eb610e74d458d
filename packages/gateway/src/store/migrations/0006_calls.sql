-- Calls a function of the user with arguments from JSON, for POST /v1/call. SQLSTATEs: PLS08 the arguments do not fit, PLS09 there is no such function.

-- Runs as its caller, who may call nothing through it that it may not call anyway. The search path is the caller's, for the function that is called; everything here is
-- named in full. jsonb_to_record makes values of the types of the parameters, so that numbers keep every digit and arrays and composites work. A function with OUT
-- parameters or several rows answers as to_jsonb shows it; VARIADIC, procedures and aggregates are not called.
create function palisade.call_function(called text, arguments jsonb, search_path text) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
$$;
