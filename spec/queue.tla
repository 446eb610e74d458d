---- MODULE queue ----
(***************************************************************************)
(* A free lock with a queue belongs to the first in it. Who is refused has *)
(* a ticket in the queue of each resource that it wants; whoever makes a   *)
(* node notice that a lock is free (a release, who gives up, a claim) has  *)
(* it reserved there for the first. One that wants several is served when  *)
(* all of them are free; where it is the first in all of its queues, what  *)
(* is free of them is kept for a while: a part. Processes die, stand       *)
(* still, give up, come late, and nodes forget tickets.                    *)
(*                                                                         *)
(* What is not here: tokens (tokens.tla), and that one holds a lock        *)
(* (exclusion.tla). There is no clock. A lock runs out only when its       *)
(* holder is dead or stands still, a reservation only when nobody comes    *)
(* for it, a part only when what it waits for does not come: that another  *)
(* one runs out is a mishap. The seal round is one step. A process asks a  *)
(* node again when that has executed what it was asked before.             *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences

CONSTANTS
  Nodes,      \* 1..n
  Quorum,
  Resources,  \* 1..n, three at most
  Processes,  \* 1..k, in the order in which they began to wait
  Wants,      \* of each of them, the set of resources
  Holders,    \* who has all that it wants in the beginning
  Parked,     \* who has been refused before the beginning, and waits with its tickets on every node
  Standing,   \* who stands still from the beginning
  Leaders,    \* who never releases what it has
  Follows,    \* of each of them, whose lease it stands by for: another caller of its operating system's process; or 0
  Mishaps,    \* how many there are, in all
  Kinds,      \* of mishaps: a subset of AllKinds
  Without     \* rules left out: a subset of Rules; the protocol leaves out none

AllKinds == {
  "death",       \* what it had asked is executed, or is lost
  "standstill",  \* it hears what it is told when it goes on, if ever
  "abort",       \* it waits no longer
  "forgetting",  \* a node loses its tickets and what it kept for them
  "lateness"     \* a reservation, or a part, runs out too early
}
Rules == {
  "reserve it for the first",       \* what becomes free is kept for the first in the queue
  "hand over what a claim finds",   \* a lock that ran out goes to the first as well
  "pass on what is given back",     \* what was kept for one that gives up is handed over
  "pass over the dead",             \* who does not listen is not waited for
  "tell two more",                  \* the next and the last look when the reservation is over
  "look when it is over",           \* so does who was refused because of a reservation or a lease
  "ask now and then",               \* and so does everyone, seldom
  "reservations end",               \* and parts do, though their process runs
  "ask again after a part of the nodes",  \* who had some nodes, in vain, asks again unasked
  "release with the ticket",        \* a release takes away the tickets that its process has on other nodes
  "keep parts",                     \* of what one that wants several waits for
  "only for the first everywhere",  \* nobody else keeps a part
  "others have it meanwhile"        \* a part that ended is not kept again before others had their turn
}
ASSUME Kinds \subseteq AllKinds /\ Without \subseteq Rules

VARIABLES
  node,     \* per node, what it has: see Empty
  state,    \* per process: "new", "asking", "waiting", "again" (it asks again by itself), "holding", "done", "gone" (it gave up)
  vote,     \* per process and node: on their way "asked", "undone", "freed"; answers "granted", "held", "over" (that lease's time), "kept"; or "-"
  dead,
  still,
  mishaps

vars == <<node, state, vote, dead, still, mishaps>>

Has(rule) == rule \notin Without
Min(set) == CHOOSE x \in set : \A y \in set : x <= y
Max(set) == CHOOSE x \in set : \A y \in set : x >= y
Running == Processes \ (dead \cup still)
OnItsWay == {"asked", "undone", "freed"}
Voted(p, kinds) == {n \in Nodes : vote[p][n] \in kinds}
IsSet(p) == Cardinality(Wants[p]) > 1
Holder(r) == IF \E p \in Holders : r \in Wants[p] THEN CHOOSE p \in Holders : r \in Wants[p] ELSE 0

Empty == [
  lock |-> [r \in Resources |-> Holder(r)],  \* who holds it, or 0
  kept |-> [r \in Resources |-> 0],          \* for whom it is reserved, or 0
  row |-> [r \in Resources |-> 0],           \* how many parts of it were kept and ended since anyone else had it, while others waited
  queue |-> Parked,                          \* who has tickets, one in each of its queues
  rest |-> {},                               \* whose part has been kept, and is not to be again yet
  first |-> {},                              \* who was told that all it wants is reserved for it, since it asked
  next |-> {},                               \* who was told that another one comes first
  wrong |-> {}                               \* "passed": one had it before its turn; "hoarded": a part was kept for one behind others
]

Init ==
  /\ node = [n \in Nodes |-> Empty]
  /\ state = [p \in Processes |-> IF p \in Holders THEN "holding" ELSE IF p \in Parked THEN "waiting" ELSE "new"]
  /\ vote = [p \in Processes |-> [n \in Nodes |-> IF p \in Holders THEN "granted" ELSE IF p \in Parked THEN "held" ELSE "-"]]
  /\ dead = {} /\ still = Standing /\ mishaps = 0

(************************ What a node does, in a step **********************)

IsFree(s, r) == s.lock[r] = 0 /\ s.kept[r] = 0
InQueue(s, r) == {p \in s.queue : r \in Wants[p]}
IsFirst(s, p) == p \in s.queue /\ \A r \in Wants[p] : p = Min(InQueue(s, r))
Keeps(s, p) == {r \in Wants[p] : s.kept[r] = p}
Mine(s, p) == {r \in Wants[p] : s.lock[r] = 0 /\ s.kept[r] \in {0, p}}
HasPart(s, p) == Keeps(s, p) \notin {{}, Wants[p]}

MayKeep(s, p) ==
  /\ IsSet(p) /\ Has("keep parts")
  /\ IsFirst(s, p) \/ ~Has("only for the first everywhere")
  /\ p \notin s.rest \/ Keeps(s, p) /= {} \/ ~Has("others have it meanwhile")

Due(s, p) == IF Mine(s, p) = Wants[p] \/ MayKeep(s, p) THEN Mine(s, p) ELSE {}

\* Somebody who runs waits for it who began before p, and is the first wherever it waits.
Passed(s, p, r) == \E q \in InQueue(s, r) \cap Running :
  /\ q < p
  /\ IsFirst(s, q) /\ (q \notin s.rest \/ Keeps(s, q) /= {})

\* The sets of one element below are names for what the checker is to reckon once.

Given(s, r, heir, due, heard, awake) ==
  LET isAll == due = Wants[heir]
      behind == {p \in heard : p > heir}
  IN [s EXCEPT
       !.kept = IF Has("reserve it for the first") THEN [x \in Resources |-> IF x \in due THEN heir ELSE s.kept[x]] ELSE @,
       !.row[r] = IF ~isAll /\ Keeps(s, heir) = {} /\ (heard \ still) \ {heir} /= {} THEN @ + 1 ELSE @,
       !.queue = {p \in @ : (p /= heir \/ ~isAll \/ ~Has("reserve it for the first")) /\ (p > heir \/ p \in awake \/ r \notin Wants[p])},
       !.rest = IF isAll THEN @ \ {heir} ELSE @ \cup {heir},
       !.wrong = @ \cup (IF Passed(s, heir, r) THEN {"passed"} ELSE {}) \cup (IF ~isAll /\ ~IsFirst(s, heir) /\ Keeps(s, heir) = {} THEN {"hoarded"} ELSE {}),
       !.first = @ \cup (IF isAll THEN {heir} \ dead ELSE {}) \cup {p \in heard \ (awake \cup dead) : p < heir},
       !.next = IF behind = {} \/ ~Has("tell two more") THEN @ ELSE @ \cup ({Min(behind), Max(behind)} \ dead)]

\* If it is free: reserved for the first that it can be given to. Who stands still, and was told to ask, is passed over
\* where it has not asked in time.
HandOver(s, r) ==
  IF ~IsFree(s, r) \/ InQueue(s, r) = {} THEN {s}
  ELSE UNION {
    UNION {
      UNION {
        IF able = {} THEN {[s EXCEPT !.first = @ \cup (heard \ (awake \cup dead)), !.queue = @ \ (heard \ awake)]}
        ELSE UNION {{Given(s, r, heir, due, heard, awake) : due \in {Due(s, heir)}} : heir \in {Min(able)}}
        : able \in {{p \in awake : Due(s, p) /= {}}}}
      : awake \in {heard, heard \ still}}
    : heard \in {IF Has("pass over the dead") THEN InQueue(s, r) \ dead ELSE InQueue(s, r)}}

\* There are three resources at most.
HandOverAll(s, free) == UNION {UNION {IF 3 \in free THEN HandOver(u, 3) ELSE {u}
  : u \in IF 2 \in free THEN HandOver(t, 2) ELSE {t}}
  : t \in IF 1 \in free THEN HandOver(s, 1) ELSE {s}}

Unreserved(s, p) == [r \in Resources |-> IF s.kept[r] = p THEN 0 ELSE s.kept[r]]
Unlocked(s, p) == [r \in Resources |-> IF s.lock[r] = p THEN 0 ELSE s.lock[r]]

Put(n, s) == node' = [node EXCEPT ![n] = s]

(*************************** What processes do *****************************)

IsSettled(p) == Voted(p, OnItsWay) = {}
Told(p) == {n \in Nodes : p \in node[n].first}

\* Something that it wants is free, or it has no ticket.
CanGain(p) == \E n \in Nodes :
  \/ \E r \in Wants[p] : IsFree(node[n], r) /\ (IsSet(p) => Due(node[n], p) /= {} \/ \E q \in InQueue(node[n], r) : q /= p)
  \/ p \notin node[n].queue /\ Keeps(node[n], p) /= Wants[p]

HasCause(p) ==
  \/ \E n \in Nodes : p \in node[n].next
  \/ Voted(p, {"kept", "over"}) /= {} /\ Has("look when it is over")
  \/ \E n \in Nodes : p \in node[n].rest

MayAsk(p) ==
  /\ p \in Running
  /\ IsSettled(p)
  /\ \/ state[p] = "new" /\ \A q \in Processes : q < p => state[q] /= "new"
     \/ state[p] = "again"
     \/ state[p] = "waiting" /\ Told(p) /= {}
     \/ state[p] = "waiting" /\ CanGain(p) /\ (HasCause(p) \/ Has("ask now and then"))

Ask(p) ==
  /\ MayAsk(p)
  /\ state' = [state EXCEPT ![p] = "asking"]
  /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> "asked"]]
  /\ node' = [n \in Nodes |-> [node[n] EXCEPT !.first = @ \ {p}, !.next = @ \ {p}]]
  /\ UNCHANGED <<dead, still, mishaps>>

