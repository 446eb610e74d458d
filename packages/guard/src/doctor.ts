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
  fenced as (select relation, prefix, key_columns from palisade.fenced_tables),
  -- A table that lost the triggers of its rows still has the one of truncate: to drop a column of its key takes them along.
  part as (
    select fenced.relation as whole, part::oid as oid from fenced, palisade.parts_of(fenced.relation) as part
    union select tgrelid, tgrelid from pg_trigger where tgname = 'palisade_refuse_truncate'
      and not exists (select from fenced, palisade.parts_of(fenced.relation) as part where part = tgrelid)
  ),
  login as (select oid, rolname from pg_roles where rolcanlogin and not rolsuper),
  named_trigger as (
    select * from pg_trigger where tgname like 'palisade_guard_%' or tgname in ('palisade_refuse_truncate', 'palisade_fenced_children')
  )`;

const TRIGGERS = `
  select 'open', 'trigger_disabled', part.oid::regclass::text,
    format('the trigger %s is %s: enable it, or fence the table again', tgname,
      case tgenabled when 'D' then 'disabled' else 'enabled for replication only' end)
  from part join named_trigger on tgrelid = part.oid where tgenabled in ('D', 'R')
  union all
  select 'open', 'part_not_fenced', part.oid::regclass::text, format('it has not all of the triggers that fence %s: call palisade.fence_table again', whole)
  from part where (select count(*) from named_trigger where tgrelid = part.oid and tgname <> 'palisade_fenced_children') < 4
  union all
  select 'open', 'trigger_changed', part.oid::regclass::text,
    format('%s: not what palisade.fence_table makes: fence the table again', string_agg(tgname, ', ' order by tgname))
  from part join fenced on relation = whole join named_trigger on tgrelid = part.oid
  where tgname like 'palisade_guard_%'
    and not palisade.is_guard_trigger(named_trigger.oid, substr(tgname, 16), part.oid, whole, prefix, key_columns)
  group by part.oid`;

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
