---- MODULE tokens ----
(***************************************************************************)
(* How a lease gets its token from a quorum of independent nodes, and how  *)
(* a node that lost its memory is believed again. One resource; attempts   *)
(* to acquire it; no clock of any kind. What clocks do in the real system  *)
(* is here a step that may happen at any moment, or never.                 *)
(*                                                                         *)
(* Three things are left out of the state because they change nothing:     *)
(*                                                                         *)
(*  - The expiry of a key. A grant may find any key expired, so it simply  *)
(*    takes over; a seal that would come after the expiry is one that is   *)
(*    not delivered. With "expiry" in Also, keys expire in steps of their  *)
(*    own instead; the verdicts are the same.                              *)
(*  - Answers on their way, lost answers, refusals and nodes that cannot   *)
(*    be reached. Whatever an attempt fails to hear, it chooses without;   *)
(*    it may choose from any set of answers. Release is an early expiry,   *)
(*    giving up is taking no further step.                                 *)
(*  - The epochs themselves. An epoch is only ever compared with the one   *)
(*    that was noted when the attempt began, so all that matters is        *)
(*    whether it has changed since: see vote.                              *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Nodes,      \* 1..n
  Quorum,     \* of how many nodes a lease needs the votes
  Attempts,   \* 1..k, in the order in which they begin: their names are interchangeable
  Admitters,  \* lockers that may be busy admitting a node at the same time, or may have died half-way
  Mishaps,    \* how many memories are lost and grants delivered twice, in all
  Ceiling,    \* how high "other raises" may raise a counter
  Also,       \* what else the world may do: a subset of Events
  Without     \* rules left out: a subset of Rules; the protocol leaves out none

Events == {
  "expiry",           \* keys expire in steps of their own
  "lost memory",      \* a node loses everything
  "old backup",       \* it comes back with an older memory instead, and may believe in anybody's key again
  "second delivery",  \* a grant arrives a second time, after the key of the first was gone
  "heal",             \* a lease plants its key, with its token, on nodes that lack it
  "other raises"      \* a counter rises for other reasons: forced release, read repair, a lease of several resources
}
Rules == {
  "granted alike",            \* without a seal round only nodes that granted exactly the token count as storing it
  "seal round",               \* a token that no quorum granted is stored on a quorum before it is used
  "seal by owner",            \* a node seals only for the attempt that owns the key
  "seal what was chosen",     \* only a node whose grant took part in choosing the token is asked to seal it
  "seal below counter",       \* a node does not seal a token below its counter
  "seal in epoch",            \* a seal counts only in the epoch that was noted
  "quarantine",               \* a node that may have forgotten does not vote before it is admitted
  "enough visits",            \* so many admitted nodes are visited that every quorum contains one of them
  "visit admitted",           \* a node that is not admitted itself cannot be visited
  "visit renews epoch",       \* reading a floor and renewing that node's epoch is one step
  "admission renews epoch",   \* so that an old backup does not bring back an old epoch
  "admission names the life"  \* an admission that was begun in one life of the node ends with it
}
ASSUME Also \subseteq Events /\ Without \subseteq Rules

VARIABLES
  stored,    \* per node: the highest token it has stored, and so its floor
  owner,     \* per node: the attempt whose key it holds or held last, or 0
  admitted,  \* the nodes whose memory is believed
  phase,     \* per attempt: "new", "granting", "sealing", "leased"
  token,     \* per attempt: the token it has chosen
  bar,       \* per attempt: the highest token of a lease that was granted before the attempt began
  vote,      \* per attempt and node: where things stand between the two, see below
  given,     \* per attempt and node: the token it was granted there, while it has not chosen
  task,      \* per admitter: the node it is admitting, the nodes it has visited, the highest floor it saw
  mishaps    \* how many there were

(* A vote is
     "-"        nothing is on its way, or nothing that comes back can count
     "asked"    the grant is on its way, and the node's epoch is still the one that was noted
     "late"     the grant is on its way, but will not count: the epoch has moved, or the token is chosen
     "granted"  it has granted in the noted epoch, which has not moved
     "fixed"    it has granted in the noted epoch, which has moved since: a seal there would not count
     "sealing"  the seal is on its way
     "kept"     the chosen token is stored there, in the noted epoch                                   *)

vars == <<stored, owner, admitted, phase, token, bar, vote, given, task, mishaps>>

Majority == Cardinality(Nodes) \div 2 + 1
Visits == IF "enough visits" \in Without THEN Cardinality(Nodes) - Majority ELSE Cardinality(Nodes) - Majority + 1
Max(set) == CHOOSE x \in set : \A y \in set : y <= x
Idle == [node |-> 0, seen |-> {}, floor |-> 0]

Init ==
  /\ stored = [n \in Nodes |-> 0]
  /\ owner = [n \in Nodes |-> 0]
  /\ admitted = Nodes
  /\ phase = [a \in Attempts |-> "new"]
  /\ token = [a \in Attempts |-> 0]
  /\ bar = [a \in Attempts |-> 0]
  /\ vote = [a \in Attempts |-> [n \in Nodes |-> "-"]]
  /\ given = [a \in Attempts |-> [n \in Nodes |-> 0]]
  /\ task = [d \in Admitters |-> Idle]
  /\ mishaps = 0

(***************************** The attempt *********************************)

\* Epochs are noted, then the questions leave. A node that is not admitted has no epoch to note.
Begin(a) ==
  /\ phase[a] = "new"
  /\ \A b \in Attempts : b < a => phase[b] /= "new"
  /\ phase' = [phase EXCEPT ![a] = "granting"]
  /\ bar' = [bar EXCEPT ![a] = Max({0} \cup {IF phase[b] = "leased" THEN token[b] ELSE 0 : b \in Attempts})]
  /\ vote' = [vote EXCEPT ![a] = [n \in Nodes |->
       IF n \in admitted \/ "admission renews epoch" \in Without THEN "asked" ELSE "late"]]
  /\ UNCHANGED <<stored, owner, admitted, token, given, task, mishaps>>

