-- Runs with gateways from 0001 on.
-- Whether this database still has everything that its gateways saw in it. A restored backup is an
-- earlier state of the same database: it has fewer beats than the lock's nodes remember.
create table palisade.lineage (
  only_row boolean primary key default true check (only_row),
  -- The same in every copy.
  id uuid not null default gen_random_uuid(),
  -- Rises at most once a second while writes are acknowledged; remembered by the lock's nodes.
  beat bigint not null default 1,
  -- Of the cluster in which the fences were known to be complete.
  system_identifier bigint not null,
  -- After a recovery: a resource without a row accepts only tokens above it.
  fence_floor bigint not null default 0
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

create function palisade.beat() returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
  update palisade.lineage set beat = beat + 1 returning beat
$$;
revoke execute on function palisade.beat() from public;

-- Behind a pooler, part of the transaction of every write. PLS10: the database has lost beats.
create function palisade.demand_beat(demanded bigint) returns void language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  known bigint;
begin
  select lineage.beat into known from palisade.lineage;
  if known < $1 then
    raise exception 'this database is at beat %, and was at % before: it was restored', known, $1 using errcode = 'PLS10';
  end if;
end
$$;

-- For writes that do not come through the gateway, whose own statement asks for the floor itself.
-- recover creates the trigger: a database that was never restored pays nothing for it.
create function palisade.refuse_below_floor() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
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
$$;
