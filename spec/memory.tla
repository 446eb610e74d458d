---- MODULE memory ----
(***************************************************************************)
(* What one node keeps so that the token it offers for a resource is above *)
(* every token it has stored for it, although counters expire, one floor   *)
(* serves all resources, and the whole memory may be replaced by an older  *)
(* one. In tokens.tla all of this is the single number `stored`.           *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Resources,
  Top,       \* tokens go up to here
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

Rules == {
  "floor",               \* a resource without a counter continues above the floor, which covers every resource
  "base",                \* counters from before the last admission are not believed where they are below its floor
  "heal keeps the rest", \* planting a key with its token does not hide a higher counter, floor or base
  "seal below counter"   \* a seal is refused where more than its token is stored
}
ASSUME Without \subseteq Rules

VARIABLES
  counter,   \* per resource; 0: expired, or never there
  floor,     \* the highest token stored for any resource
  base,      \* the floor of the last admission
  backup,    \* an older memory: counter, floor, base
  admitted,
  granted,   \* per resource: the token of the last grant, whose owner may still seal; 0: none
  due        \* per resource: the highest token that was stored here, or that the fleet must not forget

vars == <<counter, floor, base, backup, admitted, granted, due>>

Larger(x, y) == IF x > y THEN x ELSE y
Max(set) == CHOOSE x \in set : \A y \in set : y <= x
Zero == [r \in Resources |-> 0]

\* The highest token that may have been stored for r, as far as this memory tells.
Stored(r) ==
  LET own == IF counter[r] > 0 \/ "floor" \in Without THEN counter[r] ELSE floor
  IN IF "base" \in Without THEN own ELSE Larger(own, base)

Init ==
  /\ counter = Zero
  /\ floor = 0
  /\ base = 0
  /\ backup = [counter |-> Zero, floor |-> 0, base |-> 0]
  /\ admitted = TRUE
  /\ granted = Zero
  /\ due = Zero

Store(rs, t) ==
  /\ admitted
  /\ counter' = [r \in Resources |-> IF r \in rs THEN t ELSE counter[r]]
  /\ floor' = Larger(floor, t)
  /\ due' = [r \in Resources |-> IF r \in rs THEN Larger(due[r], t) ELSE due[r]]
  /\ UNCHANGED <<base, backup, admitted>>

Above(rs) == Max({Stored(r) : r \in rs}) + 1

\* One or several resources in one lease: all of them get one token, the next above those of all of them.
Grant(rs) ==
  /\ Above(rs) <= Top
  /\ Store(rs, Above(rs))
  /\ granted' = [r \in Resources |-> IF r \in rs THEN Above(rs) ELSE granted[r]]

\* The owner of the last grant seals a token that is no smaller.
Seal(r, t) ==
  /\ granted[r] > 0
  /\ t >= granted[r]
  /\ (t >= Stored(r) \/ "seal below counter" \in Without)
  /\ Store({r}, t)
  /\ UNCHANGED granted

\* A lease that is older than what the node has stored since may plant its key here. Raising a counter for any other reason stores the same.
Heal(r, t) ==
  /\ Store({r}, IF "heal keeps the rest" \in Without THEN Larger(t, counter[r]) ELSE Larger(t, Stored(r)))
  /\ UNCHANGED granted

ExpireCounter(r) ==
  /\ admitted
  /\ counter[r] > 0
  /\ counter' = [counter EXCEPT ![r] = 0]
  /\ UNCHANGED <<floor, base, backup, admitted, granted, due>>

BackUp ==
  /\ admitted
  /\ backup' = [counter |-> counter, floor |-> floor, base |-> base]
  /\ UNCHANGED <<counter, floor, base, admitted, granted, due>>

\* What the node has forgotten is not forgotten by the fleet: `due` stays.
Restore ==
  /\ admitted' = FALSE
  /\ counter' = backup.counter
  /\ floor' = backup.floor
  /\ base' = backup.base
  /\ granted' = Zero
  /\ UNCHANGED <<backup, due>>

\* With the highest floor of enough other nodes, which covers what is due.
Admit(f) ==
  /\ ~admitted
  /\ \A r \in Resources : f >= due[r]
  /\ admitted' = TRUE
  /\ floor' = Larger(floor, f)
  /\ base' = Larger(floor, f)
  /\ UNCHANGED <<counter, backup, granted, due>>

Next ==
  \/ \E rs \in (SUBSET Resources) \ {{}} : Grant(rs)
  \/ \E r \in Resources : \E t \in 1..Top : Seal(r, t)
  \/ \E r \in Resources : \E t \in 1..Top : Heal(r, t)
  \/ \E r \in Resources : ExpireCounter(r)
  \/ BackUp
  \/ Restore
  \/ \E f \in 0..Top : Admit(f)

Spec == Init /\ [][Next]_vars

\* T1, T2, as far as one node can keep them: the next grant is above everything that was stored.
NothingForgotten == admitted => \A r \in Resources : Stored(r) >= due[r]
====
