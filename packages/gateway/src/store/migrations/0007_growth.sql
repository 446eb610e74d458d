-- What grows, and what bounds it: merge patches in linear time, a limit for a stored document, used keys and history that are forgotten as fast as they come.
-- SQLSTATE: PLS08 the document would be too large.

-- RFC 7396, as in 0001, and one pass over target and patch instead of a copy of the target for each member of the patch: 10 000 members took more than a minute.
create or replace function palisade.merge_patch(target jsonb, patch jsonb) returns jsonb
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
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
$$;

-- The document as it was stored, unless it is too large: then the statement fails, and nothing is stored. The detail has its size and its name.
create function palisade.within_limit(document text, limit_bytes bigint, resource text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
  if octet_length(document) > limit_bytes then
    raise exception 'the document of % would have % bytes and may have %', resource, octet_length(document), limit_bytes
      using errcode = 'PLS08', detail = octet_length(document) || ' ' || resource;
  end if;
  return document;
end
$$;

-- Block ranges never shrink: once the space of forgotten keys is used again, each range holds old and new keys, and every look for old ones reads the whole table.
drop index palisade.used_keys_used_at;
create index used_keys_used_at on palisade.used_keys (used_at);
create index history_written_at on palisade.history (written_at);

create or replace function palisade.forget_used_keys(older_than interval, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;

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

-- A gateway that runs while this is applied needs the right at once.
do $$
begin
  if to_regrole('palisade_gateway') is not null then
    grant execute on function palisade.forget_history(interval, integer) to palisade_gateway;
  end if;
end
$$;
