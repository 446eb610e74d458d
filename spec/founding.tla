---- MODULE founding ----
(***************************************************************************)
(* How a fleet begins, while several lockers look at it at once and nodes  *)
(* lose their memory: a node that has forgotten what the fleet granted     *)
(* must not be believed as if the fleet were only beginning.               *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Nodes,
  Founders,
  Majority,
  Losses,    \* how often a memory is lost
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "look again",  \* a founder has seen all nodes a second time, as it saw them first, before it admits any
  "nonce"        \* an admission takes effect in the memory that was seen, and in no later one
}
ASSUME Without \subseteq Rules

VARIABLES
  memory,    \* per node: which one it has by now
  admitted,
  knows,     \* the nodes that remember the token of the lease that was given
  given,     \* whether a lease was given
  seen,      \* per founder and node: the memory in which it was seen unadmitted; 0: not yet
  again,     \* per founder: the nodes that it has seen a second time
  losses

vars == <<memory, admitted, knows, given, seen, again, losses>>

Nobody == [n \in Nodes |-> 0]

Init ==
  /\ memory = [n \in Nodes |-> 1]
  /\ admitted = {}
  /\ knows = {}
  /\ given = FALSE
  /\ seen = [f \in Founders |-> Nobody]
  /\ again = [f \in Founders |-> {}]
  /\ losses = 0

SeenAll(f) == \A n \in Nodes : seen[f][n] > 0

\* One founder is one try. They are numbered as they begin.
Look(f, n) ==
  /\ (f = 1 \/ seen[f - 1] /= Nobody)
  /\ n \notin admitted
  /\ seen[f][n] = 0
  /\ seen' = [seen EXCEPT ![f][n] = memory[n]]
  /\ UNCHANGED <<memory, admitted, knows, given, again, losses>>

LookAgain(f, n) ==
  /\ SeenAll(f)
  /\ n \notin admitted
  /\ n \notin again[f]
  /\ seen[f][n] = memory[n]
  /\ again' = [again EXCEPT ![f] = again[f] \union {n}]
  /\ UNCHANGED <<memory, admitted, knows, given, seen, losses>>

\* Nothing is asked of the others: where a fleet begins there is nothing to remember.
Found(f, n) ==
  /\ SeenAll(f)
  /\ (again[f] = Nodes \/ "look again" \in Without)
  /\ n \notin admitted
  /\ (seen[f][n] = memory[n] \/ "nonce" \in Without)
  /\ admitted' = admitted \union {n}
  /\ UNCHANGED <<memory, knows, given, seen, again, losses>>

Lease(q) ==
  /\ ~given
  /\ q \subseteq admitted
  /\ Cardinality(q) = Majority
  /\ given' = TRUE
  /\ knows' = q
  /\ UNCHANGED <<memory, admitted, seen, again, losses>>

\* Of a fleet that has given a lease, never so many at a time that no majority of memories is left.
Lose(n) ==
  /\ losses < Losses
  /\ (given => Cardinality({m \in Nodes : m = n \/ (memory[m] > 1 /\ m \notin admitted)}) <= Cardinality(Nodes) - Majority)
  /\ losses' = losses + 1
  /\ memory' = [memory EXCEPT ![n] = @ + 1]
  /\ admitted' = admitted \ {n}
  /\ knows' = knows \ {n}
  /\ UNCHANGED <<given, seen, again>>

\* The ordinary way back; tokens.tla has its steps.
Rebuild(n, visits) ==
  /\ n \notin admitted
  /\ visits \subseteq admitted
  /\ Cardinality(visits) = Cardinality(Nodes) - Majority + 1
  /\ admitted' = admitted \union {n}
  /\ knows' = IF \E v \in visits : v \in knows THEN knows \union {n} ELSE knows
  /\ UNCHANGED <<memory, given, seen, again, losses>>

Next ==
  \/ \E f \in Founders : \E n \in Nodes : Look(f, n) \/ LookAgain(f, n) \/ Found(f, n)
  \/ \E q \in SUBSET Nodes : Lease(q)
  \/ \E n \in Nodes : Lose(n)
  \/ \E n \in Nodes : \E visits \in SUBSET Nodes : Rebuild(n, visits)

Spec == Init /\ [][Next]_vars

\* T1, T2: no majority of the nodes that vote is ignorant of the token of the lease. L2 falls with the same step: who forgot the token forgot the key.
Remembered == given => Cardinality(admitted \ knows) < Majority
====
