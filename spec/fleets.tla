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
  AtFirst,   \* how long leases of each fleet may last at the beginning: one function for each case that matters
  Longest,   \* and how long they may be allowed to last
  MayBeLost, \* any of these are gone for good at some time, and the operator says so
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "own list",          \* a fleet grants what belongs to it by the list that it has agreed on
  "others first",      \* a fleet to which something moves gets the list when the others have it
  "outwait",           \* and when the leases are over that these granted before
  "carry the floor",   \* and its floor is raised to theirs first
  "one at a time",     \* a list differs by one fleet from each list that it takes the place of
  "further to fewer",  \* or by more where something moves to the fleet, and all of the list are in the one that it has
  "in its own list",   \* something moves to a fleet that is in the next list, and not in the one that it has
  "as it was planned", \* a fleet takes the list only if it still has the list for which that was planned
  "tell the longest",  \* before a fleet grants longer leases, or gets the list in which it is, the others are told how long its leases may last
  "of the list told",  \* and grants them only if it still has the list of which every fleet was told
  "carry the longest", \* a fleet to which something moves is told what the others were told
  "outwait the lost"   \* leases of a lost fleet are over after the longest that the others were told
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
  carried,   \* per version: the highest floor of these, then
  lost,      \* the fleets that are gone
  longest,   \* per fleet: how long its leases may last
  lasts,     \* per fleet: for how long the last one was granted
  told,      \* per fleet, and fleet that it was told of: how long the leases of that one may last
  heard,     \* per version, and fleet: the longest that the fleets in over were told, then
  raising    \* per fleet: for which version longer leases are wanted, or 0

lengths == <<lost, longest, lasts, told, heard, raising>>
vars == <<rank, version, floor, runs, last, sunk, planned, over, carried, lost, longest, lasts, told, heard, raising>>

Versions == 1..Len(Lists)
Changes == 2..Len(Lists)
Home(v) == IF Lists[v] = {} THEN 0 ELSE CHOOSE f \in Lists[v] : \A g \in Lists[v] : rank[f] >= rank[g]

Added(v) == Lists[v] \ Lists[Before[v]]
\* Taken away by a change that was begun at once with another: others may serve what was its own.
Away(v) == IF "in its own list" \in Without THEN {} ELSE {f \in Lists[v] \ lost : f \notin Lists[version[f]]}
Gaining(v) == Away(v) \union (IF Added(v) /= {} THEN Added(v) ELSE Lists[v])
Concerned(v) == Lists[v] \union Lists[Before[v]] \union UNION {Lists[version[f]] : f \in Lists[v] \ lost}
Others(v) == Concerned(v) \ Gaining(v)
IsStep(u, v) == Cardinality(Lists[u] \ Lists[v]) + Cardinality(Lists[v] \ Lists[u]) < 2
\* Whatever it serves by the list that it has it serves by the next one as well.
MayBeFar(v, g) == g \in Gaining(v) /\ (Lists[v] \subseteq Lists[version[g]] \/ "further to fewer" \in Without)
Max(s) == IF s = {} THEN 0 ELSE CHOOSE x \in s : \A y \in s : x >= y

\* Whoever looks carries on with the newest list that a fleet has, or makes the next one of it.
Newest == Max({version[f] : f \in Fleets \ lost})

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
  /\ lost = {}
  /\ longest \in AtFirst
  /\ lasts = [f \in Fleets |-> 1]
  /\ told = [g \in Fleets |-> [f \in Fleets |-> 1]]
  /\ heard = [v \in Versions |-> [f \in Fleets |-> 1]]
  /\ raising = [f \in Fleets |-> 0]

(******************************** Leases ***********************************)

\* By the list that the fleet has: an answer of another generation than the one in which it was asked is none.
Grant(f) ==
  /\ runs[f] = 0
  /\ f \notin lost
  /\ \E v \in IF "own list" \in Without THEN Versions ELSE {version[f]} : Home(v) = f /\ runs' = [runs EXCEPT ![f] = v]
  /\ floor' = [floor EXCEPT ![f] = IF @ < MaxToken THEN @ + 1 ELSE @]
  /\ sunk' = (sunk \/ (floor[f] < MaxToken /\ floor[f] + 1 <= last))
  /\ last' = Max({last, floor'[f]})
  /\ lasts' = [lasts EXCEPT ![f] = longest[f]]
  /\ UNCHANGED <<rank, version, planned, over, carried, lost, longest, told, heard, raising>>

\* Released, or its time is over. A renewal is the same lease: it counts only under the list in which it was asked for, so a lease is over
\* that long after its fleet has got another one.
End(f) ==
  /\ runs[f] > 0
  /\ runs' = [runs EXCEPT ![f] = 0]
  /\ UNCHANGED <<rank, version, floor, last, sunk, planned, over, carried>>
  /\ UNCHANGED lengths

(***************************** Changes *************************************)

\* Somebody reads how the fleets stand, and finds that this one may take the next list. Whoever does may stop for any time before the step.
Plan(v, f) ==
  /\ f \in Concerned(v)
  /\ version[f] < v
  /\ planned[v][f] /= version[f]
  /\ f \notin lost
  /\ Newest \in {v, Before[v]}
  /\ ((\A g \in Concerned(v) \ lost : IsStep(version[g], v) \/ MayBeFar(v, g)) \/ "one at a time" \in Without)
  /\ \/ f \in Others(v) /\ (f \notin Lists[v] \/ Lists[version[f]] \subseteq Lists[v] \/ "one at a time" \in Without)
     \/ f \in Gaining(v) /\ (Others(v) \subseteq over[v] \/ "others first" \in Without)
  /\ planned' = [planned EXCEPT ![v] = [@ EXCEPT ![f] = version[f]]]
  /\ told' = [g \in Fleets |-> IF g \in Lists[v] \ lost /\ f \in Gaining(v) /\ "tell the longest" \notin Without
                               THEN [told[g] EXCEPT ![f] = Max({@, longest[f]})] ELSE told[g]]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, over, carried, lost, longest, lasts, heard, raising>>

