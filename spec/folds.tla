---- MODULE folds ----
(***************************************************************************)
(* Writes of one resource that wait in a gateway for their turn. Puts that *)
(* wait one behind the other may be sent as one row, a fold; nobody can    *)
(* tell that from the same puts one after the other. Another gateway       *)
(* writes with a higher token at any moment.                               *)
(*                                                                         *)
(* Taking a fold from the queue and executing its statement is one step:   *)
(* what to take does not depend on the row, and what arrives in between    *)
(* might as well arrive after. How long a fold gets is left to chance,     *)
(* which is what its limits come to. That the one statement compares and   *)
(* writes in one step is what store.tla is about.                          *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
  Kinds,     \* of writes that may arrive: a subset of AllKinds
  Arrivals,  \* how many arrive
  Others,    \* how many writes the other gateway makes
  Without    \* rules left out: a subset of Rules; the protocol leaves out none

AllKinds == {
  "put",        \* plain, under token 1
  "newer",      \* plain, under token 2
  "helper",     \* plain, under token 1, by another holder
  "malformed",  \* plain, under token 1, with a document that Postgres cannot keep
  "demanding",  \* a put under token 1 that is to replace the revision it was made of, and no other
  "delete"      \* under token 1
}
Rules == {
  "nothing but the token",  \* only puts that nothing but their token can refuse are folded
  "one token",              \* and only under the same token
  "one holder",             \* and of the same holder
  "order of arrival",       \* any other write of the resource ends the fold
  "last document",          \* the document of the last put is stored
  "a revision each",        \* the row's revision rises by as many as there are puts
  "history of each",        \* each revision is told as a change
  "parse what is replaced", \* a document that nobody will see is judged all the same
  "one by one"              \* after a failure each put goes by itself
}
ASSUME Kinds \subseteq AllKinds /\ Without \subseteq Rules

VARIABLES
  kind,     \* per write: its kind, "-" before it arrives
  based,    \* per write: the revision that was stored when it arrived
  state,    \* per write: "-", "waiting", "accepted", "refused" (for its token or its condition), "rejected" (for its document)
  told,     \* per write: the revision that its answer names
  alone,    \* writes that failed with others
  row,      \* what is stored: token, rev, and the write that the document is of
  history,  \* per revision: the write and the holder that changes tell
  theirs,   \* how often the other gateway wrote
  unjust    \* a write was refused or rejected that would have been accepted by itself

vars == <<kind, based, state, told, alone, row, history, theirs, unjust>>

Writes == 1..Arrivals
Theirs == Arrivals + 1
Revisions == 1..(Arrivals + Others)
Min(set) == CHOOSE x \in set : \A y \in set : x <= y
Max(set) == CHOOSE x \in set : \A y \in set : y <= x
Nobody == [by |-> 0, holder |-> "-"]

Init ==
  /\ kind = [i \in Writes |-> "-"]
  /\ based = [i \in Writes |-> 0]
  /\ state = [i \in Writes |-> "-"]
  /\ told = [i \in Writes |-> 0]
  /\ alone = {}
  /\ row = [token |-> 0, rev |-> 0, doc |-> 0]
  /\ history = [r \in Revisions |-> Nobody]
  /\ theirs = 0
  /\ unjust = FALSE

Token(i) == IF i = Theirs \/ kind[i] = "newer" THEN 2 ELSE 1
Holder(i) == IF kind[i] = "helper" THEN "helper" ELSE "holder"
Document(i) == IF kind[i] = "delete" THEN 0 ELSE i
Waiting == {i \in Writes : state[i] = "waiting"}

\* What the statement asks of a write by itself.
Passes(i) == Token(i) >= row.token /\ (kind[i] = "demanding" => based[i] = row.rev)

IsPlain(i) == kind[i] \in {"put", "newer", "helper", "malformed"} \/ (kind[i] = "demanding" /\ "nothing but the token" \in Without)

MayBeSent(fold) ==
  /\ Min(fold) = Min(Waiting)
  /\ Cardinality(fold) > 1 => \A i \in fold :
       /\ IsPlain(i)
       /\ i \notin alone
       /\ Token(i) = Token(Min(fold)) \/ "one token" \in Without
       /\ Holder(i) = Holder(Min(fold)) \/ "one holder" \in Without
       /\ \A j \in Waiting : j < i => j \in fold \/ "order of arrival" \in Without

Arrive(i, k) ==
  /\ kind[i] = "-"
  /\ i = 1 \/ kind[i - 1] /= "-"
  /\ kind' = [kind EXCEPT ![i] = k]
  /\ based' = [based EXCEPT ![i] = row.rev]
  /\ state' = [state EXCEPT ![i] = "waiting"]
  /\ UNCHANGED <<told, alone, row, history, theirs, unjust>>

Fails(fold) == \E i \in (IF "parse what is replaced" \in Without THEN {Max(fold)} ELSE fold) : kind[i] = "malformed"

Fail(fold) ==
  /\ Fails(fold)
  /\ IF Cardinality(fold) = 1 \/ "one by one" \in Without
       THEN /\ state' = [i \in Writes |-> IF i \in fold THEN "rejected" ELSE state[i]]
            /\ alone' = alone
       ELSE /\ state' = state
            /\ alone' = alone \cup fold
  /\ UNCHANGED <<kind, based, told, row, history, theirs, unjust>>

Refuse(fold) ==
  /\ ~Fails(fold)
  /\ ~Passes(Min(fold))
  /\ state' = [i \in Writes |-> IF i \in fold THEN "refused" ELSE state[i]]
  /\ unjust' = (unjust \/ \E i \in fold : Passes(i))
  /\ UNCHANGED <<kind, based, told, alone, row, history, theirs>>

\* The revision of the i-th of a fold.
Rev(fold, i) == row.rev + IF "a revision each" \in Without THEN 1 ELSE Cardinality({j \in fold : j <= i})

Accept(fold) ==
  LET first == Min(fold)
      last == Max(fold)
      written == IF "history of each" \in Without THEN {last} ELSE fold
      at(r) == {i \in written : Rev(fold, i) = r}
  IN /\ ~Fails(fold)
     /\ Passes(first)
     /\ state' = [i \in Writes |-> IF i \in fold THEN "accepted" ELSE state[i]]
     /\ told' = [i \in Writes |-> IF i \in fold THEN Rev(fold, i) ELSE told[i]]
     /\ row' = [token |-> Token(first), rev |-> Rev(fold, last), doc |-> Document(IF "last document" \in Without THEN first ELSE last)]
     /\ history' = [r \in Revisions |-> IF at(r) = {} THEN history[r] ELSE [by |-> Max(at(r)), holder |-> Holder(first)]]
     /\ UNCHANGED <<kind, based, alone, theirs, unjust>>

Send(fold) ==
  /\ MayBeSent(fold)
  /\ Fail(fold) \/ Refuse(fold) \/ Accept(fold)

TheirPut ==
  /\ theirs < Others
  /\ theirs' = theirs + 1
  /\ row' = [token |-> 2, rev |-> row.rev + 1, doc |-> Theirs]
  /\ history' = [history EXCEPT ![row.rev + 1] = [by |-> Theirs, holder |-> "-"]]
  /\ UNCHANGED <<kind, based, state, told, alone, unjust>>

Next ==
  \/ \E i \in Writes : \E k \in Kinds : Arrive(i, k)
  \/ \E fold \in (SUBSET Waiting) \ {{}} : Send(fold)
  \/ TheirPut

Spec == Init /\ [][Next]_vars

(***************************** What must hold ******************************)

Accepted == {i \in Writes : state[i] = "accepted"}

\* G1: nothing was written below a token that had been accepted before.
Fence == \A i \in Accepted :
  /\ row.token >= Token(i)
  /\ \A r \in Revisions : r < told[i] /\ history[r].by /= 0 => Token(history[r].by) <= Token(i)

\* G3: the newest accepted write is what is stored, and one that demanded a revision replaced exactly that.
Stored == \A i \in Accepted :
  /\ told[i] = row.rev => row.doc = Document(i)
  /\ told[i] <= row.rev
  /\ kind[i] = "demanding" => told[i] = based[i] + 1

\* G3: writes take effect in the order in which they came.
InOrder == \A i, j \in Accepted : i < j => told[i] < told[j]

\* Nobody is refused or accepted for what somebody else sent.
Deserved ==
  /\ ~unjust
  /\ \A i \in Writes : (state[i] = "accepted" => kind[i] /= "malformed") /\ (state[i] = "rejected" => kind[i] = "malformed")

\* G3: the history has each accepted write as the one that made its revision, with its holder.
Told == \A i \in Accepted : history[told[i]] = [by |-> i, holder |-> Holder(i)]
====