Win(p) ==
  /\ p \in Running
  /\ state[p] = "asking"
  /\ Cardinality(Voted(p, {"granted"})) >= Quorum
  /\ state' = [state EXCEPT ![p] = "holding"]
  /\ UNCHANGED <<node, vote, dead, still, mishaps>>

\* A quorum cannot come any more. What was granted, or is still to be, is given back, and handed over to nobody.
Lose(p) ==
  /\ p \in Running
  /\ state[p] = "asking"
  /\ Cardinality(Voted(p, {"held", "over", "kept"})) > Cardinality(Nodes) - Quorum
  /\ LET part == Voted(p, {"granted"})
     IN /\ state' = [state EXCEPT ![p] = IF part /= {} /\ Has("ask again after a part of the nodes") THEN "again" ELSE "waiting"]
        /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> IF n \in part THEN "undone" ELSE vote[p][n]]]
  /\ UNCHANGED <<node, dead, still, mishaps>>

Ends(p, to) ==
  /\ state' = [state EXCEPT ![p] = to]
  /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> IF vote[p][n] \in {"asked", "-"} THEN vote[p][n] ELSE "freed"]]

Release(p) ==
  /\ p \in Running \ Leaders
  /\ state[p] = "holding"
  /\ Ends(p, "done")
  /\ UNCHANGED <<node, dead, still, mishaps>>

