-- The rights of the two roles that use Palisade, for the schema's owner to run after migrating; it
-- may be run again at any time. Neither role can log in: grant it to one that can. Neither may
-- delete or truncate: a fence that is gone lets every stale write in.
do $$
begin
  if to_regrole('palisade_gateway') is null then
    create role palisade_gateway nologin;
  end if;
  if to_regrole('palisade_app') is null then
    create role palisade_app nologin;
  end if;
end
$$;

-- The gateway.
grant usage on schema palisade to palisade_gateway;
-- By column: it renames no resource and marks none as held. A trigger keeps it from lowering a
-- fence; palisade.move_fence does that, on record. What earlier versions granted is taken back.
revoke insert, update on palisade.resources from palisade_gateway;
grant select, insert (token, seq, rev, born, expected, updated_at, deleted, resource, op, holder, value)
  on palisade.resources to palisade_gateway;
grant update (token, seq, rev, born, expected, updated_at, deleted, op, holder, value) on palisade.resources to palisade_gateway;
grant select, insert on palisade.history to palisade_gateway;
revoke insert on palisade.fence_changes from palisade_gateway;
grant select on palisade.fence_changes, palisade.migrations to palisade_gateway;
grant execute on function palisade.forget_history(interval, integer) to palisade_gateway;
grant execute on function palisade.move_fence(text, text, bigint, text, text) to palisade_gateway;
grant select on palisade.lineage, palisade.recoveries to palisade_gateway;
grant execute on function palisade.beat(bigint) to palisade_gateway;
grant select on palisade.confirmed_lineage to palisade_gateway;

-- An application that fences its own tables: it can raise a fence and see it, and has no right on
-- the table that keeps it.
grant usage on schema palisade to palisade_app;
grant execute on function palisade.guard(text, bigint, bigint, text) to palisade_app;
grant execute on function palisade.holds_pair(text) to palisade_app;
grant execute on function palisade.fence_of(text) to palisade_app;
grant select on palisade.fenced_tables to palisade_app;

-- With it, /ready can see whether the synchronous standby is connected. Not every owner may grant
-- it.
do $$
begin
  grant pg_read_all_stats to palisade_gateway;
exception when insufficient_privilege then
  raise notice 'palisade_gateway may not see replication: pg_read_all_stats could not be granted';
end
$$;
