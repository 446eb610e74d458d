-- psql "$DATABASE_URL" -v resource="$RESOURCE" -v token="$FENCING_TOKEN" -v id=7 -v amount=10 -f withdraw.sql
\set ON_ERROR_STOP on
begin;
select palisade.guard(:'resource', :token);
update accounts set balance = balance - :amount where id = :id;
commit;
