// The schema `palisade` as it stands in a migrated database, as SQL to read: released migrations
// are never edited, so a function that was made four times stands in four of them.
import type pg from "pg";
import { migrations } from "../../src/store/migrations.generated.js";

const HEAD = `-- Generated from a migrated database by \`npm test -- store-schema -u\`; nothing executes this file. What
-- the migrations come to: tables, views and functions in force, each under the names of the migrations
-- that made and changed it, where the reasons stand. On Citus the functions of citus/functions.sql take
-- the place of those with the same name. Who may do what: grants.sql.
`;

interface Found {
  readonly name: string;
  readonly text: string;
}

/** Function bodies stand as they were written; the rest as Postgres has it. */
export async function schemaInForce(client: pg.Client): Promise<string> {
  const found = async (text: string): Promise<readonly Found[]> => (await client.query<Found>(text)).rows;
  const views = await found(VIEWS);
  const objects = [...(await found(TABLES)), ...views.map(({ name }) => ({ name, text: viewText(name) })), ...(await found(FUNCTIONS))];
  return [HEAD, ...objects.map(({ name, text }) => `-- ${migrationsOf(name).join(", ")}\n${text}\n`)].join("\n");
}

/** Versions of Postgres write a view each in their own way, so it stands here as it was made. */
function viewText(name: string): string {
  const making = new RegExp(`^create (?:or replace )?view palisade\\.${name} as[^;]*;`, "gm");
  const text = migrations.flatMap((migration) => migration.text.match(making) ?? []).at(-1);
  if (text === undefined) throw new Error(`no migration makes the view ${name}`);
  return text;
}

/** One table is made before the first migration, to remember which were applied. */
function migrationsOf(name: string): readonly string[] {
  const changing = new RegExp(
    `^(?:create|alter|drop)\\b.*?\\b(?:table|view|function|(?:index|trigger) .* on) (?:if not exists )?palisade\\.${name}\\b`,
    "m",
  );
  const changes = migrations.filter(({ text }) => changing.test(text)).map((migration) => migration.name);
  return changes.length > 0 ? changes : ["migrate.ts"];
}

const TABLES = `
  select relname as name, concat_ws(E'\\n', format(E'create table palisade.%s (\\n  %s\\n)%s;', relname, parts.text,
    ' with (' || array_to_string(reloptions, ', ') || ')'), (
      select string_agg(pg_get_indexdef(indexrelid) || ';', E'\\n' order by indexrelid::regclass::text) from pg_index
      where indrelid = tables.oid and not exists (select from pg_constraint where conindid = indexrelid)
    ), (
      select string_agg(pg_get_triggerdef(pg_trigger.oid) || ';', E'\\n' order by tgname) from pg_trigger
      where tgrelid = tables.oid and not tgisinternal
    )) as text
  from pg_class as tables cross join lateral (
    select string_agg(part, E',\\n  ' order by place, number, part) as text from (
      select 1 as place, attnum as number, concat_ws(' ', attname, format_type(atttypid, atttypmod),
        case when attcollation not in (0, 100) then 'collate ' || attcollation::regcollation end,
        case when attidentity = 'a' then 'generated always as identity' end,
        'default ' || pg_get_expr(adbin, adrelid), case when attnotnull then 'not null' end) as part
      from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
      where attrelid = tables.oid and attnum > 0 and not attisdropped
      union all
      select 2, 0, format('constraint %s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
      where conrelid = tables.oid and contype in ('p', 'u', 'c', 'f')
    ) as parts
  ) as parts
  where relnamespace = 'palisade'::regnamespace and relkind = 'r' order by relname`;

const VIEWS =
  "select relname as name, '' as text from pg_class where relnamespace = 'palisade'::regnamespace and relkind = 'v' order by relname";

/** What everybody may call says nothing of it. */
const FUNCTIONS = `
  select proname as name, rtrim(pg_get_functiondef(oid), E'\\n') || ';' ||
    case when has_function_privilege('public', oid, 'execute') then ''
      else format(E'\\nrevoke execute on function %s from public;', oid::regprocedure) end as text
  from pg_proc where pronamespace = 'palisade'::regnamespace order by proname, pg_get_function_identity_arguments(oid)`;
