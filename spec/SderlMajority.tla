--------------------------- MODULE SderlMajority ---------------------------
(***************************************************************************)
(* Groups with `consistency => majority`: a component decides only with a  *)
(* majority of the membership, an epoch needs one, and a change of the     *)
(* membership needs one of the old and one of the new.                     *)
(*                                                                         *)
(* Messages are facts: what was promised, led, ordered and acknowledged in *)
(* an epoch is never taken back, and anybody may hear of it late, twice or *)
(* never.  So splits of any form are in, and no link is modelled.  A log   *)
(* is a part of what an epoch ordered, from its beginning.                 *)
(***************************************************************************)
EXTENDS Naturals, Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Node,
    First,            \* the first membership
    None,
    MaxEpoch,
    MaxNum,           \* batches in any log
    Changes,          \* the memberships that may be asked for
    MaxChange,        \* how often
    MaxBoot,          \* nodes that come back empty
    Same,             \* nodes that may be exchanged for each other
    Fault             \* rules that are not kept

VARIABLES
    epoch,            \* of each node: the highest epoch promised (also in its file)
    log,              \* of each node: [lineage, num], or Empty
    owner,            \* of each epoch: who took it
    promised,         \* promised[e][n]: None, or the log that n had when it promised e
    led,              \* led[e]: what the coordinator of e has ordered, or None while it does not lead
    acked,            \* acked[e][n]: how much of it n has acknowledged
    committed,        \* in which epochs what logs were answered
    spent

vars == <<epoch, log, owner, promised, led, acked, committed, spent>>

Epoch == 1..MaxEpoch
Empty == [lineage |-> 0, num |-> 0]
NoLog == [lineage |-> -1, num |-> -1]
NoLed == <<[t |-> "none", by |-> None, members |-> {}]>>

Write(n) == [t |-> "write", by |-> n, members |-> {}]
Change(S) == [t |-> "members", by |-> None, members |-> S]
Entries(l) == IF l.lineage = 0 THEN <<>> ELSE SubSeq(led[l.lineage], 1, l.num)

\* The memberships of which a majority is needed, for one who has these entries: the last batch may
\* not be committed, so before and after a change both.
Membership(entries) ==
    LET at == {i \in 1..Len(entries) : entries[i].t = "members"}
    IN  IF at = {} THEN First ELSE entries[CHOOSE i \in at : \A j \in at : j <= i].members
Memberships(entries) ==
    IF entries = <<>> THEN {First}
    ELSE IF "new_only" \in Fault THEN {Membership(entries)}
    ELSE {Membership(entries), Membership(SubSeq(entries, 1, Len(entries) - 1))}

Majority(S, members) == 2 * Cardinality(S \intersect members) > Cardinality(members)
Decides(S, entries) == \A m \in Memberships(entries) : Majority(S, m)

\* Which log contains the other: that of the later epoch, then the longer one.
AtLeast(a, b) == a.lineage > b.lineage \/ (a.lineage = b.lineage /\ a.num >= b.num)

Init ==
    \E c \in First :
        /\ epoch = [n \in Node |-> IF n \in First THEN 1 ELSE 0]
        /\ log = [n \in Node |-> IF n \in First THEN [lineage |-> 1, num |-> 0] ELSE Empty]
        /\ owner = [e \in Epoch |-> IF e = 1 THEN c ELSE None]
        /\ promised = [e \in Epoch |-> [n \in Node |-> NoLog]]
        /\ led = [e \in Epoch |-> IF e = 1 THEN <<>> ELSE NoLed]
        /\ acked = [e \in Epoch |-> [n \in Node |-> IF e = 1 /\ n \in First THEN 0 ELSE -1]]
        /\ committed = {}
        /\ spent = [change |-> 0, boot |-> 0]

-----------------------------------------------------------------------------
\* A member that has a log asks for a higher epoch.
Candidate(n) ==
    /\ log[n] # Empty
    /\ \E e \in Epoch :
        /\ e > epoch[n] /\ owner[e] = None
        /\ owner' = [owner EXCEPT ![e] = n]
        /\ epoch' = [epoch EXCEPT ![n] = e]
        /\ promised' = [promised EXCEPT ![e][n] = log[n]]
    /\ UNCHANGED <<log, led, acked, committed, spent>>

\* A member promises; one that came back empty has no voice.
Collect(n, e) ==
    /\ owner[e] # None /\ led[e] = NoLed /\ e > epoch[n]
    /\ log[n] # Empty \/ "empty_votes" \in Fault
    /\ epoch' = [epoch EXCEPT ![n] = e]
    /\ promised' = [promised EXCEPT ![e][n] = log[n]]
    /\ UNCHANGED <<log, owner, led, acked, committed, spent>>