\* The next caller of its process claims in front of the release.
Follow(p, q) ==
  /\ {p, q} \subseteq Running \ Leaders
  /\ Follows[q] = p /\ state[p] = "holding"
  /\ state[q] \in {"new", "waiting"} /\ IsSettled(q)
  /\ state' = [state EXCEPT ![p] = "done", ![q] = "asking"]
  /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> IF vote[p][n] \in {"asked", "-"} THEN vote[p][n] ELSE "freed"], ![q] = [n \in Nodes |-> "asked"]]
  /\ node' = [n \in Nodes |-> [node[n] EXCEPT !.first = @ \ {q}, !.next = @ \ {q}]]
  /\ UNCHANGED <<dead, still, mishaps>>

(****************************** What nodes do ******************************)

\* What follows on its way behind a claim that is answered only now.
Behind(p, answer) ==
  CASE state[p] \in {"waiting", "again"} /\ answer = "granted" -> "undone"
    [] state[p] \in {"done", "gone"} -> "freed"
    [] OTHER -> answer

Granted(s, p) == [s EXCEPT
  !.lock = [r \in Resources |-> IF r \in Wants[p] THEN p ELSE s.lock[r]],
  !.kept = Unreserved(s, p),
  !.row = [r \in Resources |-> IF r \in Wants[p] THEN 0 ELSE s.row[r]],
  !.wrong = IF \E r \in Wants[p] : s.kept[r] /= p /\ Passed(s, p, r) THEN @ \cup {"passed"} ELSE @,
  !.queue = @ \ {p}, !.rest = @ \ {p}, !.first = @ \ {p}]

