---- MODULE pairs ----
(***************************************************************************)
(* Transactions on tables of the user's own. Each resource has a fence and *)
(* one guarded row; a row is the set of the updates it contains.           *)
(*                                                                         *)
(* Client c holds the leases of the resources Leases[c], each with token   *)
(* c. All leases have been granted, in the order of their tokens, and each *)
(* client still believes in its own. In one transaction it proves its      *)
(* pairs, reads, and writes every row that it wants to, back with its own  *)
(* update. A pair is proved under the lock of the fence, which is kept     *)
(* until the transaction ends.                                             *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Clients,   \* 1..k; the number is the token
  Resources, \* 1..n, in the order of their names
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "fence",           \* a pair whose token is below the fence is refused
  "own pair",        \* a row is written only under the pair of its own resource
  "keep the lock",   \* the fence stays locked until the transaction ends
  "own transaction", \* a pair is good for the transaction that proved it
  "guard first",     \* what is written was read after the pairs were proved
  "by name"          \* the fences of one call are taken in the order of their names
}
ASSUME Without \subseteq Rules

VARIABLES
  fence,   \* per resource: the highest token that was proved and committed
  lock,    \* per resource: the client whose transaction has the fence locked; 0: none
  row,     \* per resource: the updates that the committed row contains
  step,    \* per client: "start" (it proves its pairs), "read", "over"
  proved,  \* per client: the resources whose pairs its transaction has proved
  seen,    \* per client and resource: what it read
  lasting, \* per client: pairs of an earlier transaction of its session
  stored,  \* updates whose commit was answered with success
  stale    \* a row was written after a higher token of its resource had been committed

vars == <<fence, lock, row, step, proved, seen, lasting, stored, stale>>

\* The first client and the last hold all resources, those between all but the first.
Leases(c) == IF c = 1 \/ \A d \in Clients : d <= c THEN Resources ELSE Resources \ {1}

Init ==
  /\ fence = [r \in Resources |-> 0]
  /\ lock = [r \in Resources |-> 0]
  /\ row = [r \in Resources |-> {}]
  /\ step = [c \in Clients |-> "start"]
  /\ proved = [c \in Clients |-> {}]
  /\ seen = [c \in Clients |-> [r \in Resources |-> {}]]
  /\ lasting = [c \in Clients |-> {}]
  /\ stored = {}
  /\ stale = FALSE

\* The next fence to take: the lowest name, or any where the rule is left out.
NextFences(c) ==
  LET open == Leases(c) \ proved[c]
  IN IF "by name" \in Without THEN open ELSE {r \in open : \A s \in open : r <= s}

\* Takes one fence; waits while another transaction has it.
Prove(c, r) ==
  /\ step[c] \in {"start", "read"}
  /\ (step[c] = "read") => ("guard first" \in Without)
  /\ r \in NextFences(c)
  /\ lock[r] = 0
  /\ (fence[r] <= c) \/ ("fence" \in Without)
  /\ proved' = [proved EXCEPT ![c] = @ \cup {r}]
  /\ lock' = [lock EXCEPT ![r] = IF "keep the lock" \in Without THEN 0 ELSE c]
  \* Without the lock the raise is seen at once; with it nobody sees it before the commit.
  /\ fence' = [fence EXCEPT ![r] = IF "keep the lock" \in Without /\ @ < c THEN c ELSE @]
  /\ UNCHANGED <<row, step, seen, lasting, stored, stale>>

\* A stale token: everything is undone.
Fail(c) ==
  /\ step[c] \in {"start", "read"}
  /\ \E r \in Leases(c) : fence[r] > c
  /\ step' = [step EXCEPT ![c] = "over"]
  /\ proved' = [proved EXCEPT ![c] = {}]
  /\ lasting' = [lasting EXCEPT ![c] = @ \cup proved[c]]
  /\ lock' = [r \in Resources |-> IF lock[r] = c THEN 0 ELSE lock[r]]
  /\ UNCHANGED <<fence, row, seen, stored, stale>>

MayWrite(c, r) ==
  \/ r \in proved[c]
  \/ "own pair" \in Without /\ proved[c] # {}
  \/ "own transaction" \in Without /\ r \in lasting[c]

\* Reads all of its rows.
Read(c) ==
  /\ step[c] = "start"
  /\ "guard first" \in Without \/ \A r \in Leases(c) : MayWrite(c, r)
  /\ seen' = [seen EXCEPT ![c] = row]
  /\ step' = [step EXCEPT ![c] = "read"]
  /\ UNCHANGED <<fence, lock, row, proved, lasting, stored, stale>>

\* Writes all of its rows and commits: the triggers have found every pair.
Commit(c) ==
  /\ step[c] = "read"
  /\ \A r \in Leases(c) : MayWrite(c, r)
  /\ row' = [r \in Resources |-> IF r \in Leases(c) THEN seen[c][r] \cup {c} ELSE row[r]]
  /\ fence' = [r \in Resources |-> IF r \in proved[c] /\ fence[r] < c THEN c ELSE fence[r]]
  /\ stale' = (stale \/ \E r \in Leases(c) : fence[r] > c)
  /\ stored' = stored \cup {c}
  /\ step' = [step EXCEPT ![c] = "over"]
  /\ proved' = [proved EXCEPT ![c] = {}]
  /\ lasting' = [lasting EXCEPT ![c] = @ \cup proved[c]]
  /\ lock' = [r \in Resources |-> IF lock[r] = c THEN 0 ELSE lock[r]]
  /\ UNCHANGED <<seen>>

\* The session's next transaction, or a pooler's next client under the same lease.
Again(c) ==
  /\ "own transaction" \in Without
  /\ step[c] = "over"
  /\ c \in stored
  /\ step' = [step EXCEPT ![c] = "start"]
  /\ UNCHANGED <<fence, lock, row, proved, seen, lasting, stored, stale>>

Next ==
  \/ \E c \in Clients : \E r \in Resources : Prove(c, r)
  \/ \E c \in Clients : Read(c)
  \/ \E c \in Clients : Commit(c)
  \/ \E c \in Clients : Fail(c)
  \/ \E c \in Clients : Again(c)

Spec == Init /\ [][Next]_vars

\* G1: no row is written under a token below one that was committed for its resource.
Fence == ~stale

\* G3, and the reason for it all: an update that was committed is in every row it was made to.
NothingLost == \A c \in stored : \A r \in Leases(c) : c \in row[r]

\* Some transaction can always go on: no two of them wait for each other.
NoDeadlock ==
  \/ \A c \in Clients : step[c] = "over"
  \/ \E c \in Clients :
       \/ step[c] = "read"
       \/ step[c] = "start" /\ (proved[c] = Leases(c) \/ (\E r \in Leases(c) : fence[r] > c) \/ (\E r \in NextFences(c) : lock[r] = 0))
====
