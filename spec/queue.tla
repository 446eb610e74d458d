---- MODULE queue ----
(***************************************************************************)
(* How a released lock comes to the next process that waits for it. Who is *)
(* refused has a ticket on the nodes; a release keeps the lock for a       *)
(* moment for the first in the queue and tells it; that one claims it.     *)
(* Processes die, stand still, give up, and nodes forget tickets.          *)
(*                                                                         *)
(* What is not here: why tokens rise through lost memories (tokens.tla),   *)
(* and time (exclusion.tla). A lock runs out only when its holder is dead  *)
(* or stands still, a reservation only when nobody comes for it; that one  *)
(* comes too late is a mishap. The seal round is one step. A process asks  *)
(* a node again when that has executed what it was asked before.           *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Nodes,      \* 1..n
  Quorum,
  Processes,  \* 1..k, in the order in which they began to wait; the first one holds the lock
  Parked,     \* who has been refused before the beginning, and waits with a ticket on every node
  Standing,   \* who stands still from the beginning
  Mishaps,    \* how many there are, in all
  Kinds,      \* of mishaps: a subset of AllKinds
  Without     \* rules left out: a subset of Rules; the protocol leaves out none

AllKinds == {
  "death",       \* what it had asked is executed, or is lost
  "standstill",  \* it hears what it is told when it goes on, if ever
  "abort",       \* it waits no longer
  "forgetting",  \* a node loses its tickets and what it kept for one
  "lateness"     \* a reservation runs out before its process comes
}
Rules == {
  "refuse for a holder",          \* a claim takes what is free or kept for it, never what is held
  "claim what is kept",           \* who is told holds nothing before a quorum has granted it
  "give back what is its own",    \* who gives up takes away its ticket and what is kept for it, and no lock of another
  "keep it for the first",        \* what is released is kept for the first in the queue
  "a ticket with the refusal",    \* in the same step, so that no release comes in between
  "pass on what is given back",   \* what was kept for one that gives up is kept for the next
  "pass over the dead",           \* who does not listen is not waited for
  "tell the second",              \* the second in the queue looks whether the first one came
  "look after a reservation",     \* and so does who was refused because of it
  "look after a lease",           \* who was refused because of a lease looks when its time is over
  "look now and then",            \* and so does everyone, seldom
  "reservations end",
  "ask again after a part",       \* who had a part of the nodes, in vain, asks again unasked
  "call the roll",                \* who found the lock free by a look has everyone in the queue ask again
  "tell who is struck off",       \* the roll takes tickets away, and says so
  "release with the ticket"       \* a release takes away the tickets that its process has on other nodes
}
ASSUME Parked \cup Standing \subseteq Processes /\ Kinds \subseteq AllKinds /\ Without \subseteq Rules

VARIABLES
  lock,     \* per node: who holds it, or 0
  kept,     \* per node: for whom it is reserved, or 0
  queue,    \* per node: who has a ticket
  state,    \* per process: "new", "asking", "waiting", "again" (it asks again by itself), "holding", "done", "gone" (it gave up)
  vote,     \* per process and node: on their way "asked", "undone", "freed", "left"; answers "granted", "held", "over" (that lease's time), "kept", "bare" (no ticket yet); or "-"
  told,     \* per process: the nodes that told it that it is the first
  second,   \* per process: those that told it that it is the second
  dead,
  still,
  callers,  \* who asks because a look has found the lock free, and calls the roll if it wins
  finders,  \* who of them had no cause to look, while nobody else was about to take the lock
  rolling,  \* nodes to which a roll call is on its way
  seen,     \* per node: the newest lease whose token it stores
  knew,     \* per process: the newest lease that the nodes which granted it knew
  leases,   \* how many there were
  finds,    \* how many of them began with such a look
  broken,   \* "disorder": a lease got a token that was not above the last one's; "overtaken": one came before its turn
  mishaps

vars == <<lock, kept, queue, state, vote, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

Has(rule) == rule \notin Without
Min(set) == CHOOSE x \in set : \A y \in set : x <= y
Max(x, y) == IF x > y THEN x ELSE y
Running == Processes \ (dead \cup still)
OnItsWay == {"asked", "undone", "freed", "left", "bare"}
Voted(p, kinds) == {n \in Nodes : vote[p][n] \in kinds}

Init ==
  /\ lock = [n \in Nodes |-> 1]
  /\ kept = [n \in Nodes |-> 0]
  /\ queue = [n \in Nodes |-> Parked]
  /\ state = [p \in Processes |-> IF p = 1 THEN "holding" ELSE IF p \in Parked THEN "waiting" ELSE "new"]
  /\ vote = [p \in Processes |-> [n \in Nodes |-> IF p = 1 THEN "granted" ELSE IF p \in Parked THEN "held" ELSE "-"]]
  /\ told = [p \in Processes |-> {}]
  /\ second = [p \in Processes |-> {}]
  /\ dead = {} /\ still = Standing /\ callers = {} /\ finders = {} /\ rolling = {}
  /\ seen = [n \in Nodes |-> 1]
  /\ knew = [p \in Processes |-> 0]
  /\ leases = 1 /\ finds = 0 /\ broken = {} /\ mishaps = 0

(*************************** What processes do *****************************)

IsSettled(p) == Voted(p, OnItsWay) = {}

MayAsk(p) ==
  /\ p \in Running
  /\ IsSettled(p)
  /\ \/ state[p] = "new" /\ \A q \in Processes : q < p => state[q] /= "new"
     \/ state[p] = "again"
     \/ state[p] = "waiting" /\ told[p] /= {}

Asks(p) ==
  /\ state' = [state EXCEPT ![p] = "asking"]
  /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> "asked"]]
  /\ told' = [told EXCEPT ![p] = {}]
  /\ second' = [second EXCEPT ![p] = {}]
  /\ knew' = [knew EXCEPT ![p] = 0]
  /\ UNCHANGED <<lock, kept, queue, dead, still, rolling, seen, leases, finds, broken, mishaps>>