\* `t` is what the node has when what was free has been handed over.
Answer(p, n, t) ==
  IF Mine(t, p) = Wants[p]
    THEN /\ Put(n, Granted(t, p))
         /\ vote' = [vote EXCEPT ![p][n] = Behind(p, "granted")]
    ELSE /\ Put(n, [t EXCEPT !.first = @ \ {p}])
         /\ vote' = [vote EXCEPT ![p][n] = Behind(p,
              IF \E r \in Wants[p] : t.kept[r] \notin {0, p} THEN "kept" ELSE "held")]

\* What it follows is given back.
Claim(p, n) ==
  /\ vote[p][n] = "asked"
  /\ \E isReserved \in {Keeps(node[n], p) = Wants[p]}, isOver \in {Follows[p] /= 0 /\ state[Follows[p]] = "done"} :
       \E s \in {IF isReserved THEN node[n] ELSE [node[n] EXCEPT !.queue = @ \cup {p}, !.lock = IF isOver THEN Unlocked(node[n], Follows[p]) ELSE @]} :
         \E t \in IF isReserved \/ ~Has("hand over what a claim finds") THEN {s} ELSE HandOverAll(s, Wants[p]) : Answer(p, n, t)
  /\ UNCHANGED <<state, dead, still, mishaps>>

Undo(p, n) ==
  /\ vote[p][n] = "undone"
  /\ vote' = [vote EXCEPT ![p][n] = "-"]
  /\ Put(n, [node[n] EXCEPT !.lock = Unlocked(node[n], p)])
  /\ UNCHANGED <<state, dead, still, mishaps>>

\* A release, or the word of one that gives up.
Free(p, n) ==
  /\ vote[p][n] = "freed"
  /\ \A q \in Processes : Follows[q] = p => vote[q][n] /= "asked"
  /\ vote' = [vote EXCEPT ![p][n] = "-"]
  /\ \E takes \in {state[p] = "gone" \/ Has("release with the ticket")} :
       \E s \in {[node[n] EXCEPT
           !.lock = Unlocked(node[n], p),
           !.kept = IF takes THEN Unreserved(node[n], p) ELSE @,
           !.queue = IF takes THEN @ \ {p} ELSE @,
           !.rest = @ \ {p}, !.first = @ \ {p}, !.next = @ \ {p}]} :
         \E t \in IF state[p] = "gone" /\ ~Has("pass on what is given back") THEN {s} ELSE HandOverAll(s, Wants[p]) : Put(n, t)
  /\ UNCHANGED <<state, dead, still, mishaps>>

IsComing(p, n) == p \in Running /\ (state[p] \in {"asking", "waiting", "again"} \/ vote[p][n] \in OnItsWay)

\* What one of several waits for does not come while it is kept: its holder stays, or another one is served before it.
IsInVain(p, n) == \E r \in Wants[p] \ Keeps(node[n], p) :
  node[n].lock[r] \in Leaders \/ node[n].kept[r] /= 0 \/ p /= Min(InQueue(node[n], r) \cup {p})

MayLapse(n, p) ==
  /\ Has("reservations end")
  /\ Keeps(node[n], p) /= {}
  /\ ~IsComing(p, n) \/ (HasPart(node[n], p) /\ IsInVain(p, n))

Lapses(n, p) ==
  /\ Put(n, [node[n] EXCEPT !.kept = Unreserved(node[n], p)])
  /\ UNCHANGED <<state, vote, dead, still>>

Lapse(n, p) == MayLapse(n, p) /\ Lapses(n, p) /\ mishaps' = mishaps

\* Long enough for everyone who runs to have what stands free.
MayKeepAgain(n, p) ==
  /\ p \in node[n].rest
  /\ Keeps(node[n], p) = {}
  /\ \A r \in Wants[p] : IsFree(node[n], r) => InQueue(node[n], r) \cap Running \subseteq {p}

KeepAgain(n, p) ==
  /\ MayKeepAgain(n, p)
  /\ Put(n, [node[n] EXCEPT !.rest = @ \ {p}, !.next = @ \cup {p}])
  /\ UNCHANGED <<state, vote, dead, still, mishaps>>