\* Node n gives its key, and its next token, to attempt a: it was free, or has just expired.
Take(a, n) ==
  /\ "expiry" \in Also => owner[n] = 0
  /\ stored' = [stored EXCEPT ![n] = @ + 1]
  /\ owner' = [owner EXCEPT ![n] = a]
  /\ UNCHANGED <<admitted, phase, token, bar, task>>

Grant(a, n) ==
  /\ vote[a][n] = "asked"
  /\ IF phase[a] = "granting"
       THEN /\ vote' = [vote EXCEPT ![a][n] = "granted"]
            /\ given' = [given EXCEPT ![a][n] = stored[n] + 1]
       ELSE /\ vote' = [vote EXCEPT ![a][n] = "sealing"]  \* without "seal what was chosen"
            /\ given' = given
  /\ Take(a, n)
  /\ UNCHANGED mishaps

\* It takes the key and a token all the same; nobody counts it.
LateGrant(a, n) ==
  /\ vote[a][n] = "late"
  /\ vote' = [vote EXCEPT ![a][n] = "-"]
  /\ Take(a, n)
  /\ UNCHANGED <<given, mishaps>>

SecondGrant(a, n) ==
  /\ mishaps < Mishaps
  /\ vote[a][n] \in {"granted", "fixed", "sealing", "kept"}
  /\ owner[n] /= a
  /\ mishaps' = mishaps + 1
  /\ Take(a, n)
  /\ UNCHANGED <<vote, given>>

Expire(n) ==
  /\ owner[n] /= 0
  /\ owner' = [owner EXCEPT ![n] = 0]
  /\ UNCHANGED <<stored, admitted, phase, token, bar, vote, given, task, mishaps>>