Ask(p) ==
  /\ MayAsk(p)
  /\ Asks(p)
  /\ callers' = callers \ {p}
  /\ finders' = finders \ {p}

IsSecond(p) == second[p] /= {} /\ Cardinality(second[p] \cup told[p]) >= Quorum
WasKept(p) == Voted(p, {"kept"}) /= {} /\ Has("look after a reservation")
IsOver(p) == Voted(p, {"over"}) /= {} /\ Has("look after a lease")

HasCause(p) == IsSecond(p) \/ IsOver(p) \/ WasKept(p)

MayLook(p) ==
  /\ p \in Running
  /\ state[p] = "waiting"
  /\ IsSettled(p)
  /\ \E n \in Nodes : lock[n] = 0 /\ kept[n] = 0
  /\ HasCause(p) \/ Has("look now and then")

\* Nobody else that runs is about to take the lock.
IsNeeded(p) == ~HasCause(p) /\ told[p] = {} /\ \A q \in Running \ {p} :
  ~HasCause(q) /\ told[q] = {} /\ state[q] \notin {"asking", "again"}

\* One look at a node that shows it free, and the question.
Look(p) ==
  /\ MayLook(p)
  /\ Asks(p)
  /\ callers' = IF IsSecond(p) \/ IsOver(p) THEN callers \ {p} ELSE callers \cup {p}
  /\ finders' = IF IsNeeded(p) THEN finders \cup {p} ELSE finders \ {p}

Holds(p) ==
  /\ state' = [state EXCEPT ![p] = "holding"]
  /\ leases' = leases + 1
  /\ seen' = [n \in Nodes |-> IF vote[p][n] = "granted" THEN leases + 1 ELSE seen[n]]
  /\ broken' = broken \cup (IF knew[p] < leases THEN {"disorder"} ELSE {})
  /\ finds' = IF p \in finders THEN finds + 1 ELSE finds
  /\ rolling' = IF p \in callers /\ Has("call the roll") THEN Nodes ELSE rolling
  /\ callers' = callers \ {p}
  /\ finders' = finders \ {p}
  /\ UNCHANGED <<lock, kept, queue, vote, told, second, dead, still, knew, mishaps>>