\* The candidate has a majority, and the longest log among it.  (Where another has that, it hands over:
\* here the other is a candidate itself.)
Finish(n) ==
    LET e == epoch[n]
        J == {m \in Node : promised[e][m] # NoLog}
        mine == Entries(log[n])
    IN  /\ e \in Epoch /\ owner[e] = n /\ led[e] = NoLed /\ log[n] # Empty
        /\ Decides(J, mine)
        /\ "any_log" \in Fault \/ \A m \in J : AtLeast(log[n], promised[e][m])
        /\ led' = [led EXCEPT ![e] = mine]
        /\ log' = [log EXCEPT ![n] = [lineage |-> e, num |-> Len(mine)]]
        /\ acked' = [acked EXCEPT ![e][n] = Len(mine)]
        /\ UNCHANGED <<epoch, owner, promised, committed, spent>>

\* (One that stops leading, or dies, just takes no step any more.)
Leader(n) == log[n] # Empty /\ epoch[n] \in Epoch /\ owner[epoch[n]] = n /\ led[epoch[n]] # NoLed
\* All that count have the last batch, and are a majority.  Who counts is left open until then: the
\* others are set aside.
AllHave(e) == Decides({m \in Node : acked[e][m] = Len(led[e])}, led[e])
Landed(e) == [epoch |-> e, log |-> led[e]] \in committed

\* The coordinator's next batch: a client's write, or a change of the membership.
Propose(n) ==
    LET e == epoch[n]
    IN  /\ Leader(n) /\ Landed(e) /\ Len(led[e]) < MaxNum
        /\ \E entry \in {Write(n)} \union {Change(S) : S \in Changes} :
            /\ entry.t = "members" => spent.change < MaxChange /\ entry.members # Membership(led[e])
            /\ led' = [led EXCEPT ![e] = Append(@, entry)]
            /\ log' = [log EXCEPT ![n].num = @ + 1]
            /\ acked' = [acked EXCEPT ![e][n] = Len(led[e]) + 1]
            /\ spent' = [spent EXCEPT !.change = IF entry.t = "members" THEN @ + 1 ELSE @]
        /\ UNCHANGED <<epoch, owner, promised, committed>>

\* What an epoch began with.
Begins(e) == IF e = 1 THEN 0 ELSE promised[e][owner[e]].num

\* A member gets the coordinator's log, by its takeover, a batch, or a snapshot, and acknowledges.
Adopt(n, e, k) ==
    /\ led[e] # NoLed /\ owner[e] # n /\ e >= epoch[n] /\ k <= Len(led[e]) /\ n \in Membership(SubSeq(led[e], 1, k)) \union First
    /\ AtLeast([lineage |-> e, num |-> k], log[n]) /\ log[n] # [lineage |-> e, num |-> k]
    /\ k >= Begins(e)
    \* A new life of a node gets no message of the one before: a snapshot is of when it is asked for.
    /\ log[n] = Empty => k = Len(led[e])
    /\ epoch' = [epoch EXCEPT ![n] = e]
    /\ log' = [log EXCEPT ![n] = [lineage |-> e, num |-> k]]
    /\ acked' = [acked EXCEPT ![e][n] = IF k > @ THEN k ELSE @]
    /\ UNCHANGED <<owner, promised, led, committed, spent>>

Commit(n) ==
    LET e == epoch[n]
    IN  /\ Leader(n) /\ ~Landed(e) /\ AllHave(e)
        /\ committed' = committed \union {[epoch |-> e, log |-> led[e]]}
        /\ UNCHANGED <<epoch, log, owner, promised, led, acked, spent>>

\* A node comes back with its file alone: the highest epoch that it promised.
Boot(n) ==
    /\ spent.boot < MaxBoot /\ log[n] # Empty
    /\ spent' = [spent EXCEPT !.boot = @ + 1]
    /\ log' = [log EXCEPT ![n] = Empty]
    /\ epoch' = IF "no_file" \in Fault THEN [epoch EXCEPT ![n] = 0] ELSE epoch
    /\ UNCHANGED <<owner, promised, led, acked, committed>>

Next ==
    \/ \E n \in Node : Candidate(n) \/ Finish(n) \/ Propose(n) \/ Commit(n) \/ Boot(n)
    \/ \E n \in Node, e \in Epoch : Collect(n, e) \/ \E k \in 0..MaxNum : Adopt(n, e, k)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Prefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a

\* What was answered is in one order everywhere, whatever is cut.
OneOrder == \A a, b \in committed : Prefix(a.log, b.log) \/ Prefix(b.log, a.log)

\* And is never lost: every later epoch begins with it.
NothingLost ==
    \A a \in committed : \A e \in Epoch : (e > a.epoch /\ led[e] # NoLed) => Prefix(a.log, led[e])

\* So a name that the first of its writers has is answered `yes` to nobody else, in any component.
Winner(l) ==
    LET W == {i \in 1..Len(l) : l[i].t = "write"}
    IN  IF W = {} THEN None ELSE l[CHOOSE i \in W : \A j \in W : i <= j].by
OneWinner == Cardinality({Winner(a.log) : a \in committed} \ {None}) <= 1

\* Two memberships that follow each other never decide apart: a majority of each has the change.
Acknowledged ==
    \A a \in committed :
        \A m \in Memberships(a.log) :
            Majority({n \in Node : acked[a.epoch][n] >= Len(a.log)}, m)

Symmetry == Permutations(Same)
=============================================================================
