---- MODULE exclusion ----
(***************************************************************************)
(* That no two leases are valid at the same time, which is the only        *)
(* promise that rests on clocks: on their running at about the same rate,  *)
(* never on what they show. Time passes in ticks; what is stored is how    *)
(* many are left, so there is no end of time in this model.                *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Nodes,     \* 1..n
  Quorum,
  Attempts,  \* 1..k, in the order in which they begin
  Ttl,       \* in ticks
  Drift,     \* a key may run out so many ticks early by the holder's clock
  Wipes,     \* how many memories are lost, in all
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "from the start",      \* a lease counts from the moment before its first question left, not from the last answer
  "allow for drift",     \* a lease ends earlier than its keys by as much as the clocks may differ
  "outwait the leases",  \* a node that lost its memory is not admitted before every lease it may have granted is over
  "release own key",     \* a release deletes only the key of its own attempt
  "extend own key"       \* an extension renews only the key of its own attempt, it never takes one over
}
ASSUME Without \subseteq Rules

VARIABLES
  owner,   \* per node: whose key it holds, or 0
  left,    \* per node: in how many ticks the key expires
  wait,    \* per node: in how many ticks it may be admitted; Ttl + 1: it is
  phase,   \* per attempt: "new", "asking" (its grant round), "leased", "extending", "over"
  age,     \* per attempt: ticks since the first question of its round left, up to Ttl
  valid,   \* per attempt: for how many ticks it believes in its lease
  vote,    \* per attempt and node: "-", "asked", "yes"
  wiped

vars == <<owner, left, wait, phase, age, valid, vote, wiped>>

In == Ttl + 1
Silent == [n \in Nodes |-> "-"]
Less(x, y) == IF x > y THEN x - y ELSE 0

Init ==
  /\ owner = [n \in Nodes |-> 0]
  /\ left = [n \in Nodes |-> 0]
  /\ wait = [n \in Nodes |-> In]
  /\ phase = [a \in Attempts |-> "new"]
  /\ age = [a \in Attempts |-> 0]
  /\ valid = [a \in Attempts |-> 0]
  /\ vote = [a \in Attempts |-> Silent]
  /\ wiped = 0

Lasts == IF "allow for drift" \in Without THEN Ttl ELSE Ttl - Drift

Begin(a) ==
  /\ phase[a] = "new"
  /\ \A b \in Attempts : b < a => phase[b] /= "new"
  /\ phase' = [phase EXCEPT ![a] = "asking"]
  /\ vote' = [vote EXCEPT ![a] = [n \in Nodes |-> "asked"]]
  /\ UNCHANGED <<owner, left, wait, age, valid, wiped>>

\* The lease is extended as long as it is valid; the question may arrive much later.
BeginExtension(a) ==
  /\ phase[a] = "leased"
  /\ valid[a] > 0
  /\ phase' = [phase EXCEPT ![a] = "extending"]
  /\ age' = [age EXCEPT ![a] = 0]
  /\ vote' = [vote EXCEPT ![a] = [n \in Nodes |-> "asked"]]
  /\ UNCHANGED <<owner, left, wait, valid, wiped>>

\* The node says yes, and the key lasts for a ttl by its own clock, which may be fast. A quorum decides at once; too late is never.
Agree(a, n) ==
  /\ \E early \in 0..Drift : left' = [left EXCEPT ![n] = Ttl - early]
  /\ owner' = [owner EXCEPT ![n] = a]
  /\ IF Cardinality({m \in Nodes : vote[a][m] = "yes"}) + 1 >= Quorum
       THEN LET lasts == IF "from the start" \in Without THEN Lasts ELSE Less(Lasts, age[a])
                longest == IF valid[a] > lasts THEN valid[a] ELSE lasts
            IN /\ valid' = [valid EXCEPT ![a] = longest]
               /\ phase' = [phase EXCEPT ![a] = IF longest > 0 THEN "leased" ELSE "over"]
               /\ vote' = [vote EXCEPT ![a] = Silent]
               /\ age' = [age EXCEPT ![a] = 0]
       ELSE /\ vote' = [vote EXCEPT ![a][n] = "yes"]
            /\ UNCHANGED <<phase, valid, age>>
  /\ UNCHANGED <<wait, wiped>>