Win(p) ==
  /\ p \in Running
  /\ state[p] = "asking"
  /\ Cardinality(Voted(p, {"granted"})) >= Quorum
  /\ Holds(p)

\* Only without the rule.
Assume(p) ==
  /\ ~Has("claim what is kept")
  /\ p \in Running
  /\ state[p] = "waiting"
  /\ Cardinality(told[p]) >= Quorum
  /\ Holds(p)

\* A quorum cannot come any more. What was granted, or is still to be, is given back, and nobody is told of it.
Lose(p) ==
  /\ p \in Running
  /\ state[p] = "asking"
  /\ Cardinality(Voted(p, {"held", "over", "kept", "bare"})) > Cardinality(Nodes) - Quorum
  /\ LET part == Voted(p, {"granted"})
     IN /\ state' = [state EXCEPT ![p] = IF part /= {} /\ Has("ask again after a part") THEN "again" ELSE "waiting"]
        /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> IF n \in part THEN "undone" ELSE vote[p][n]]]
  /\ UNCHANGED <<lock, kept, queue, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

Ends(p, to, request) ==
  /\ state' = [state EXCEPT ![p] = to]
  /\ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> IF vote[p][n] \in {"asked", "-"} THEN vote[p][n] ELSE request]]

Release(p) ==
  /\ p \in Running
  /\ state[p] = "holding"
  /\ Ends(p, "done", "freed")
  /\ UNCHANGED <<lock, kept, queue, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

(***************************** What nodes do *******************************)

\* The lock is free there; q has a ticket each.
Tells(n, q) ==
  LET heard == IF Has("pass over the dead") THEN q \ dead ELSE q
      first == IF heard = {} THEN 0 ELSE Min(heard)
      rest == heard \ {first}
      next == IF rest = {} \/ ~Has("tell the second") THEN 0 ELSE Min(rest)
  IN /\ lock' = [lock EXCEPT ![n] = 0]
     /\ kept' = [kept EXCEPT ![n] = IF Has("keep it for the first") THEN first ELSE 0]
     /\ queue' = [queue EXCEPT ![n] = {t \in q : first /= 0 /\ t > first}]
     /\ told' = [p \in Processes |-> IF p = first /\ p \notin dead THEN told[p] \cup {n} ELSE told[p]]
     /\ second' = [p \in Processes |-> IF p = next /\ p \notin dead THEN second[p] \cup {n} ELSE second[p]]

TellsNobody(n, q) ==
  /\ queue' = [queue EXCEPT ![n] = q]
  /\ UNCHANGED <<told, second>>

\* What follows on its way behind a claim that is answered only now.
Behind(p, answer) ==
  CASE state[p] \in {"waiting", "again"} /\ answer = "granted" -> "undone"
    [] state[p] = "done" -> "freed"
    [] state[p] = "gone" -> "left"
    [] OTHER -> answer

\* As it can be told on a single node, with no mishap: one that began to wait earlier has a ticket.
Overtakes(p) == Cardinality(Nodes) = 1 /\ mishaps = 0 /\ Standing = {} /\ \E q \in Running : q < p /\ state[q] = "waiting"

Answer(p, n) ==
  /\ vote[p][n] = "asked"
  /\ IF (lock[n] = 0 \/ ~Has("refuse for a holder")) /\ kept[n] \in {0, p}
       THEN /\ lock' = [lock EXCEPT ![n] = p]
            /\ kept' = [kept EXCEPT ![n] = 0]
            /\ queue' = [queue EXCEPT ![n] = @ \ {p}]
            /\ vote' = [vote EXCEPT ![p][n] = Behind(p, "granted")]
            /\ knew' = [knew EXCEPT ![p] = Max(knew[p], seen[n])]
            /\ broken' = IF Overtakes(p) THEN broken \cup {"overtaken"} ELSE broken
       ELSE /\ IF Has("a ticket with the refusal")
                 THEN /\ queue' = [queue EXCEPT ![n] = @ \cup {p}]
                      /\ vote' = [vote EXCEPT ![p][n] = Behind(p, IF kept[n] /= 0 THEN "kept" ELSE "held")]
                 ELSE /\ queue' = queue
                      /\ vote' = [vote EXCEPT ![p][n] = Behind(p, "bare")]
            /\ UNCHANGED <<lock, kept, knew, broken>>
  /\ UNCHANGED <<state, told, second, dead, still, callers, finders, rolling, seen, leases, finds, mishaps>>

