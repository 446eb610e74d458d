---- MODULE members ----
(***************************************************************************)
(* How the set of nodes changes while leases are taken: two sets must      *)
(* never both be counted, what was granted under the old one is not        *)
(* forgotten under the new one, and whoever stops half-way leaves nothing  *)
(* that another cannot finish. A generation is one set of nodes; the next  *)
(* one is agreed upon by a majority of the present one, in two rounds as   *)
(* in Paxos, and opened in a third. One lease; losses of memory.           *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Nodes,     \* all that are ever members
  First,     \* the members of generation 1
  Changers,  \* 1..k: each tries one change, with its number as its ballot
  Wishes,    \* per changer: which sets it would have
  Leases,    \* 0: none is taken
  Losses,    \* how many memories are lost
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "one at a time",            \* a set differs from the one before it by one member added, taken away or replaced
  "count own generation",     \* a vote counts only if the node votes in the generation that the attempt began in
  "votes of one epoch", \* a vote counts only in the epoch of the node that the attempt has noted
  "ask one epoch",      \* a node promises and accepts only in the epoch that the changer has noted
  "keep the promise",         \* a node accepts only under the ballot that it has promised last
  "majority of the old",      \* a set is opened only when a majority of the set before it has accepted it
  "carry on what was begun",  \* a changer that hears of an accepted set proposes that one, not its own
  "accepting closes",         \* a node that has accepted the next set does not vote until it is opened
  "floor as it closes",       \* the floor that the next generation begins with is read when a node closes
  "raise the floor",          \* a member that enters a generation begins above that floor
  "outwait a generation",     \* no set is accepted while a lease of the generation before the present one runs
  "outwait the replaced",     \* who takes a member's place does not vote while a lease of an earlier generation runs
  "newcomer is rebuilt",      \* a newcomer votes when it has read the floors of enough members of its generation
  "new in one run"            \* a newcomer has nothing to outwait only in the run of its server in which it became a member
}
ASSUME Without \subseteq Rules

VARIABLES
  gen,       \* per node: the generation it votes in; 0: none, since it is new or has forgotten
  set,       \* per node: the members of that generation, as it was told
  promise,   \* per node: the highest ballot it has promised for the next generation
  ballot,    \* per node: the ballot under which it has accepted a next set, or 0
  next,      \* per node: that set
  knows,     \* the nodes whose floor is not below the token of the attempt
  holds,     \* the nodes that hold the key of the attempt
  votes,     \* the nodes whose votes the attempt counts
  began,     \* the generation the attempt began in; 0: it has not begun
  within,    \* its members
  moved,     \* the nodes whose answers it does not count any more
  given,     \* whether it got the lease
  runs,      \* whether its time, which counts from its beginning, is not over
  phase,     \* per changer: "new", "asking", "telling", "opening"
  base,      \* per changer: the generation it starts from
  from,      \* per changer: its members
  heard,     \* per changer: the nodes that promised
  highest,   \* per changer: the highest ballot it heard of
  value,     \* per changer: the set it proposes
  agreed,    \* per changer: the nodes that accepted
  floor,     \* per changer: whether the highest floor it read is not below the attempt's token
  stale,     \* per changer: the nodes whose answers do not count any more
  lost       \* how many memories were lost

vars == <<gen, set, promise, ballot, next, knows, holds, votes, began, within, moved, given, runs, phase, base, from, heard, highest, value, agreed, floor, stale, lost>>

attempt == <<votes, began, within, moved, given, runs>>
changes == <<phase, base, from, heard, highest, value, agreed, floor, stale>>

Majority(s) == Cardinality(s) \div 2 + 1
Enough(s) == Cardinality(s) - Majority(s) + 1
Open(n) == gen[n] > 0 /\ (ballot[n] = 0 \/ "accepting closes" \in Without)

\* The nodes that vote in the generation of n.
Counted(n) == {m \in set[n] : Open(m) /\ gen[m] = gen[n] /\ set[m] = set[n]}

IsStep(s, t) == Cardinality(s \ t) < 2 /\ Cardinality(t \ s) < 2 /\ s \cap t /= {}

Init ==
  /\ gen = [n \in Nodes |-> IF n \in First THEN 1 ELSE 0]
  /\ set = [n \in Nodes |-> IF n \in First THEN First ELSE {}]
  /\ promise = [n \in Nodes |-> 0]
  /\ ballot = [n \in Nodes |-> 0]
  /\ next = [n \in Nodes |-> {}]
  /\ knows = {} /\ holds = {} /\ votes = {}
  /\ began = 0 /\ within = {} /\ moved = {}
  /\ given = FALSE /\ runs = FALSE
  /\ phase = [d \in Changers |-> "new"]
  /\ base = [d \in Changers |-> 0]
  /\ from = [d \in Changers |-> {}]
  /\ heard = [d \in Changers |-> {}]
  /\ highest = [d \in Changers |-> 0]
  /\ value = [d \in Changers |-> {}]
  /\ agreed = [d \in Changers |-> {}]
  /\ floor = [d \in Changers |-> FALSE]
  /\ stale = [d \in Changers |-> {}]
  /\ lost = 0

