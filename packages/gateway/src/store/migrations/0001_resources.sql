-- The tables of the fenced store. A row of palisade.resources is never deleted: it is the memory of a fence, and a forgotten fence lets stale writes in.
-- Once released, this file is not edited; a change is another file.
create schema if not exists palisade;

create table palisade.resources (
  -- The highest token whose write or seal was accepted, and the highest sequence number within it (0: none was given).
  token bigint not null check (token between 1 and 999999999999999),
  seq bigint not null check (seq between 0 and 999999999999999),
  -- Counts accepted writes and is never reset. A seal does not count: the document, and with it the ETag, stays what it was. 0: sealed, never written.
  rev bigint not null check (rev >= 0),
  -- The revision at which the present document came into being. Equal to rev right after a write that created it.
  born bigint not null,
  -- What the last accepted request demanded (null nothing, 0 no document, -1 any document, n exactly revision n) and did. Besides telling the story of the row, these
  -- two bring the request to where ON CONFLICT can see it, which is only the row proposed for insertion.
  expected bigint,
  updated_at timestamptz not null,
  deleted boolean not null,
  -- "C": prefix lists then use the primary key, and the order does not change with the operating system.
  resource text collate "C" not null check (octet_length(resource) between 1 and 512),
  op text not null check (op in ('put', 'patch', 'delete', 'seal')),
  holder text,
  value jsonb,
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

-- Idempotency keys that were used by an accepted write, with what it was answered; written by the statement that writes the resource.
create table palisade.used_keys (
  used_at timestamptz not null,
  key text collate "C" not null check (octet_length(key) between 1 and 512),
  fingerprint text not null,
  outcome jsonb not null,
  constraint used_keys_pkey primary key (key)
);
create index used_keys_used_at on palisade.used_keys using brin (used_at) with (pages_per_range = 16);

-- Break-glass: fences moved by hand.
create table palisade.fence_changes (
  id bigint generated always as identity primary key,
  changed_at timestamptz not null default now(),
  previous_token bigint,
  token bigint not null,
  resource text collate "C" not null,
  changed_by text not null,
  reason text not null
);

-- RFC 7396. jsonb's own || is flat and keeps nulls; this recurses and removes. Numbers pass through as numeric and keep every digit.
create function palisade.merge_patch(target jsonb, patch jsonb) returns jsonb language plpgsql immutable parallel safe as $$
declare
  merged jsonb;
  member record;
begin
  if jsonb_typeof(patch) is distinct from 'object' then
    return patch;
  end if;
  merged := case jsonb_typeof(target) when 'object' then target else '{}' end;
  for member in select key, value from jsonb_each(patch) loop
    merged := case jsonb_typeof(member.value)
      when 'null' then merged - member.key
      when 'object' then merged || jsonb_build_object(member.key, palisade.merge_patch(merged -> member.key, member.value))
      else merged || jsonb_build_object(member.key, member.value)
    end;
  end loop;
  return merged;
end
$$;

-- Called in the place of a result when some operation of a transaction was refused: undoes the others by failing the statement.
create function palisade.refuse_all() returns text language plpgsql as $$
begin
  raise exception 'another operation of this transaction was refused' using errcode = 'PLS05';
end
$$;

-- The only way to delete anything, and only used keys: the gateway's own role has no DELETE. At most so many at once, so that no call is long.
create function palisade.forget_used_keys(older_than interval, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  forgotten integer;
begin
  if older_than < interval '1 minute' then
    raise exception 'a used key is remembered for at least one minute' using errcode = '22023';
  end if;
  delete from palisade.used_keys
    where key in (select key from palisade.used_keys where used_at < now() - older_than limit at_most for update skip locked);
  get diagnostics forgotten = row_count;
  return forgotten;
end
$$;
revoke execute on function palisade.forget_used_keys(interval, integer) from public;
