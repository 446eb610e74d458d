-- Runs with gateways from 0009 on.
-- The order in which accepted writes are told (GET /v1/changes). A sequence gives no such order: its numbers are taken before the commit, so a reader that has seen 7 may
-- still be owed 6. Here a place is given after the commit, to whatever is committed and has none, under a lock that lasts until the places are committed as well.
alter table palisade.history add column position bigint;
create unique index history_position on palisade.history (position) where position is not null;
create index history_unordered on palisade.history (resource, rev) where position is null;

create table palisade.changes (
  only_row boolean primary key default true check (only_row),
  -- The highest place that was given.
  last bigint not null default 0,
  -- A reader that has not seen beyond this place has missed something that is no longer kept.
  forgotten bigint not null default 0
);
insert into palisade.changes default values;

-- Gives places to at most so many writes and answers to how many; null while another session does. Of one resource they rise with the revision: whoever sees a revision
-- committed sees those before it committed, too. Between resources they follow the times of the transactions.
create function palisade.order_changes(at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;
revoke execute on function palisade.order_changes(integer) from public;

-- As in 0007, and what is deleted is known to the readers of changes. A write that never had a place takes one along that nobody has seen.
create or replace function palisade.forget_history(older_than interval, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;

-- A gateway that runs while this is applied needs the rights at once.
do $$
begin
  if to_regrole('palisade_gateway') is not null then
    grant select on palisade.changes to palisade_gateway;
    grant execute on function palisade.order_changes(integer) to palisade_gateway;
  end if;
end
$$;