(***************************** The attempt *********************************)

\* With the generation that some node told it.
Begin(n) ==
  /\ began = 0
  /\ Leases > 0
  /\ Open(n)
  /\ began' = gen[n]
  /\ within' = set[n]
  /\ runs' = TRUE
  /\ UNCHANGED <<gen, set, promise, ballot, next, knows, holds, votes, moved, given, lost>>
  /\ UNCHANGED changes

Own(n) == gen[n] = began \/ "count own generation" \in Without
Noted(n) == n \notin moved \/ "votes of one epoch" \in Without

Vote(n) ==
  /\ began > 0
  /\ n \in within
  /\ Open(n)
  /\ n \notin votes
  /\ ~given
  /\ knows' = knows \union {n}
  /\ holds' = holds \union {n}
  /\ votes' = IF Own(n) /\ Noted(n) THEN votes \union {n} ELSE votes
  /\ given' = (Cardinality(votes') >= Majority(within))
  /\ UNCHANGED <<gen, set, promise, ballot, next, began, within, moved, runs, lost>>
  /\ UNCHANGED changes

\* Its time is over, and so is that of its keys. It may still be told its token, which no clock takes part in.
Expire ==
  /\ runs
  /\ runs' = FALSE
  /\ holds' = {}
  /\ UNCHANGED <<gen, set, promise, ballot, next, knows, votes, began, within, moved, given, lost>>
  /\ UNCHANGED changes

(****************************** The change *********************************)

Start(d, n) ==
  /\ phase[d] = "new"
  /\ gen[n] > 0
  /\ phase' = [phase EXCEPT ![d] = "asking"]
  /\ base' = [base EXCEPT ![d] = gen[n]]
  /\ from' = [from EXCEPT ![d] = set[n]]
  /\ UNCHANGED <<gen, set, promise, ballot, next, knows, holds, lost, heard, highest, value, agreed, floor, stale>>
  /\ UNCHANGED attempt

Counts(d, n) == /\ n \in from[d]
                /\ gen[n] = base[d]
                /\ (n \notin stale[d] \/ "ask one epoch" \in Without)

Promise(d, n) ==
  /\ phase[d] = "asking"
  /\ Counts(d, n)
  /\ n \notin heard[d]
  /\ promise[n] < d
  /\ promise' = [promise EXCEPT ![n] = d]
  /\ heard' = [heard EXCEPT ![d] = @ \union {n}]
  /\ LET better == ballot[n] > highest[d] /\ "carry on what was begun" \notin Without
     IN /\ highest' = [highest EXCEPT ![d] = IF better THEN ballot[n] ELSE @]
        /\ value' = [value EXCEPT ![d] = IF better THEN next[n] ELSE @]
  /\ floor' = IF "floor as it closes" \in Without THEN [floor EXCEPT ![d] = @ \/ n \in knows] ELSE floor
  /\ UNCHANGED <<gen, set, ballot, next, knows, holds, lost, phase, base, from, agreed, stale>>
  /\ UNCHANGED attempt

Propose(d, wish) ==
  /\ phase[d] = "asking"
  /\ (IsStep(from[d], wish) \/ "one at a time" \in Without)
  /\ Cardinality(heard[d]) >= Majority(from[d])
  /\ value' = [value EXCEPT ![d] = IF highest[d] > 0 THEN @ ELSE wish]
  /\ phase' = [phase EXCEPT ![d] = "telling"]
  /\ UNCHANGED <<gen, set, promise, ballot, next, knows, holds, lost, base, from, heard, highest, agreed, floor, stale>>
  /\ UNCHANGED attempt

\* Every lease that began in an earlier generation than this one must be over.
Accept(d, n) ==
  /\ phase[d] = "telling"
  /\ Counts(d, n)
  /\ n \in heard[d]
  /\ n \notin agreed[d]
  /\ (promise[n] = d \/ "keep the promise" \in Without)
  /\ (~runs \/ began >= base[d] \/ "outwait a generation" \in Without)
  /\ ballot' = [ballot EXCEPT ![n] = d]
  /\ next' = [next EXCEPT ![n] = value[d]]
  /\ agreed' = [agreed EXCEPT ![d] = @ \union {n}]
  /\ floor' = IF "floor as it closes" \in Without THEN floor ELSE [floor EXCEPT ![d] = @ \/ n \in knows]
  /\ UNCHANGED <<gen, set, promise, knows, holds, lost, phase, base, from, heard, highest, value, stale>>
  /\ UNCHANGED attempt