\* The token is one that a quorum granted, or the highest of the grants that were heard. They may be any quorum, so it may be any granted token that a quorum
\* did not exceed; what exceeds it might as well not have been heard.
ChooseToken(a, T) ==
  LET exact == {n \in Nodes : given[a][n] = T \/ ("granted alike" \in Without /\ given[a][n] > T)}
      heard == {n \in Nodes : given[a][n] \in 1..T} \cup exact
      done == Cardinality(exact) >= Quorum \/ "seal round" \in Without
      now(n) == CASE vote[a][n] = "late" -> "late"
                  [] vote[a][n] = "asked" -> IF ~done /\ "seal what was chosen" \in Without THEN "asked" ELSE "late"
                  [] ~done /\ n \in exact -> "kept"
                  [] ~done /\ n \in heard /\ vote[a][n] = "granted" -> "sealing"
                  [] OTHER -> "-"
  IN /\ Cardinality(heard) >= Quorum
     /\ token' = [token EXCEPT ![a] = T]
     /\ phase' = [phase EXCEPT ![a] = IF done THEN "leased" ELSE "sealing"]
     /\ vote' = [vote EXCEPT ![a] = [n \in Nodes |-> now(n)]]
     /\ given' = [given EXCEPT ![a] = [n \in Nodes |-> 0]]
     /\ UNCHANGED <<stored, owner, admitted, bar, task, mishaps>>

Choose(a) ==
  /\ Cardinality({n \in Nodes : given[a][n] > 0}) >= Quorum
  /\ \E T \in {given[a][n] : n \in Nodes} \ {0} : ChooseToken(a, T)

Seal(a, n) ==
  /\ vote[a][n] = "sealing"
  /\ (owner[n] = a \/ "seal by owner" \in Without)
  /\ (stored[n] <= token[a] \/ "seal below counter" \in Without)
  /\ stored' = [stored EXCEPT ![n] = IF @ > token[a] THEN @ ELSE token[a]]
  /\ IF Cardinality({m \in Nodes : vote[a][m] = "kept"}) + 1 >= Quorum
       THEN /\ phase' = [phase EXCEPT ![a] = "leased"]
            /\ vote' = [vote EXCEPT ![a] = [m \in Nodes |-> IF vote[a][m] = "late" THEN "late" ELSE "-"]]
       ELSE /\ phase' = phase
            /\ vote' = [vote EXCEPT ![a][n] = "kept"]
  /\ UNCHANGED <<owner, admitted, token, bar, given, task, mishaps>>

Heal(a, n) ==
  /\ phase[a] = "leased"
  /\ owner' = [owner EXCEPT ![n] = a]
  /\ stored' = [stored EXCEPT ![n] = IF @ > token[a] THEN @ ELSE token[a]]
  /\ UNCHANGED <<admitted, phase, token, bar, vote, given, task, mishaps>>

Raise(n) ==
  /\ stored[n] < Ceiling
  /\ stored' = [stored EXCEPT ![n] = @ + 1]
  /\ UNCHANGED <<owner, admitted, phase, token, bar, vote, given, task, mishaps>>

(*************************** Loss and admission ****************************)

\* What a new epoch of node n does to the votes that are still to come from there.
Moved(n) == [a \in Attempts |->
  CASE vote[a][n] = "asked" -> [vote[a] EXCEPT ![n] = "late"]
    [] vote[a][n] = "granted" /\ "seal in epoch" \notin Without -> [vote[a] EXCEPT ![n] = "fixed"]
    [] vote[a][n] = "sealing" /\ "seal in epoch" \notin Without -> [vote[a] EXCEPT ![n] = "-"]
    [] OTHER -> vote[a]]

