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
  Also,      \* what else the world may do: a subset of Events
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Events == {
  "second delivery", \* a write may arrive again and again: the client retries, the network delays
  "lost answers",    \* a write may be applied without the client hearing of it
  "failover"         \* the standby takes over, once
}
Rules == {
  "fence",           \* a write with a token below the stored one is refused
  "one statement",   \* the comparison and the write are one step, not a look and then a write
  "seal",            \* a holder raises the fence before its first read
  "sequence",        \* within one token the sequence number must rise
  "tombstone",       \* a delete keeps token and sequence
  "synchronous",     \* an answer waits until the standby has the write
  "heed warning",    \* a wait for the standby that was cancelled is not answered with success
  "confirm retries", \* a retry that finds its write there is not answered before the standby has it either
  "unknown stays"    \* a refusal says nothing about an earlier try whose answer was not heard
}
ASSUME Also \subseteq Events /\ Without \subseteq Rules

VARIABLES
  row,       \* what readers and writers see: token, seq, doc
  copy,      \* what the standby has of it
  commit,    \* "none", or the write that holds the row while it waits for the standby
  primary,   \* FALSE once the standby has taken over
  base,      \* per client: the document it read
  step,      \* per client: "start", "reading", "ready" (it has read), "sent", "over" (it was refused)
  made,      \* per client: how many of its updates were answered with success
  requests,  \* writes on their way; with "second delivery" they stay there and may arrive again
  looked,    \* writes that passed the comparison, if that is a step of its own
  promised,  \* the highest token of a write or seal that was answered with success
  answered,  \* updates answered with success that nobody who had seen them removed
  unheard,   \* updates that were applied without the client hearing of it
  denied,    \* updates that a client takes for not stored, because it was refused
  stale      \* a write was accepted after a higher token had been promised

vars == <<row, copy, commit, primary, base, step, made, requests, looked, promised, answered, unheard, denied, stale>>

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
  /\ unheard = {}
  /\ denied = {}
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
  /\ made' = [made EXCEPT ![c] = k]
  /\ step' = [step EXCEPT ![c] = "ready"]
  /\ base' = IF k = 0 THEN [base EXCEPT ![c] = doc] ELSE base
  /\ unheard' = unheard

\* It does not hear. What it deletes may be gone all the same.
Silence(c, k) ==
  /\ answered' = Seen(c, k)
  /\ unheard' = IF k = 0 THEN unheard ELSE unheard \cup {10 * c + k}
  /\ UNCHANGED <<promised, made, step, base>>

Waits == "failover" \in Also /\ primary /\ "synchronous" \notin Without

\* The client is still waiting to hear about this: its seal, or its latest write.
Listens(r) == IF r.seq = 0 THEN step[r.token] = "start" ELSE step[r.token] = "sent" /\ r.seq = made[r.token] + 1

\* The answer is on its way, and is heard or not.
Answers(r, doc) ==
  \/ Listens(r) /\ Success(r.token, r.seq, doc)
  \/ (~Listens(r) \/ "lost answers" \in Also) /\ Silence(r.token, r.seq)

\* An accepted write or seal becomes the row: at once, or after the standby has it.
Apply(r) ==
  /\ stale' = (stale \/ (r.seq > 0 /\ r.token < promised))
  /\ IF Waits
       THEN /\ commit' = [row |-> After(r), by |-> r.token, seq |-> r.seq, there |-> FALSE]
            /\ answered' = Seen(r.token, r.seq)
            /\ UNCHANGED <<row, promised, made, step, base, unheard>>
       ELSE /\ row' = After(r)
            /\ Answers(r, row.doc)
            /\ commit' = commit
  /\ UNCHANGED <<copy, primary, denied>>

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
  /\ UNCHANGED <<row, copy, commit, primary, made, requests, looked, promised, answered, unheard, denied, stale>>

Send(c) ==
  /\ step[c] = "ready"
  /\ made[c] < Updates
  /\ requests' = requests \cup {[token |-> c, seq |-> made[c] + 1, doc |-> Written(c, made[c] + 1)]}
  /\ step' = [step EXCEPT ![c] = "sent"]
  /\ UNCHANGED <<row, copy, commit, primary, base, made, looked, promised, answered, unheard, denied, stale>>