Grant(a, n) ==
  /\ phase[a] = "asking"
  /\ vote[a][n] = "asked"
  /\ owner[n] = 0
  /\ Agree(a, n)

Extend(a, n) ==
  /\ phase[a] = "extending"
  /\ vote[a][n] = "asked"
  /\ (owner[n] = a \/ "extend own key" \in Without)
  /\ Agree(a, n)

\* The holder is done, and stops believing before its releases leave.
End(a) ==
  /\ phase[a] \in {"leased", "extending"}
  /\ phase' = [phase EXCEPT ![a] = "over"]
  /\ valid' = [valid EXCEPT ![a] = 0]
  /\ age' = [age EXCEPT ![a] = 0]
  /\ vote' = [vote EXCEPT ![a] = Silent]
  /\ UNCHANGED <<owner, left, wait, wiped>>

\* It arrives whenever it does.
Release(a, n) ==
  /\ phase[a] = "over"
  /\ owner[n] /= 0
  /\ (owner[n] = a \/ "release own key" \in Without)
  /\ owner' = [owner EXCEPT ![n] = 0]
  /\ left' = [left EXCEPT ![n] = 0]
  /\ UNCHANGED <<wait, phase, age, valid, vote, wiped>>

\* The k-th loss finds one of the first k nodes: the names are given in that order.
Wipe(n) ==
  /\ wiped < Wipes
  /\ wiped' = wiped + 1
  /\ owner' = [owner EXCEPT ![n] = 0]
  /\ left' = [left EXCEPT ![n] = 0]
  /\ wait' = [wait EXCEPT ![n] = IF "outwait the leases" \in Without THEN 0 ELSE Ttl]
  /\ UNCHANGED <<phase, age, valid, vote>>

Admit(n) ==
  /\ wait[n] = 0
  /\ wait' = [wait EXCEPT ![n] = In]
  /\ UNCHANGED <<owner, left, phase, age, valid, vote, wiped>>

Ends(a) == phase[a] \in {"leased", "extending"} /\ valid[a] <= 1

\* Keys expire; a lease that has run out is over for good.
Tick ==
  /\ owner' = [n \in Nodes |-> IF left[n] > 1 THEN owner[n] ELSE 0]
  /\ left' = [n \in Nodes |-> Less(left[n], 1)]
  /\ wait' = [n \in Nodes |-> IF wait[n] = In THEN In ELSE Less(wait[n], 1)]
  /\ valid' = [a \in Attempts |-> Less(valid[a], 1)]
  /\ phase' = [a \in Attempts |-> IF Ends(a) THEN "over" ELSE phase[a]]
  /\ vote' = [a \in Attempts |-> IF Ends(a) THEN Silent ELSE vote[a]]
  /\ age' = [a \in Attempts |-> IF Ends(a) \/ phase[a] \notin {"asking", "extending"} THEN 0
                                ELSE IF age[a] < Ttl THEN age[a] + 1 ELSE Ttl]
  /\ UNCHANGED wiped

Next ==
  \/ \E a \in Attempts : Begin(a) \/ BeginExtension(a) \/ End(a)
  \/ \E a \in Attempts : \E n \in {m \in Nodes : wait[m] = In} : Grant(a, n) \/ Extend(a, n)
  \/ \E a \in Attempts : \E n \in Nodes : Release(a, n)
  \/ \E n \in 1..(wiped + 1) : Wipe(n)
  \/ \E n \in Nodes : Admit(n)
  \/ Tick

Spec == Init /\ [][Next]_vars

\* L2
Exclusive == \A a, b \in Attempts : a < b => valid[a] = 0 \/ valid[b] = 0
====
