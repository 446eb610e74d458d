-- Moving a fence by hand, with who and why on record. Nothing else may ever lower a token.

-- raise: up to the token, also for a resource never seen. lower: down to the token, and the sequence starts again. Anything else changes nothing.
create function palisade.move_fence(direction text, resource text, token bigint, changed_by text, reason text)
  returns table (changed boolean, previous bigint) language plpgsql as $$
#variable_conflict use_column
begin
  changed := false;
  if $1 = 'raise' then
    insert into palisade.resources (resource, token, seq, rev, born, op, deleted, holder, updated_at)
      values ($2, $3, 0, 0, 0, 'seal', true, $4, now()) on conflict on constraint resources_pkey do nothing;
    changed := found;
  end if;
  if not changed then
    select stored.token into previous from palisade.resources as stored where stored.resource = $2 for update;
    changed := case $1 when 'raise' then previous < $3 when 'lower' then previous > $3 end;
    if changed then
      update palisade.resources as stored set token = $3, seq = 0, op = 'seal', expected = null, holder = $4, updated_at = now() where stored.resource = $2;
    end if;
  end if;
  if changed then
    insert into palisade.fence_changes (resource, previous_token, token, changed_by, reason) values ($2, previous, $3, $4, $5);
  end if;
  changed := coalesce(changed, false);
  return next;
end
$$;
revoke execute on function palisade.move_fence(text, text, bigint, text, text) from public;
