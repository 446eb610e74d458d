-- Runs with gateways from 0009 on.
-- Writes that were refused, for GET /v1/refused. Written by the gateways once a second, never by the statement that refuses, and bounded in rows and in age.
create table palisade.refusals (
  id bigint generated always as identity primary key,
  refused_at timestamptz not null,
  presented_token bigint,
  current_token bigint,
  -- How many refusals since the row before the gateway could not keep.
  missed bigint not null,
  resource text collate "C" not null,
  code text not null,
  caller text not null
);
create index refusals_refused_at on palisade.refusals (refused_at);

create function palisade.forget_refusals(older_than interval, keep_rows bigint, at_most integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
$$;
revoke execute on function palisade.forget_refusals(interval, bigint, integer) from public;

-- A gateway that runs while this is applied needs the rights at once.
do $$
begin
  if to_regrole('palisade_gateway') is not null then
    grant select, insert on palisade.refusals to palisade_gateway;
    grant execute on function palisade.forget_refusals(interval, bigint, integer) to palisade_gateway;
  end if;
end
$$;