Decide(d) ==
  /\ phase[d] = "telling"
  /\ Cardinality(agreed[d]) >= (IF "majority of the old" \in Without THEN 1 ELSE Majority(from[d]))
  /\ phase' = [phase EXCEPT ![d] = "opening"]
  /\ UNCHANGED <<gen, set, promise, ballot, next, knows, holds, lost, base, from, heard, highest, value, agreed, floor, stale>>
  /\ UNCHANGED attempt

\* A member of both sets enters the next generation, closed or not, at any time.
Enter(d, n) ==
  /\ phase[d] = "opening"
  /\ n \in from[d] \cap value[d]
  /\ gen[n] = base[d]
  /\ gen' = [gen EXCEPT ![n] = base[d] + 1]
  /\ set' = [set EXCEPT ![n] = value[d]]
  /\ promise' = [promise EXCEPT ![n] = 0]
  /\ ballot' = [ballot EXCEPT ![n] = 0]
  /\ next' = [next EXCEPT ![n] = {}]
  /\ knows' = IF floor[d] /\ "raise the floor" \notin Without THEN knows \union {n} ELSE knows
  /\ UNCHANGED <<holds, lost>>
  /\ UNCHANGED attempt
  /\ UNCHANGED changes

(*************************** Loss and admission ****************************)

\* All of it; or a newcomer goes back to its disk of the time before its first admission, where it looks as if it had never voted.
Lose(n) ==
  /\ lost < Losses
  /\ gen[n] > 0
  /\ lost' = lost + 1
  /\ gen' = [gen EXCEPT ![n] = 0]
  /\ set' = [set EXCEPT ![n] = {}]
  /\ promise' = [promise EXCEPT ![n] = 0]
  /\ ballot' = [ballot EXCEPT ![n] = 0]
  /\ next' = [next EXCEPT ![n] = {}]
  /\ knows' = knows \ {n}
  /\ holds' = holds \ {n}
  /\ moved' = moved \union {n}
  /\ stale' = [d \in Changers |-> IF phase[d] = "new" THEN stale[d] ELSE stale[d] \union {n}]
  /\ UNCHANGED <<votes, began, within, given, runs, phase, base, from, heard, highest, value, agreed, floor>>

\* From enough members of one generation, all of which are visited: tokens.tla has its steps. It waits until the leases it may have granted are over, and those
\* of earlier generations, in which another may have had its place; where the set has grown, none had.
Admit(n, m, visits) ==
  /\ Cardinality(visits) = (IF "newcomer is rebuilt" \in Without THEN 1 ELSE Enough(set[m]))
  /\ (n \in votes => ~runs \/ (n \notin First /\ "new in one run" \in Without))
  /\ ((runs => began = gen[m]) \/ n \in First \/ Cardinality(set[m]) > Cardinality(First) \/ "outwait the replaced" \in Without)
  /\ gen' = [gen EXCEPT ![n] = gen[m]]
  /\ set' = [set EXCEPT ![n] = set[m]]
  /\ knows' = IF visits \cap knows = {} \/ "newcomer is rebuilt" \in Without THEN knows ELSE knows \union {n}
  /\ moved' = IF began > 0 THEN moved \union visits \union {n} ELSE moved
  /\ stale' = [d \in Changers |-> IF phase[d] = "new" THEN stale[d] ELSE stale[d] \union visits \union {n}]
  /\ UNCHANGED <<promise, ballot, next, holds, lost, votes, began, within, given, runs, phase, base, from, heard, highest, value, agreed, floor>>

Next ==
  \/ \E n \in Nodes : Begin(n) \/ Vote(n) \/ Lose(n)
  \/ Expire
  \/ \E d \in Changers : Decide(d)
  \/ \E d \in Changers : \E n \in Nodes : Start(d, n) \/ Promise(d, n) \/ Accept(d, n) \/ Enter(d, n)
  \/ \E d \in Changers : \E wish \in Wishes[d] : Propose(d, wish)
  \/ \E n \in {k \in Nodes : gen[k] = 0} : \E m \in {k \in Nodes : Open(k) /\ n \in set[k]} : \E visits \in SUBSET Counted(m) : Admit(n, m, visits)

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

IsQuorum(n) == Open(n) /\ Cardinality(Counted(n)) >= Majority(set[n])

\* M1: a generation is one set of nodes.
Agreed == \A n \in Nodes : \A m \in Nodes : (gen[n] > 0 /\ gen[n] = gen[m]) => set[n] = set[m]

\* M1: two sets are never both counted.
OneSet == \A n \in Nodes : \A m \in Nodes : (IsQuorum(n) /\ IsQuorum(m)) => (gen[n] = gen[m] /\ set[n] = set[m])

\* T1, T2: no quorum is ignorant of the token of the lease.
Remembered == given => \A n \in Nodes : Open(n) => Cardinality(Counted(n) \ knows) < Majority(set[n])

\* L2: while the lease runs, no quorum is free of its key.
Exclusive == given /\ runs => \A n \in Nodes : Open(n) => Cardinality(Counted(n) \ holds) < Majority(set[n])
====
