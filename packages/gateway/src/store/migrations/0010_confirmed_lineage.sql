-- Runs with gateways from 0009 on.
-- Transactions on the user's own tables go through no gateway, so nothing there asks the lock's nodes whether the database was restored. Here it asks itself: since the
-- server was started, has a gateway said that this database has every beat? A restored one was started anew. PLS10: no gateway has said so.

-- Null: no gateway that knows the lock's nodes has ever looked, and nothing is asked. The table and the database are other ones after pg_restore and after a copy by
-- CREATE DATABASE, which need no start.
alter table palisade.lineage add column confirmed_start timestamptz, add column confirmed_table bigint, add column confirmed_database bigint;

create view palisade.confirmed_lineage as
  select from palisade.lineage where confirmed_start is null or confirmed_start = pg_postmaster_start_time() and confirmed_table = lineage.tableoid::bigint
    and confirmed_database = (select oid::bigint from pg_database where datname = current_database());

-- By a gateway, which has just asked the nodes: they have seen no beat above this one.
create function palisade.confirm_lineage(at_least bigint) returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
  update palisade.lineage set confirmed_start = pg_postmaster_start_time(), confirmed_table = lineage.tableoid::bigint,
    confirmed_database = (select oid::bigint from pg_database where datname = current_database())
  where beat >= $1
$$;
revoke execute on function palisade.confirm_lineage(bigint) from public;

-- As in 0004, and the lineage is confirmed. Within the statements that are there already: one of its own would cost as much as the guard.
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
$$;

-- A gateway that runs while this is applied needs the rights at once.
do $$
begin
  if to_regrole('palisade_gateway') is not null then
    grant select on palisade.confirmed_lineage to palisade_gateway;
    grant execute on function palisade.confirm_lineage(bigint) to palisade_gateway;
  end if;
end
$$;
