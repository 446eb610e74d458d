---- MODULE store ----
(***************************************************************************)
(* One resource in the fenced store, and clients that read it, pause, and  *)
(* write back what they made of it.                                        *)
(*                                                                         *)
(* Client c holds the lease with token c. All leases have been granted, in *)
(* the order of their tokens, and all but the last may have run out: each  *)
(* client still believes in its own and acts whenever it likes. That is    *)
(* what pauses, delays and late expiry add up to, so no clock is needed.   *)
(*                                                                         *)
(* A document is the set of the updates it contains; update 10c + k is the *)
(* k-th of client c. A client writes what it read plus its own updates, so *)
(* an update that is missing later was overwritten by somebody who had not *)
(* seen it.                                                                *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Clients,   \* 1..k; the number is the token
  Updates,   \* how many updates each client makes, one after the other
  Deleters,  \* clients whose first update deletes the document
  Also,      \* what the world may do, of: "second delivery", "failover"
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "fence",           \* a write with a token below the stored one is refused
  "one statement",   \* the comparison and the write are one step, not a look and then a write
  "seal",            \* a holder raises the fence before its first read
  "sequence",        \* within one token the sequence number must rise
  "tombstone",       \* a delete keeps token and sequence
  "synchronous",     \* an answer waits until the standby has the write
  "heed warning"     \* a wait for the standby that was cancelled is not answered with success
}
ASSUME Without \subseteq Rules

VARIABLES
  row,       \* what readers and writers see: token, seq, doc
  copy,      \* what the standby has of it
  commit,    \* "none", or the write that holds the row while it waits for the standby
  primary,   \* FALSE once the standby has taken over
  base,      \* per client: the document it read
  step,      \* per client: "start", "reading", "ready" (it has read), "sent"
  made,      \* per client: how many of its updates were answered with success
  requests,  \* writes on their way; with "second delivery" they stay there and may arrive again
  looked,    \* writes that passed the comparison, if that is a step of its own
  promised,  \* the highest token of a write or seal that was answered with success
  answered,  \* updates answered with success that nobody who had seen them removed
  stale      \* a write was accepted after a higher token had been promised

vars == <<row, copy, commit, primary, base, step, made, requests, looked, promised, answered, stale>>

Absent == [token |-> 0, seq |-> 0, doc |-> {}]
None == [row |-> Absent, by |-> 0, seq |-> 0, there |-> FALSE]
Larger(x, y) == IF x > y THEN x ELSE y

Init ==
  /\ row = Absent
  /\ copy = Absent
  /\ commit = None
  /\ primary = TRUE
  /\ base = [c \in Clients |-> {}]
  /\ step = [c \in Clients |-> IF "seal" \in Without THEN "reading" ELSE "start"]
  /\ made = [c \in Clients |-> 0]
  /\ requests = {}
  /\ looked = {}
  /\ promised = 0
  /\ answered = {}
  /\ stale = FALSE

Deletes(c, k) == c \in Deleters /\ k = 1

\* What client c's k-th write leaves of the document.
Written(c, k) == IF Deletes(c, k) THEN {} ELSE base[c] \cup {10 * c + i : i \in 1..k}

\* Request r against the stored row. Seals are seq 0. Equal tokens are accepted: one holder writes many times.
Passes(r) ==
  \/ "fence" \in Without
  \/ r.token > row.token
  \/ r.token = row.token /\ (r.seq = 0 \/ r.seq > row.seq \/ "sequence" \in Without)

After(r) ==
  IF r.seq = 0 THEN [row EXCEPT !.token = r.token, !.seq = IF r.token > row.token THEN 0 ELSE row.seq]
  ELSE IF Deletes(r.token, r.seq) /\ "tombstone" \in Without THEN Absent
  ELSE r

\* What was answered with success and may not be missing once client c's k-th write is applied: it may delete what it has seen.
Seen(c, k) == IF Deletes(c, k) THEN answered \ base[c] ELSE answered

\* The client hears of success: this is what the store has promised, and may not forget.
Success(c, k, doc) ==
  /\ promised' = Larger(promised, c)
  /\ answered' = Seen(c, k) \cup (IF k = 0 \/ Deletes(c, k) THEN {} ELSE {10 * c + k})
  /\ made' = IF k > made[c] THEN [made EXCEPT ![c] = k] ELSE made
  /\ step' = [step EXCEPT ![c] = IF k >= made[c] THEN "ready" ELSE @]
  /\ base' = IF k = 0 THEN [base EXCEPT ![c] = doc] ELSE base

Waits == "failover" \in Also /\ primary /\ "synchronous" \notin Without