Delivered(r) == requests' = IF "second delivery" \in Also THEN requests ELSE requests \ {r}

\* The one statement: compare and write, on the row version that it has locked.
Write(r) ==
  /\ "one statement" \notin Without
  /\ commit = None
  /\ Passes(r)
  /\ Apply(r)
  /\ Delivered(r)
  /\ UNCHANGED looked

\* A retry finds that its write is there already.
Repeat(r) ==
  /\ commit = None
  /\ Listens(r)
  /\ r.token = row.token /\ r.seq = row.seq
  /\ (Waits => copy = row \/ "confirm retries" \in Without)
  /\ Success(r.token, r.seq, row.doc)
  /\ UNCHANGED <<row, copy, commit, primary, requests, looked, denied, stale>>

\* A client that is refused stops trying. If each of its tries was answered, nothing of this write is on its way any more, and it takes the write for not
\* stored; otherwise it must not conclude anything.
Refuse(r) ==
  /\ Listens(r)
  /\ commit = None /\ r.token < row.token /\ ~Passes(r)
  /\ step' = [step EXCEPT ![r.token] = "over"]
  /\ \/ /\ 10 * r.token + r.seq \notin unheard
        /\ denied' = denied \cup {10 * r.token + r.seq}
        /\ requests' = requests \ {r}
     \/ /\ denied' = IF "unknown stays" \in Without THEN denied \cup {10 * r.token + r.seq} ELSE denied
        /\ requests' = requests
  /\ UNCHANGED <<row, copy, commit, primary, base, made, looked, promised, answered, unheard, stale>>

\* The same in two steps, where "one statement" is left out.
Look(r) ==
  /\ "one statement" \in Without
  /\ Passes(r)
  /\ looked' = looked \cup {r}
  /\ Delivered(r)
  /\ UNCHANGED <<row, copy, commit, primary, base, step, made, promised, answered, unheard, denied, stale>>

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
  /\ UNCHANGED <<row, primary, base, step, made, requests, looked, promised, answered, unheard, denied, stale>>

Answer ==
  /\ commit.there
  /\ row' = commit.row
  /\ Answers([token |-> commit.by, seq |-> commit.seq], commit.row.doc)
  /\ commit' = None
  /\ UNCHANGED <<copy, primary, requests, looked, denied, stale>>

\* Somebody cancels the wait: the write is visible here, perhaps not on the standby, and Postgres reports success with a warning.
CancelWait ==
  /\ commit /= None
  /\ row' = commit.row
  /\ IF "heed warning" \in Without
       THEN Answers([token |-> commit.by, seq |-> commit.seq], commit.row.doc)
       ELSE Silence(commit.by, commit.seq)
  /\ commit' = None
  /\ UNCHANGED <<copy, primary, requests, looked, denied, stale>>

CatchUp ==
  /\ "failover" \in Also
  /\ primary
  /\ commit = None
  /\ copy /= row
  /\ copy' = row
  /\ UNCHANGED <<row, commit, primary, base, step, made, requests, looked, promised, answered, unheard, denied, stale>>

\* A write that was waiting is lost, or is there and nobody will ever answer it.
Failover ==
  /\ "failover" \in Also
  /\ primary
  /\ primary' = FALSE
  /\ row' = copy
  /\ unheard' = IF commit.seq = 0 THEN unheard ELSE unheard \cup {10 * commit.by + commit.seq}
  /\ commit' = None
  /\ UNCHANGED <<copy, base, step, made, requests, looked, promised, answered, denied, stale>>

Next ==
  \/ \E c \in Clients : Seal(c)
  \/ \E c \in Clients : Read(c)
  \/ \E c \in Clients : Send(c)
  \/ \E r \in requests : Write(r)
  \/ \E r \in requests : Repeat(r)
  \/ \E r \in requests : Refuse(r)
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

\* G3: a write that was answered with a refusal is not stored.
RefusedMeansAbsent == denied \cap row.doc = {}

\* G3, and the reason for it all: an update answered with success is in the document until somebody who has seen it removes it.
NothingLost == answered \subseteq row.doc
====