\* The node answers nobody until it is admitted, so the new epoch that the admission gives it may as well begin here. The k-th mishap finds one of the first k
\* nodes: until something is lost the nodes are interchangeable, and they are numbered in the order in which it happens to them.
Wipe(n) ==
  /\ mishaps < Mishaps
  /\ n <= mishaps + 1
  /\ mishaps' = mishaps + 1
  /\ \E s \in (IF "old backup" \in Also THEN 0..stored[n] ELSE {0}) : stored' = [stored EXCEPT ![n] = s]
  /\ \E o \in (IF "old backup" \in Also THEN {0} \cup {a \in Attempts : phase[a] /= "new"} ELSE {0}) :
       owner' = [owner EXCEPT ![n] = o]
  /\ admitted' = IF "quarantine" \in Without THEN admitted ELSE admitted \ {n}
  /\ vote' = IF "admission renews epoch" \in Without THEN vote ELSE Moved(n)
  /\ task' = IF "admission names the life" \in Without THEN task
             ELSE [d \in Admitters |-> IF task[d].node = n THEN Idle ELSE task[d]]
  /\ UNCHANGED <<phase, token, bar, given>>

\* Admitter d, on behalf of node n, reads the floor of node m and renews m's epoch in the same breath.
Visit(d, n, m) ==
  /\ IF task[d].node = 0 THEN \A e \in Admitters : e < d => task[e].node /= 0 ELSE task[d].node = n
  /\ (m \in admitted \/ "visit admitted" \in Without)
  /\ m \notin task[d].seen
  /\ task' = [task EXCEPT ![d] =
       [node |-> n, seen |-> @.seen \cup {m}, floor |-> IF @.floor > stored[m] THEN @.floor ELSE stored[m]]]
  /\ vote' = IF "visit renews epoch" \in Without THEN vote ELSE Moved(m)
  /\ UNCHANGED <<stored, owner, admitted, phase, token, bar, given, mishaps>>

Admit(d) ==
  /\ task[d].node /= 0
  /\ Cardinality(task[d].seen) >= Visits
  /\ stored' = [stored EXCEPT ![task[d].node] = IF @ > task[d].floor THEN @ ELSE task[d].floor]
  /\ admitted' = admitted \cup {task[d].node}
  /\ task' = [task EXCEPT ![d] = Idle]
  /\ UNCHANGED <<owner, phase, token, bar, vote, given, mishaps>>

When(event, set) == IF event \in Also THEN set ELSE {}

Next ==
  \/ \E a \in Attempts : Begin(a)
  \/ \E a \in Attempts : \E n \in {m \in admitted : vote[a][m] = "asked"} : Grant(a, n)
  \/ \E a \in Attempts : \E n \in {m \in admitted : vote[a][m] = "late"} : LateGrant(a, n)
  \/ \E a \in {b \in Attempts : phase[b] = "granting"} : Choose(a)
  \/ \E a \in {b \in Attempts : phase[b] = "sealing"} : \E n \in admitted : Seal(a, n)
  \/ \E n \in When("expiry", Nodes) : Expire(n)
  \/ \E a \in When("second delivery", Attempts) : \E n \in admitted : SecondGrant(a, n)
  \/ \E a \in When("heal", Attempts) : \E n \in admitted : Heal(a, n)
  \/ \E n \in When("other raises", admitted) : Raise(n)
  \/ \E n \in When("lost memory", Nodes) : Wipe(n)
  \/ \E n \in Nodes \ admitted : \E d \in Admitters : \E m \in Nodes \ {n} : Visit(d, n, m)
  \/ \E d \in Admitters : Admit(d)

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

\* T1: a lease that was granted before the attempt began has a smaller token.
Order == \A a \in Attempts : phase[a] = "leased" => token[a] > bar[a]

\* T2: no two leases carry the same token.
Unique == \A a \in Attempts : phase[a] = "leased" =>
  \A b \in Attempts : phase[b] = "leased" /\ a < b => token[a] /= token[b]

\* Why T1 holds for every attempt still to come, however many: no majority of the nodes that vote is ignorant of the token of any lease.
Remembered == \A a \in Attempts : phase[a] = "leased" =>
  Cardinality({n \in admitted : stored[n] < token[a]}) < Majority
====
