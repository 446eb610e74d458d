-- Runs with gateways from 0009 on.
-- The tokens of a new fleet of the lock start at 100 times the Unix milliseconds: up to which token a transaction on own tables may raise a fence follows. To be applied
-- before the first locker of this version founds a fleet; the bound of 0004 would refuse its tokens (PLS03).

create or replace function palisade.refuse_malformed(resource text, token bigint, seq bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if coalesce(octet_length($1), 0) not between 1 and 512 then
    raise exception 'the name of a resource has 1 to 512 bytes' using errcode = 'PLS03';
  end if;
  if coalesce($2, 0) not between 1 and 999999999999999 then
    raise exception 'the fencing token % is not an integer between 1 and 999999999999999', coalesce($2::text, 'null') using errcode = 'PLS03';
  end if;
  if $3 not between 1 and 999999999999999 then
    raise exception 'the sequence number % is not an integer between 1 and 999999999999999', $3 using errcode = 'PLS03';
  end if;
  -- The lock starts at 100 times the Unix time in milliseconds and counts leases, so no lease would pass such a fence before the year 2100: a mistake or an attack.
  -- Where an operator has moved the fence that far, the lock goes on from there.
  if $2 > greatest(410244480000000, 100000000000000 + palisade.fence_of($1)) then
    raise exception 'the fencing token % for % is beyond all that the lock issues before the year 2100', $2, $1 using errcode = 'PLS03';
  end if;
end
$$;

-- As in 0010, with the bound above.
create or replace function palisade.guard(resource text, token bigint, seq bigint default null, holder text default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  known record;
begin
  if coalesce(octet_length($1), 0) not between 1 and 512 or coalesce($2, 0) not between 1 and 410244480000000 or $3 not between 1 and 999999999999999 then
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
