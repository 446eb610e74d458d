-- Distributes the tables of a database by the names of resources, all in one group: what a write
-- touches is on one shard of one worker. For `palisade-gateway migrate --citus`, after all
-- migrations; rows that are there are moved. What is not named here stays on the coordinator.
set local citus.multi_shard_modify_mode = 'sequential';

-- Citus has no row triggers on distributed tables: fences are kept by the statements alone.
drop trigger if exists fence_only_rises on palisade.resources;
-- The stream of changes is not told from shards, which give no places that only rise.
drop index if exists palisade.history_position;

-- A key is remembered with the resource that it was used for; in a transaction, with the lowest.
alter table palisade.used_keys add column resource text collate "C";
update palisade.used_keys
  set resource = (select min(named.name collate "C") from pg_catalog.jsonb_object_keys(outcome) as named(name));
alter table palisade.used_keys alter column resource set not null,
  drop constraint used_keys_pkey, add constraint used_keys_pkey primary key (resource, key);
alter table palisade.fence_changes
  drop constraint fence_changes_pkey, add constraint fence_changes_pkey primary key (resource, id);

select create_distributed_table('palisade.resources', 'resource', colocate_with => 'none');
select create_distributed_table('palisade.history', 'resource', colocate_with => 'palisade.resources');
select create_distributed_table('palisade.used_keys', 'resource', colocate_with => 'palisade.resources');
select create_distributed_table('palisade.fence_changes', 'resource', colocate_with => 'palisade.resources');