\* Only without the rule: the ticket comes later.
Ticket(p, n) ==
  /\ vote[p][n] = "bare"
  /\ vote' = [vote EXCEPT ![p][n] = "held"]
  /\ queue' = [queue EXCEPT ![n] = @ \cup {p}]
  /\ UNCHANGED <<lock, kept, state, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

Undo(p, n) ==
  /\ vote[p][n] = "undone"
  /\ vote' = [vote EXCEPT ![p][n] = "-"]
  /\ lock' = [lock EXCEPT ![n] = IF @ = p THEN 0 ELSE @]
  /\ UNCHANGED <<kept, queue, state, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

\* Behind a roll call, which travels on the same connection.
Free(p, n) ==
  /\ vote[p][n] = "freed"
  /\ n \notin rolling
  /\ vote' = [vote EXCEPT ![p][n] = "-"]
  /\ LET takes == Has("release with the ticket")
         q == IF takes THEN queue[n] \ {p} ELSE queue[n]
     IN IF lock[n] = p \/ (takes /\ lock[n] = 0 /\ kept[n] = p)
          THEN Tells(n, q)
          ELSE TellsNobody(n, q) /\ UNCHANGED <<lock, kept>>
  /\ UNCHANGED <<state, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

Leave(p, n) ==
  /\ vote[p][n] = "left"
  /\ vote' = [vote EXCEPT ![p][n] = "-"]
  /\ LET q == queue[n] \ {p}
         isKept == lock[n] = 0 /\ kept[n] = p
     IN IF isKept /\ Has("pass on what is given back")
          THEN Tells(n, q)
          ELSE /\ TellsNobody(n, q)
               /\ lock' = [lock EXCEPT ![n] = IF @ = p \/ ~Has("give back what is its own") THEN 0 ELSE @]
               /\ kept' = [kept EXCEPT ![n] = IF isKept THEN 0 ELSE @]
  /\ UNCHANGED <<state, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

Roll(n) ==
  /\ n \in rolling
  /\ rolling' = rolling \ {n}
  /\ queue' = [queue EXCEPT ![n] = {}]
  /\ told' = [p \in Processes |-> IF p \in queue[n] \ dead /\ Has("tell who is struck off") THEN told[p] \cup {n} ELSE told[p]]
  /\ UNCHANGED <<lock, kept, state, vote, second, dead, still, callers, finders, seen, knew, leases, finds, broken, mishaps>>

IsComing(p, n) == p \in Running /\ (state[p] \in {"asking", "waiting", "again"} \/ vote[p][n] \in OnItsWay)

MayLapse(n) == kept[n] /= 0 /\ Has("reservations end") /\ ~IsComing(kept[n], n)

Lapses(n) ==
  /\ kept' = [kept EXCEPT ![n] = 0]
  /\ UNCHANGED <<lock, queue, state, vote, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken>>

Lapse(n) == MayLapse(n) /\ Lapses(n) /\ mishaps' = mishaps

MayExpire(n) == lock[n] \in dead \cup still

\* Who stood still meanwhile does not count it any more.
Expire(n) ==
  /\ MayExpire(n)
  /\ lock' = [lock EXCEPT ![n] = 0]
  /\ vote' = [p \in Processes |-> [vote[p] EXCEPT ![n] =
       IF @ = (IF p = lock[n] THEN "granted" ELSE "held") THEN "over" ELSE @]]
  /\ UNCHANGED <<kept, queue, state, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

