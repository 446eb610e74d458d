---- MODULE fleets ----
(***************************************************************************)
(* How the resources of a namespace are spread over several fleets, and    *)
(* how a fleet is added or taken away while leases are taken: one resource *)
(* must never be granted by two fleets, and its tokens must rise from one  *)
(* fleet to the next. Each fleet is one step here: that it agrees on one   *)
(* list after the other, and that votes count only under the list that was *)
(* known as they were asked for, is what members.tla shows of generations. *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences

CONSTANTS
  Fleets,    \* 1..n
  Lists,     \* the lists of fleets, by version; all fleets have the first one at the beginning
  Before,    \* per version: from which version it was made
  Ranks,     \* which fleet a resource prefers: one function for each order that matters
  MaxToken,  \* leases beyond it have no number, and only exclude each other
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "own list",          \* a fleet grants what belongs to it by the list that it has agreed on
  "others first",      \* a fleet to which something moves gets the list when the others have it
  "outwait",           \* and when the leases are over that these granted before
  "carry the floor",   \* and its floor is raised to theirs first
  "one at a time",     \* a list differs by one fleet from each list that it takes the place of
  "further to fewer",  \* or by more where something moves to the fleet, and all of the list are in the one that it has
  "in its own list",   \* something moves to a fleet that is in the next list, and not in the one that it has
  "as it was planned"  \* a fleet takes the list only if it still has the list for which that was planned
}
ASSUME Without \subseteq Rules

VARIABLES
  rank,      \* which fleet the resource prefers: the highest of a list has it
  version,   \* per fleet: the list it has agreed on
  floor,     \* per fleet: the highest token it knows of
  runs,      \* per fleet: under which version the lease was granted that runs, or 0
  last,      \* the highest token that was given
  sunk,      \* whether one was given that is not above it
  planned,   \* per version and fleet: the version it had when somebody planned this step, or 0
  over,      \* per version: the fleets that have had it when all leases granted before were over
  carried    \* per version: the highest floor of these, then

vars == <<rank, version, floor, runs, last, sunk, planned, over, carried>>

Versions == 1..Len(Lists)
Changes == 2..Len(Lists)
Home(v) == IF Lists[v] = {} THEN 0 ELSE CHOOSE f \in Lists[v] : \A g \in Lists[v] : rank[f] >= rank[g]

Added(v) == Lists[v] \ Lists[Before[v]]
\* Taken away by a change that was begun at once with another: others may serve what was its own.
Away(v) == IF "in its own list" \in Without THEN {} ELSE {f \in Lists[v] : f \notin Lists[version[f]]}
Gaining(v) == Away(v) \union (IF Added(v) /= {} THEN Added(v) ELSE Lists[v])
Concerned(v) == Lists[v] \union Lists[Before[v]] \union UNION {Lists[version[f]] : f \in Lists[v]}
Others(v) == Concerned(v) \ Gaining(v)
IsStep(u, v) == Cardinality(Lists[u] \ Lists[v]) + Cardinality(Lists[v] \ Lists[u]) < 2
\* Whatever it serves by the list that it has it serves by the next one as well.
MayBeFar(v, g) == g \in Gaining(v) /\ (Lists[v] \subseteq Lists[version[g]] \/ "further to fewer" \in Without)
Max(s) == IF s = {} THEN 0 ELSE CHOOSE x \in s : \A y \in s : x >= y

\* Whoever looks carries on with the newest list that a fleet has, or makes the next one of it.
Newest == Max({version[f] : f \in Fleets})

Init ==
  /\ rank \in Ranks
  /\ version = [f \in Fleets |-> 1]
  /\ floor = [f \in Fleets |-> 0]
  /\ runs = [f \in Fleets |-> 0]
  /\ last = 0
  /\ sunk = FALSE
  /\ planned = [v \in Versions |-> [f \in Fleets |-> 0]]
  /\ over = [v \in Versions |-> {}]
  /\ carried = [v \in Versions |-> 0]

(******************************** Leases ***********************************)

\* By the list that the fleet has: an answer of another generation than the one in which it was asked is none.
Grant(f) ==
  /\ runs[f] = 0
  /\ \E v \in IF "own list" \in Without THEN Versions ELSE {version[f]} : Home(v) = f /\ runs' = [runs EXCEPT ![f] = v]
  /\ floor' = [floor EXCEPT ![f] = IF @ < MaxToken THEN @ + 1 ELSE @]
  /\ sunk' = (sunk \/ (floor[f] < MaxToken /\ floor[f] + 1 <= last))
  /\ last' = Max({last, floor'[f]})
  /\ UNCHANGED <<rank, version, planned, over, carried>>

\* Released, or its time is over. A renewal is the same lease: it counts only under the list in which it was asked for, so a lease is over
\* that long after its fleet has got another one.
End(f) ==
  /\ runs[f] > 0
  /\ runs' = [runs EXCEPT ![f] = 0]
  /\ UNCHANGED <<rank, version, floor, last, sunk, planned, over, carried>>

(***************************** Changes *************************************)

\* Somebody reads how the fleets stand, and finds that this one may take the next list. Whoever does may stop for any time before the step.
Plan(v, f) ==
  /\ f \in Concerned(v)
  /\ version[f] < v
  /\ planned[v][f] /= version[f]
  /\ Newest \in {v, Before[v]}
  /\ ((\A g \in Concerned(v) : IsStep(version[g], v) \/ MayBeFar(v, g)) \/ "one at a time" \in Without)
  /\ \/ f \in Others(v) /\ (f \notin Lists[v] \/ Lists[version[f]] \subseteq Lists[v] \/ "one at a time" \in Without)
     \/ f \in Gaining(v) /\ (Others(v) \subseteq over[v] \/ "others first" \in Without)
  /\ planned' = [planned EXCEPT ![v] = [@ EXCEPT ![f] = version[f]]]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, over, carried>>

\* Noticed once, and believed for ever: it may have another list by the time it is used.
Outwaited(v, f) ==
  /\ version[f] = v
  /\ f \in Others(v) \ over[v]
  /\ (runs[f] = 0 \/ runs[f] = v \/ "outwait" \in Without)
  /\ over' = [over EXCEPT ![v] = @ \union {f}]
  /\ carried' = [carried EXCEPT ![v] = Max({@, floor[f]})]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned>>

Step(v, f) ==
  /\ planned[v][f] > 0
  /\ (planned[v][f] = version[f] \/ "as it was planned" \in Without)
  /\ version' = [version EXCEPT ![f] = v]
  /\ floor' = [floor EXCEPT ![f] = IF f \in Gaining(v) /\ "carry the floor" \notin Without THEN Max({@, carried[v]}) ELSE @]
  /\ planned' = [planned EXCEPT ![v] = [@ EXCEPT ![f] = 0]]
  /\ UNCHANGED <<rank, runs, last, sunk, over, carried>>

Next ==
  \/ \E f \in Fleets : Grant(f) \/ End(f)
  \/ \E v \in Changes : \E f \in Fleets : Plan(v, f) \/ Outwaited(v, f) \/ Step(v, f)

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

\* L2: no two fleets have a lease of the resource that runs.
Exclusive == \A f \in Fleets : \A g \in Fleets : f /= g => runs[f] = 0 \/ runs[g] = 0

\* F1: no two fleets would grant it.
OneHome == \A f \in Fleets : \A g \in Fleets : f /= g => ~(Home(version[f]) = f /\ Home(version[g]) = g)

\* T1, T2: each token is above all that were given before.
Rising == ~sunk
====
