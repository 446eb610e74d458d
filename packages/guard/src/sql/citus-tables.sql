-- Distributes the tables of a database by the names of resources, all in one group: what a write
-- touches is on one shard of one worker. For `npx @palisade/gateway migrate --citus`, after all
-- migrations; rows that are there are moved. What is not named here stays on the coordinator.
set local citus.multi_shard_modify_mode = 'sequential';

-- Citus has no row triggers on distributed tables: fences are kept by the statements alone.
drop trigger if exists fence_only_rises on palisade.resources;

select create_distributed_table('palisade.resources', 'resource', colocate_with => 'none');
select create_distributed_table('palisade.history', 'resource', colocate_with => 'palisade.resources');
select create_distributed_table('palisade.fence_changes', 'resource', colocate_with => 'palisade.resources');