\* Noticed once, and believed for ever: it may have another list by the time it is used.
Outwaited(v, f) ==
  /\ version[f] = v
  /\ f \notin lost
  /\ f \in Others(v) \ over[v]
  /\ (runs[f] = 0 \/ runs[f] = v \/ "outwait" \in Without)
  /\ over' = [over EXCEPT ![v] = @ \union {f}]
  /\ carried' = [carried EXCEPT ![v] = Max({@, floor[f]})]
  /\ heard' = [heard EXCEPT ![v] = [h \in Fleets |-> Max({@[h], told[f][h]})]]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned, lost, longest, lasts, told, raising>>

Step(v, f) ==
  /\ planned[v][f] > 0
  /\ f \notin lost
  /\ (planned[v][f] = version[f] \/ "as it was planned" \in Without)
  /\ version' = [version EXCEPT ![f] = v]
  /\ floor' = [floor EXCEPT ![f] = IF f \in Gaining(v) /\ "carry the floor" \notin Without THEN Max({@, carried[v]}) ELSE @]
  /\ planned' = [planned EXCEPT ![v] = [@ EXCEPT ![f] = 0]]
  /\ told' = IF f \in Gaining(v) /\ "carry the longest" \notin Without
             THEN [told EXCEPT ![f] = [h \in Fleets |-> Max({@[h], heard[v][h]})]] ELSE told
  /\ UNCHANGED <<rank, runs, last, sunk, over, carried, lost, longest, lasts, heard, raising>>

(************************ How long leases last *****************************)

\* Somebody wants longer leases of a fleet, and looks which list it has. It matters only of one that will be lost.
BeginLonger(f) ==
  /\ f \in MayBeLost
  /\ longest[f] < Longest
  /\ raising[f] /= version[f]
  /\ raising' = [raising EXCEPT ![f] = version[f]]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned, over, carried, lost, longest, lasts, told, heard>>

ToBeTold(f) == {f} \union Lists[raising[f]]

Tell(f, g) ==
  /\ raising[f] > 0
  /\ g \in ToBeTold(f) \ lost
  /\ told[g][f] < Longest
  /\ told' = [told EXCEPT ![g] = [@ EXCEPT ![f] = Longest]]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned, over, carried, lost, longest, lasts, heard, raising>>

Longer(f) ==
  /\ raising[f] > 0
  /\ f \notin lost
  /\ ((\A g \in ToBeTold(f) : told[g][f] >= Longest) \/ "tell the longest" \in Without)
  /\ (raising[f] = version[f] \/ "of the list told" \in Without)
  /\ longest' = [longest EXCEPT ![f] = Longest]
  /\ raising' = [raising EXCEPT ![f] = 0]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned, over, carried, lost, lasts, told, heard>>

(*************************** A fleet is lost *******************************)

Lose(f) ==
  /\ f \in MayBeLost \ lost
  /\ lost' = lost \union {f}
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned, over, carried, longest, lasts, told, heard, raising>>

Left(v) == Lists[v] \ lost
Known(v, f) == Max({longest[g] : g \in Left(v)} \union (IF "outwait the lost" \in Without THEN {} ELSE {told[g][f] : g \in Left(v)}))

\* A lease of its that lasts longer than what is waited for may still run. Its tokens are below the floor of the clock. A change that was
\* begun is carried on without it; none is begun but the one that takes it away.
LostOutwaited(v, f) ==
  /\ f \in lost
  /\ f \in Others(v) \ over[v]
  /\ (Newest = v \/ (Newest = Before[v] /\ f \notin Lists[v]))
  /\ (runs[f] = 0 \/ lasts[f] > Known(v, f))
  /\ over' = [over EXCEPT ![v] = @ \union {f}]
  /\ carried' = [carried EXCEPT ![v] = Max({@, floor[f]})]
  /\ heard' = [heard EXCEPT ![v] = [h \in Fleets |-> Max({@[h]} \union {told[g][h] : g \in Left(v)})]]
  /\ UNCHANGED <<rank, version, floor, runs, last, sunk, planned, lost, longest, lasts, told, raising>>

Next ==
  \/ \E f \in Fleets : Grant(f) \/ End(f) \/ BeginLonger(f) \/ Longer(f) \/ Lose(f)
  \/ \E f \in Fleets : \E g \in Fleets : Tell(f, g)
  \/ \E v \in Changes : \E f \in Fleets : LostOutwaited(v, f)
  \/ \E v \in Changes : \E f \in Fleets : Plan(v, f) \/ Outwaited(v, f) \/ Step(v, f)

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

\* L2: no two fleets have a lease of the resource that runs.
Exclusive == \A f \in Fleets : \A g \in Fleets : f /= g => runs[f] = 0 \/ runs[g] = 0

\* F1: no two fleets would grant it.
OneHome == \A f \in Fleets \ lost : \A g \in Fleets \ lost : f /= g => ~(Home(version[f]) = f /\ Home(version[g]) = g)

\* T1, T2: each token is above all that were given before.
Rising == ~sunk
====