\* An accepted write or seal becomes the row: at once, or after the standby has it.
Apply(r) ==
  /\ stale' = (stale \/ (r.seq > 0 /\ r.token < promised))
  /\ IF Waits
       THEN /\ commit' = [row |-> After(r), by |-> r.token, seq |-> r.seq, there |-> FALSE]
            /\ answered' = Seen(r.token, r.seq)
            /\ UNCHANGED <<row, promised, made, step, base>>
       ELSE /\ row' = After(r)
            /\ Success(r.token, r.seq, row.doc)
            /\ UNCHANGED commit
  /\ UNCHANGED <<copy, primary>>

Seal(c) ==
  /\ step[c] = "start"
  /\ commit = None
  /\ Passes([token |-> c, seq |-> 0, doc |-> {}])
  /\ Apply([token |-> c, seq |-> 0, doc |-> {}])
  /\ UNCHANGED <<requests, looked>>

\* A read outside any fence: only where the seal, which returns the document, is left out.
Read(c) ==
  /\ step[c] = "reading"
  /\ base' = [base EXCEPT ![c] = row.doc]
  /\ step' = [step EXCEPT ![c] = "ready"]
  /\ UNCHANGED <<row, copy, commit, primary, made, requests, looked, promised, answered, stale>>

Send(c) ==
  /\ step[c] = "ready"
  /\ made[c] < Updates
  /\ requests' = requests \cup {[token |-> c, seq |-> made[c] + 1, doc |-> Written(c, made[c] + 1)]}
  /\ step' = [step EXCEPT ![c] = "sent"]
  /\ UNCHANGED <<row, copy, commit, primary, base, made, looked, promised, answered, stale>>

Delivered(r) == requests' = IF "second delivery" \in Also THEN requests ELSE requests \ {r}

\* The one statement: compare and write, on the row version that it has locked.
Write(r) ==
  /\ "one statement" \notin Without
  /\ commit = None
  /\ Passes(r)
  /\ Apply(r)
  /\ Delivered(r)
  /\ UNCHANGED looked

\* The same in two steps, where "one statement" is left out.
Look(r) ==
  /\ "one statement" \in Without
  /\ Passes(r)
  /\ looked' = looked \cup {r}
  /\ Delivered(r)
  /\ UNCHANGED <<row, copy, commit, primary, base, step, made, promised, answered, stale>>

WriteLooked(r) ==
  /\ commit = None
  /\ Apply(r)
  /\ looked' = looked \ {r}
  /\ UNCHANGED requests

\* Replication and failover. A synchronous write holds the row, invisible, until the standby has it.
Replicate ==
  /\ commit /= None
  /\ ~commit.there
  /\ copy' = commit.row
  /\ commit' = [commit EXCEPT !.there = TRUE]
  /\ UNCHANGED <<row, primary, base, step, made, requests, looked, promised, answered, stale>>

Answer ==
  /\ commit.there
  /\ row' = commit.row
  /\ Success(commit.by, commit.seq, commit.row.doc)
  /\ commit' = None
  /\ UNCHANGED <<copy, primary, requests, looked, stale>>

\* Somebody cancels the wait: the write is visible here, perhaps not on the standby, and Postgres reports success with a warning.
CancelWait ==
  /\ commit /= None
  /\ row' = commit.row
  /\ IF "heed warning" \in Without
       THEN Success(commit.by, commit.seq, commit.row.doc)
       ELSE UNCHANGED <<promised, answered, made, step, base>>
  /\ commit' = None
  /\ UNCHANGED <<copy, primary, requests, looked, stale>>

CatchUp ==
  /\ "failover" \in Also
  /\ primary
  /\ commit = None
  /\ copy /= row
  /\ copy' = row
  /\ UNCHANGED <<row, commit, primary, base, step, made, requests, looked, promised, answered, stale>>

Failover ==
  /\ "failover" \in Also
  /\ primary
  /\ primary' = FALSE
  /\ row' = copy
  /\ commit' = None
  /\ UNCHANGED <<copy, base, step, made, requests, looked, promised, answered, stale>>

Next ==
  \/ \E c \in Clients : Seal(c)
  \/ \E c \in Clients : Read(c)
  \/ \E c \in Clients : Send(c)
  \/ \E r \in requests : Write(r)
  \/ \E r \in requests : Look(r)
  \/ \E r \in looked : WriteLooked(r)
  \/ Replicate
  \/ Answer
  \/ CancelWait
  \/ CatchUp
  \/ Failover

Spec == Init /\ [][Next]_vars

\* G1: once a write or seal with token T was answered with success, no write with a token below T changes the resource.
Fence == ~stale

\* G3, and the reason for it all: an update answered with success is in the document until somebody who has seen it removes it.
NothingLost == answered \subseteq row.doc
====
