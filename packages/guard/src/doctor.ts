// Every way around the fences on the user's own tables, as the catalogs of Postgres show them. Open
// ways let stale writes pass now; the others belong to roles that could make one.
import { type OpenTransaction, readRows } from "./statement.js";

/**
 * open: writes pass the fence, or will without anybody meaning to. privileged: these roles can go
 * past it. note: no way around, but it surprises.
 */
export type FindingKind = "open" | "privileged" | "note";

/** One way around the fences, or something that surprises. */
export interface FenceFinding {
  /** How urgent it is. */
  readonly kind: FindingKind;
  /** A short name of the way, such as `trigger_disabled`. */
  readonly way: string;
  /** Null where it concerns every fenced table. */
  readonly table: string | null;
  /** What it is and what to do about it. */
  readonly detail: string;
}

/**
 * Every way around the fences that the caller's role may see; a superuser sees all. `db` is a
 * client, a pool or an open transaction of any library that the guard takes.
 */
export async function inspectFences(db: OpenTransaction): Promise<readonly FenceFinding[]> {
  return await readRows<FenceFinding>(db, FINDINGS);
}

/** Fenced tables with their partitions and children, and login roles that are no superuser. */
const SUBJECTS = `
  fenced as (select relation, prefix, key_columns, guarded_by from palisade.fenced_tables),
  part as (select distinct fenced.relation as whole, part::oid as oid from fenced, palisade.parts_of(fenced.relation) as part),
  login as (select oid, rolname from pg_roles where rolcanlogin and not rolsuper),
  named_trigger as (select * from pg_trigger where tgname in ('palisade_guard_row', 'palisade_refuse_truncate', 'palisade_fenced_children'))`;

const TRIGGERS = `
  select 'open', 'trigger_disabled', part.oid::regclass::text,
    format('the trigger %s is %s: enable it, or fence the table again', tgname,
      case tgenabled when 'D' then 'disabled' else 'enabled for replication only' end)
  from part join named_trigger on tgrelid = part.oid where tgenabled in ('D', 'R')
  union all
  select 'open', 'part_not_fenced', part.oid::regclass::text, format('it belongs to %s and has not all of its triggers: call palisade.fence_table again', whole)
  from part where (select count(*) from named_trigger where tgrelid = part.oid and tgname <> 'palisade_fenced_children') < 2
  union all
  select 'open', 'trigger_changed', relation::text, format('%s is not what palisade.fence_table made: fence the table again', guarded_by)
  from fenced join pg_proc on pg_proc.oid = guarded_by
  where case when not exists (
    select from unnest(key_columns) as name
    left join pg_attribute on attrelid = relation and attname = name and not attisdropped
    where atttypid is null or palisade.key_text(atttypid, '') is null
  ) then prosrc <> palisade.trigger_source(relation, prefix, key_columns) else true end
  union all
  select 'note', 'function_left', null, format('its table was dropped, and pg_restore would meet it: drop function %s', oid::regprocedure)
  from pg_proc where proname ~ '^palisade_guard_[0-9a-f]{8}_' and prorettype = 'trigger'::regtype and not exists (select from pg_trigger where tgfoid = pg_proc.oid)`;

const REPLICATION_ROLE = `
  select 'open', 'session_replication_role', null::text, 'it is ' || current_setting('session_replication_role') || ' in this session: no trigger fires'
  where current_setting('session_replication_role') = 'replica'
  union all
  select 'open', 'session_replication_role', null, format('it is preset to replica for %s%s: no trigger fires in their sessions',
    case setrole when 0 then 'every role' else 'role ' || setrole::regrole end,
    case setdatabase when 0 then '' else ' in database ' || (select datname from pg_database where oid = setdatabase) end)
  from pg_db_role_setting where lower(setconfig::text) like '%session_replication_role=replica%'
    and setdatabase in (0, (select oid from pg_database where datname = current_database()))
  union all
  select 'open', 'session_replication_role', null, format('the function %s sets it to replica: no trigger fires while it runs', oid::regprocedure)
  from pg_proc where lower(proconfig::text) like '%session_replication_role=replica%'
  union all
  select 'privileged', 'session_replication_role', null, 'may switch triggers off for their session: ' || string_agg(grantee_name, ', ' order by grantee_name)
  from (
    select distinct case grantee when 0 then 'every role' else grantee::regrole::text end as grantee_name
    from pg_parameter_acl, aclexplode(paracl) where parname = 'session_replication_role' and privilege_type = 'SET'
  ) as granted having count(*) > 0
  union all
  select 'open', 'subscription', srrelid::regclass::text, format('the subscription %s writes past every trigger', subname)
  from pg_subscription_rel join pg_subscription on pg_subscription.oid = srsubid join part on part.oid = srrelid`;

const ROLES = `
  select 'privileged', 'superuser', null, 'no trigger binds them if they wish: ' || string_agg(rolname, ', ' order by rolname)
  from pg_roles where rolsuper and rolcanlogin having count(*) > 0
  union all
  select 'privileged', 'bypassrls', null, 'policies on fenced tables do not bind them, the fence does: ' || string_agg(rolname, ', ' order by rolname)
  from pg_roles where rolbypassrls and not rolsuper and rolcanlogin having count(*) > 0
  union all
  select 'privileged', 'owner', part.oid::regclass::text, format('%s owns it and may disable its triggers; so may%s', relowner::regrole, coalesce(
    (select ': ' || string_agg(rolname, ', ' order by rolname) from login where pg_has_role(login.oid, relowner, 'member') and login.oid <> relowner),
    ' no other role'))
  from part join pg_class on pg_class.oid = part.oid
  union all
  select 'privileged', 'fences_writable', null, 'may write palisade.resources itself: ' || string_agg(rolname, ', ' order by rolname)
  from login where pg_has_role(oid, (select relowner from pg_class where oid = 'palisade.resources'::regclass), 'member')
    or has_table_privilege(oid, 'palisade.resources', 'delete, truncate, trigger')
    or has_column_privilege(oid, 'palisade.resources', 'guarded_by', 'update, insert') having count(*) > 0
  union all
  select 'note', 'cascade', conrelid::regclass::text, format('%s changes its rows when %s changes: the trigger fires, so that write needs the pairs of these rows',
    conname, confrelid::regclass)
  from pg_constraint join part on part.oid = conrelid
  where contype = 'f' and conparentid = 0 and (confdeltype in ('c', 'n', 'd') or confupdtype in ('c', 'n', 'd'))`;

const FINDINGS = `
  with ${SUBJECTS}, finding (kind, way, affected, detail) as (${[TRIGGERS, REPLICATION_ROLE, ROLES].join(" union all ")})
  select kind, way, affected as table, detail from finding
  order by array_position('{open,privileged,note}'::text[], kind), way, affected nulls first, detail`;