(******************************** Mishaps **********************************)

Strikes(kind) == kind \in Kinds /\ mishaps < Mishaps /\ mishaps' = mishaps + 1

Die(p) ==
  /\ Strikes("death")
  /\ p \in Running
  /\ state[p] /= "new"
  /\ dead' = dead \cup {p}
  /\ \/ vote' = vote
     \/ vote' = [vote EXCEPT ![p] = [n \in Nodes |-> "-"]]
  /\ UNCHANGED <<lock, kept, queue, state, told, second, still, callers, finders, rolling, seen, knew, leases, finds, broken>>

StandStill(p) ==
  /\ Strikes("standstill")
  /\ p \in Running
  /\ state[p] \in {"asking", "waiting", "again"}
  /\ still' = still \cup {p}
  /\ UNCHANGED <<lock, kept, queue, state, vote, told, second, dead, callers, finders, rolling, seen, knew, leases, finds, broken>>

GoOn(p) ==
  /\ "standstill" \in Kinds
  /\ p \in still
  /\ still' = still \ {p}
  /\ UNCHANGED <<lock, kept, queue, state, vote, told, second, dead, callers, finders, rolling, seen, knew, leases, finds, broken, mishaps>>

GiveUp(p) ==
  /\ Strikes("abort")
  /\ p \in Running
  /\ state[p] \in {"waiting", "again"}
  /\ Ends(p, "gone", "left")
  /\ UNCHANGED <<lock, kept, queue, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken>>

Forget(n) ==
  /\ Strikes("forgetting")
  /\ queue[n] /= {} \/ kept[n] /= 0
  /\ queue' = [queue EXCEPT ![n] = {}]
  /\ kept' = [kept EXCEPT ![n] = 0]
  /\ UNCHANGED <<lock, state, vote, told, second, dead, still, callers, finders, rolling, seen, knew, leases, finds, broken>>

LapseEarly(n) ==
  /\ kept[n] /= 0
  /\ IsComing(kept[n], n)
  /\ Strikes("lateness")
  /\ Lapses(n)

Next ==
  \/ \E p \in Processes : Ask(p) \/ Look(p) \/ Win(p) \/ Assume(p) \/ Lose(p) \/ Release(p)
  \/ \E p \in Processes, n \in Nodes : Answer(p, n) \/ Ticket(p, n) \/ Undo(p, n) \/ Free(p, n) \/ Leave(p, n)
  \/ \E n \in Nodes : Roll(n) \/ Lapse(n) \/ Expire(n) \/ Forget(n) \/ LapseEarly(n)
  \/ \E p \in Processes : Die(p) \/ StandStill(p) \/ GoOn(p) \/ GiveUp(p)

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

\* L2.
Exclusive == Cardinality({p \in Processes \ dead : state[p] = "holding"}) <= 1

\* T1: every lease was granted by a node that knew the last one.
Rising == "disorder" \notin broken

\* W1: in the order in which they began.
InOrder == "overtaken" \notin broken

CanStep ==
  \/ \E p \in Processes : Voted(p, OnItsWay) /= {}
  \/ \E p \in Running : MayAsk(p) \/ MayLook(p) \/ state[p] \in {"asking", "holding"}
  \/ \E n \in Nodes : MayLapse(n) \/ MayExpire(n)
  \/ rolling /= {}

\* W1: while one waits that runs, there is a step that does not depend on one that stands still, nor on a further mishap.
NobodyLost == (\E p \in Running : state[p] = "waiting") => CanStep

\* W1: a look without a cause is needed once for all that stand still, not for each first and second of them.
FewLooks == Cardinality(Nodes) = 1 /\ mishaps = 0 => finds <= Min({1, Cardinality(Standing)})

\* W1: of who is done, or gave up, nothing stays.
NothingStays == \A p \in Processes \ dead : \A n \in Nodes :
  state[p] \in {"done", "gone"} /\ vote[p][n] = "-" => lock[n] /= p /\ kept[n] /= p /\ p \notin queue[n]
====