MayExpire(n, p) == p \in dead \cup still /\ \E r \in Resources : node[n].lock[r] = p

\* Who stood still meanwhile does not count it any more.
Expire(n, p) ==
  /\ MayExpire(n, p)
  /\ Put(n, [node[n] EXCEPT !.lock = Unlocked(node[n], p)])
  /\ vote' = [q \in Processes |-> [vote[q] EXCEPT ![n] =
       IF @ = (IF q = p THEN "granted" ELSE "held") /\ Wants[q] \cap Wants[p] /= {} THEN "over" ELSE @]]
  /\ UNCHANGED <<state, dead, still, mishaps>>

(******************************** Mishaps **********************************)

Strikes(kind) == kind \in Kinds /\ mishaps < Mishaps /\ mishaps' = mishaps + 1

Die(p) ==
  /\ Strikes("death")
  /\ p \in Running
  /\ state[p] \notin {"new", "done", "gone"}
  /\ dead' = dead \cup {p}
  /\ \/ vote' = vote
     \/ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> "-"]]
  /\ UNCHANGED <<node, state, still>>

StandStill(p) ==
  /\ Strikes("standstill")
  /\ p \in Running
  /\ state[p] \in {"asking", "waiting", "again"}
  /\ still' = still \cup {p}
  /\ UNCHANGED <<node, state, vote, dead>>

GoOn(p) ==
  /\ "standstill" \in Kinds
  /\ p \in still
  /\ still' = still \ {p}
  /\ UNCHANGED <<node, state, vote, dead, mishaps>>

GiveUp(p) ==
  /\ Strikes("abort")
  /\ p \in Running
  /\ state[p] \in {"waiting", "again"}
  /\ Ends(p, "gone")
  /\ UNCHANGED <<node, dead, still>>

Forget(n) ==
  /\ Strikes("forgetting")
  /\ Put(n, [node[n] EXCEPT !.queue = {}, !.rest = {}, !.kept = [r \in Resources |-> 0]])
  /\ UNCHANGED <<state, vote, dead, still>>

LapseEarly(n, p) ==
  /\ Keeps(node[n], p) /= {}
  /\ ~MayLapse(n, p)
  /\ Strikes("lateness")
  /\ Lapses(n, p)

Next ==
  \/ \E p \in Processes : Ask(p) \/ Win(p) \/ Lose(p) \/ Release(p) \/ Die(p) \/ StandStill(p) \/ GoOn(p) \/ GiveUp(p)
  \/ \E p, q \in Processes : Follow(p, q)
  \/ \E p \in Processes, n \in Nodes : Claim(p, n) \/ Undo(p, n) \/ Free(p, n)
  \/ \E p \in Processes, n \in Nodes : Lapse(n, p) \/ LapseEarly(n, p) \/ KeepAgain(n, p) \/ Expire(n, p)
  \/ \E n \in Nodes : Forget(n)

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

\* W1: nobody takes what is free while one waits for it that began earlier and is the first wherever it waits.
InOrder == mishaps = 0 => \A n \in Nodes : "passed" \notin node[n].wrong

\* W1: what is free is kept for nobody that waits behind others: so no circle can begin, and one that an older ticket
\* makes when it comes late ends with its parts.
NoHoarding == \A n \in Nodes : "hoarded" \notin node[n].wrong

\* W1: what stands free for a part is kept once, then others have it.
PartsAreBounded == \A n \in Nodes : \A r \in Resources : node[n].row[r] <= 1

CanStep ==
  \/ \E p \in Processes : Voted(p, OnItsWay) /= {}
  \/ \E p \in Running : MayAsk(p) \/ state[p] = "asking" \/ (state[p] = "holding" /\ p \notin Leaders)
  \/ \E n \in Nodes, p \in Processes : MayLapse(n, p) \/ MayExpire(n, p) \/ MayKeepAgain(n, p)

\* It waits for what somebody has who never gives it back.
IsHopeless(p) == \E n \in Nodes, r \in Wants[p] : node[n].lock[r] \in Leaders

\* W1: while one waits that runs, there is a step that does not depend on one that stands still, nor on a further mishap.
NobodyLost == (\E p \in Running : state[p] = "waiting" /\ ~IsHopeless(p)) => CanStep

\* W1: of who is done, or gave up, nothing stays.
NothingStays == \A p \in Processes \ dead : \A n \in Nodes :
  state[p] \in {"done", "gone"} /\ vote[p][n] = "-" => p \notin node[n].queue /\ \A r \in Resources : p \notin {node[n].lock[r], node[n].kept[r]}
====
