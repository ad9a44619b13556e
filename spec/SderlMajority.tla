--------------------------- MODULE SderlMajority ---------------------------
(***************************************************************************)
(* Groups with `consistency => majority`: sderl_core_quorum.  There is one *)
(* log.  An epoch needs the promises of a majority of the membership, and  *)
(* a batch its acknowledgements; a change of the membership needs both of  *)
(* the old and of the new one.  A member that comes back empty knows       *)
(* neither its log nor whom it promised: it has no say until it is taken   *)
(* in by a coordinator that has a majority without it.  Where all members  *)
(* take part, empty ones count.                                            *)
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
    Start,            \* "running": all have an empty log of one epoch; "empty": all boot; "fresh": with files
    None,
    MaxEpoch,
    MaxNum,           \* batches in any log
    Changes,          \* the memberships that may be asked for
    MaxChange,        \* how often
    MaxBoot,          \* how often a node comes back empty
    Tolerated,        \* only where those who still vote are a majority
    Files,            \* nodes whose file knows the highest epoch that they promised
    Leads,            \* who may lead at the start; {None}: no living node
    Stands,           \* who may stand for election
    Boots,            \* who may come back empty
    Same,             \* nodes that may be exchanged for each other
    Fault             \* rules that are left out: a set of names

VARIABLES
    epoch,            \* of each node: the highest epoch promised
    log,              \* of each node: [lineage, num], or Empty
    learns,           \* members whose table a snapshot is replacing: it will be that of their log
    votes,            \* of each node: Votes, NotYet, or the batch by which it is live: it votes when it knows that this is committed
    former,           \* of each node: the epochs that had been taken when its present life began
    owner,            \* of each epoch: who took it
    was,              \* of each epoch: what its owner had promised before
    promised,         \* promised[e][n]: NoPromise, or the log that n had when it promised e, and its standing
    led,              \* led[e]: what the coordinator of e has ordered, or NoLed
    began,            \* began[e]: the log that the coordinator of e began with, which is that of another epoch
    joined,           \* joined[e]: members so near to its log that the takeover brings them there
    counting,         \* counting[e]: members whose promises elected the coordinator of e
    newcomers,        \* newcomers[e][n]: Counts, or the first batch that has to be committed without it
    acked,            \* acked[e][n]: how much of it n has acknowledged
    committed,        \* the logs that were answered, with their epochs
    forgotten,        \* those of them that no member had any more when all began anew
    left,             \* members that were removed, know it, and have ended
    spent

vars == <<epoch, log, learns, votes, former, owner, was, promised, led, began, joined, counting, newcomers, acked, committed,
          forgotten, left, spent>>
facts == <<promised, led, began, joined, counting, newcomers, acked, committed, forgotten, left>>

Epoch == 1..MaxEpoch
Empty == [lineage |-> 0, num |-> 0]
NoPromise == [lineage |-> -1, num |-> -1, standing |-> ""]
NoLed == <<[t |-> "none", by |-> None, members |-> {}, between |-> {}]>>
Votes == -1
NotYet == 99
Counts == -1

Write(n) == [t |-> "write", by |-> n, members |-> {}, between |-> {}]
\* A batch has an operation for each change.  Between: what the membership is before the last of these.
Change(S, between) ==
    [t |-> "members", by |-> None, members |-> S, between |-> IF "last_change" \in Fault THEN between ELSE {}]
Entries(l) == IF l.lineage = 0 THEN <<>> ELSE SubSeq(led[l.lineage], 1, l.num)
Prefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a

\* The memberships of which a majority is needed, for a member that has these entries.
Membership(entries) ==
    LET at == {i \in 1..Len(entries) : entries[i].t = "members"}
    IN  IF at = {} THEN First ELSE entries[CHOOSE i \in at : \A j \in at : j <= i].members
\* The field `before`: the last batch changes it, and is not known to be committed.
HasBefore(entries) ==
    /\ "new_only" \notin Fault
    /\ entries # <<>> /\ entries[Len(entries)].t = "members"
    /\ ~\E a \in committed : Prefix(entries, a.log)
Before(entries) ==
    IF "last_change" \in Fault THEN entries[Len(entries)].between
    ELSE Membership(SubSeq(entries, 1, Len(entries) - 1))
Members(entries) == Membership(entries) \union (IF HasBefore(entries) THEN Before(entries) ELSE {})

Majority(S, members) == 2 * Cardinality(S \intersect members) > Cardinality(members)
\* A member that was removed by this batch and has ended agreed to it, like one that acknowledged it.
Ended(entries) == IF "any_leave" \in Fault THEN left ELSE {n \in left : Entries(log[n]) = entries}
Agrees(S, entries) == HasBefore(entries) => Majority(S \union Ended(entries), Before(entries))
\* A member that left by a membership with members that ours lacks knows more, and counts as missing; so does
\* one that was added again since.
Gone(entries) ==
    {n \in left : LET by == Entries(log[n])
                  IN  Membership(by) \subseteq Members(entries) /\ ~(Prefix(by, entries) /\ n \in Membership(entries))}
\* The members that count, or all that have not left.
Decides(S, agreed, entries) ==
    /\ Majority(S, Membership(entries)) \/ Membership(entries) \ (S \union Gone(entries)) = {}
    /\ \/ Agrees(S \union agreed, entries)
       \/ HasBefore(entries) /\ Before(entries) \ (S \union agreed \union Gone(entries)) = {}

All(J, entries) ==
    LET missing == (Members(entries) \ J) \ Gone(entries)
    IN  missing = {} \/ ("all_but_one" \in Fault /\ Cardinality(missing) = 1)

\* Which log contains the other: that of the later epoch, then the longer one.
AtLeast(a, b) == a.lineage > b.lineage \/ (a.lineage = b.lineage /\ a.num >= b.num)

\* Whether, at this number, the logs of two epochs are the same but for the last batch: no batch was
\* ordered in the epochs after the first.
RECURSIVE IsOfLog(_, _, _)
IsOfLog(lineage, other, num) ==
    \/ lineage = other
    \/ other > 1 /\ began[other].num = num /\ IsOfLog(lineage, began[other].lineage, num)

Init ==
    \E c \in Leads :
        LET runs == Start = "running"
        IN  /\ epoch = [n \in Node |-> IF runs /\ n \in First THEN 1 ELSE 0]
            /\ log = [n \in Node |-> IF runs /\ n \in First THEN [lineage |-> 1, num |-> 0] ELSE Empty]
            /\ learns = {}
            /\ votes = [n \in Node |-> IF (runs \/ Start = "fresh") /\ n \in First THEN Votes ELSE NotYet]
            /\ former = [n \in Node |-> {}]
            /\ owner = [e \in Epoch |-> IF runs /\ e = 1 THEN c ELSE None]
            /\ was = [e \in Epoch |-> 0]
            /\ promised = [e \in Epoch |-> [n \in Node |-> NoPromise]]
            /\ led = [e \in Epoch |-> IF runs /\ e = 1 THEN <<>> ELSE NoLed]
            /\ began = [e \in Epoch |-> Empty]
            /\ joined = [e \in Epoch |-> {}]
            /\ counting = [e \in Epoch |-> IF runs /\ e = 1 THEN First ELSE {}]
            /\ newcomers = [e \in Epoch |-> [n \in Node |-> Counts]]
            /\ acked = [e \in Epoch |-> [n \in Node |-> IF runs /\ e = 1 /\ n \in First THEN 0 ELSE -1]]
            /\ committed = IF runs THEN {[epoch |-> 1, log |-> <<>>]} ELSE {}
            /\ forgotten = {}
            /\ left = {}
            /\ spent = [change |-> 0, boot |-> 0]

-----------------------------------------------------------------------------
Here(n) == n \notin left
\* A candidate still collects: it has not promised another, and not given up.  (This is where time counts: after
\* `aside_ms` and a tick `finish` gives it up.)
Collects(e) ==
    LET n == owner[e] IN n # None /\ led[e] = NoLed /\ epoch[n] = e /\ e \notin former[n] /\ Here(n)

\* A member that came back says whether its last batch is one by which it is live; one whose table a
\* snapshot is replacing, whether it remembers what it promised.
Standing(n) ==
    LET remembers == votes[n] = Votes \/ "empty_votes" \in Fault
    IN  [lineage |-> log[n].lineage, num |-> log[n].num,
         standing |-> IF n \in learns /\ "learners_whole" \notin Fault THEN IF remembers THEN "learns" ELSE "partial"
                      ELSE IF remembers THEN "votes"
                      ELSE IF log[n].num >= votes[n] THEN "live" ELSE "whole"]
IsWhole(promise) == promise.standing \in {"votes", "live", "whole"}

\* The promises that count as votes: also of a member that has not heard that the batch by which it counts is
\* committed, if another member has the next one; and of a learner, if some member has a whole table of a log
\* that goes as far.
Voters(e, J) ==
    {m \in J :
        \/ promised[e][m].standing = "votes"
        \/ /\ promised[e][m].standing = "live"
           /\ \E x \in J : promised[e][x].lineage = promised[e][m].lineage /\ promised[e][x].num > promised[e][m].num
        \/ /\ promised[e][m].standing = "learns"
           /\ \/ "learners_vote" \in Fault
              \/ \E x \in J : IsWhole(promised[e][x]) /\ AtLeast(promised[e][x], promised[e][m])}

\* What is left of a log without a whole table: the membership, as it came with the snapshot.
Blank(entries) == [i \in 1..Len(entries) |-> IF entries[i].t = "members" THEN entries[i] ELSE Write(None)]

\* A member asks for a higher epoch.
Candidate(n) ==
    /\ Here(n) /\ n \in Stands
    /\ \E e \in Epoch :
        /\ e > epoch[n] /\ owner[e] = None
        /\ owner' = [owner EXCEPT ![e] = n]
        /\ was' = [was EXCEPT ![e] = epoch[n]]
        /\ epoch' = [epoch EXCEPT ![n] = e]
        /\ promised' = [promised EXCEPT ![e][n] = Standing(n)]
    /\ UNCHANGED <<log, learns, votes, former, led, began, joined, counting, newcomers, acked, committed, forgotten, left, spent>>

\* It gives up: no other member was told of this promise of its own.
Withdraw(n) ==
    LET e == epoch[n]
    IN  /\ e \in Epoch /\ owner[e] = n /\ Collects(e)
        /\ epoch' = [epoch EXCEPT ![n] = was[e]]
        /\ UNCHANGED <<log, learns, votes, former, owner, was, spent, facts>>

\* A member promises.  A node does not get what a candidate sent to its former life.
Promise(n, e) ==
    /\ Here(n) /\ owner[e] \notin {None, n} /\ e > epoch[n] /\ e \notin former[n]
    /\ epoch' = [epoch EXCEPT ![n] = e]
    /\ promised' = [promised EXCEPT ![e][n] = Standing(n)]
    /\ UNCHANGED <<log, learns, votes, former, owner, was, led, began, joined, counting, newcomers, acked, committed, forgotten,
                   left, spent>>

\* The candidate has promises enough, and the longest log among them, or lacks its last batch.  (In the
\* code it hands over to a member that has more: here that one is a candidate itself.)
Finish(n) ==
    LET e == epoch[n] IN
    /\ e \in Epoch /\ owner[e] = n /\ Collects(e)
    /\ \E J \in SUBSET {m \in Node : promised[e][m] # NoPromise} :
        LET mine == promised[e][n]
            V == Voters(e, J)
            whole == {m \in J : IsWhole(promised[e][m]) /\ (promised[e][m].lineage > 0 \/ m \in V)}
            part == {m \in J \ whole : ~IsWhole(promised[e][m])}
            those == IF V # {} /\ "votes_first" \in Fault THEN V
                     ELSE IF whole # {} THEN whole ELSE IF part # {} THEN part ELSE J
            best == CHOOSE m \in those : \A x \in those : AtLeast(promised[e][m], promised[e][x])
            most == promised[e][best]
            log0 == Entries(mine)
            log1 == IF "any_log" \in Fault THEN log0 ELSE Entries(most)
            had(m) == IF IsWhole(promised[e][m]) /\ m \notin learns THEN Entries(promised[e][m]) ELSE Blank(Entries(promised[e][m]))
            most_vote(l) == Majority(V, Membership(l)) /\ Agrees(V, l)
            enough(l) == All(J, l) \/ most_vote(l)
            all == All(J, log1)
            new == [lineage |-> e, num |-> Len(log1)]
            near(m) == /\ IsWhole(promised[e][m]) /\ promised[e][m].lineage > 0 /\ IsOfLog(promised[e][m].lineage, most.lineage, most.num)
                       /\ promised[e][m].num <= most.num /\ promised[e][m].num + 1 >= most.num
            counted(m) == /\ "promise_acks" \in Fault /\ m \in J \ Membership(log1)
                          /\ promised[e][m].lineage = most.lineage /\ promised[e][m].num = most.num
        IN  /\ n \in J
            /\ \/ AtLeast(mine, most) /\ n \in those
               \/ "any_log" \in Fault
               \/ IsWhole(mine) /\ mine.lineage = most.lineage /\ mine.num + 1 = most.num /\ n \in Membership(log1)
            /\ enough(log0) /\ enough(log1)
            /\ led' = [led EXCEPT ![e] = IF n \in learns THEN Blank(log1) ELSE log1]
            /\ log' = [log EXCEPT ![n] = new]
            /\ learns' = learns \ {n}
            /\ began' = [began EXCEPT ![e] = [lineage |-> most.lineage, num |-> Len(log1)]]
            /\ joined' = [joined EXCEPT ![e] = {m \in J \ {n} : near(m)}]
            /\ counting' = [counting EXCEPT ![e] = IF all THEN J ELSE V]
            \* (A member that the last batch removes is asked for its acknowledgement, too: `tell_removed`.)
            /\ acked' = [acked EXCEPT ![e] = [m \in Node |-> IF m = n \/ counted(m) THEN Len(log1) ELSE -1]]
            /\ votes' = [votes EXCEPT ![n] = IF @ = Votes THEN Votes ELSE Len(log1)]
            /\ forgotten' = IF ~all \/ most_vote(log1) THEN forgotten
                            ELSE forgotten \union
                                {a \in committed : \A m \in J : ~Prefix(a.log, had(m))}
            /\ UNCHANGED <<epoch, former, owner, was, promised, newcomers, committed, left, spent>>

-----------------------------------------------------------------------------
\* (A coordinator that stops leading, or dies, takes no further step.)
Leader(n) ==
    /\ Here(n) /\ epoch[n] \in Epoch /\ owner[epoch[n]] = n /\ epoch[n] \notin former[n]
    /\ led[epoch[n]] # NoLed /\ log[n].lineage = epoch[n]
Landed(e) == [epoch |-> e, log |-> led[e]] \in committed

\* The coordinator's next batch: a client's write, or a change of the membership.
Propose(n) ==
    LET e == epoch[n]
    IN  /\ Leader(n) /\ Landed(e) /\ Len(led[e]) < MaxNum
        /\ \E entry \in {Write(n)} \union {Change(S, B) : S \in Changes, B \in {Membership(led[e])} \union Changes} :
            \* (`keeps_majority`: the live members, which have the last batch, are a majority of the new membership, too.)
            /\ entry.t = "members" =>
                /\ spent.change < MaxChange /\ entry.members # Membership(led[e])
                /\ Majority({m \in Node : acked[e][m] = Len(led[e])}, entry.members)
            /\ led' = [led EXCEPT ![e] = Append(@, entry)]
            /\ log' = [log EXCEPT ![n].num = @ + 1]
            /\ acked' = [acked EXCEPT ![e][n] = Len(led[e]) + 1]
            /\ spent' = [spent EXCEPT !.change = IF entry.t = "members" THEN @ + 1 ELSE @]
        /\ UNCHANGED <<epoch, learns, votes, former, owner, was, promised, began, joined, counting, newcomers, committed,
                       forgotten, left>>

Acknowledge(n, e, k) == acked' = [acked EXCEPT ![e][n] = k]

\* Whether a member lacks no more than the last batch of the log that the epoch begins with.
Near(n, e) ==
    /\ n \notin learns /\ log[n].lineage > 0 /\ log[n].lineage < e
    /\ IsOfLog(log[n].lineage, began[e].lineage, began[e].num)
    /\ log[n].num <= began[e].num /\ log[n].num + 1 >= began[e].num

\* The takeover brings the members that promised to the log that the epoch begins with, and later those that
\* did not hear of it, or were away in the election: to follow is to promise.
Lead(n, e) ==
    /\ Here(n) /\ led[e] # NoLed /\ owner[e] \notin {n, None} /\ e >= epoch[n]
    /\ \/ n \in joined[e] /\ e = epoch[n]
       \/ n \in Members(led[e]) /\ "one_copy" \notin Fault
    /\ Near(n, e)
    /\ epoch' = [epoch EXCEPT ![n] = e]
    /\ log' = [log EXCEPT ![n] = [lineage |-> e, num |-> began[e].num]]
    /\ votes' = [votes EXCEPT ![n] = IF @ = Votes THEN Votes ELSE began[e].num]
    /\ Acknowledge(n, e, began[e].num)
    /\ UNCHANGED <<learns, former, owner, was, promised, led, began, joined, counting, newcomers, committed, forgotten,
                   left, spent>>

Batch(n, e) ==
    /\ Here(n) /\ led[e] # NoLed /\ owner[e] # n /\ epoch[n] = e /\ log[n].lineage = e /\ log[n].num < Len(led[e])
    /\ log' = [log EXCEPT ![n].num = @ + 1]
    /\ IF n \in learns THEN UNCHANGED acked ELSE Acknowledge(n, e, log[n].num + 1)
    /\ UNCHANGED <<epoch, learns, votes, former, owner, was, promised, led, began, joined, counting, newcomers, committed, forgotten,
                   left, spent>>

\* An empty member waits until no candidate can count a promise of its former life.
MayJoin(n, e) ==
    \/ log[n] # Empty \/ votes[n] = Votes \/ n \in Files \/ "no_wait" \in Fault
    \/ epoch[n] = e /\ n \in counting[e]
    \/ \A x \in former[n] : ~Collects(x)

\* A member that may have the only other copy of what was committed keeps it until a majority has a batch of
\* this epoch (rule 35).
Spares(n, e) == \/ log[n] = Empty
                \/ \E a \in committed : a.epoch = e
                \/ n \in counting[e] /\ e \notin former[n] /\ ~Near(n, e)

\* A coordinator takes a member in: a snapshot replaces its table.  A member that the last batch removes is
\* taken in only if it counts, because that batch may need it.  An empty one does not count until a batch is
\* committed without it, unless its promise of this epoch counted.
Adopt(n, e) ==
    LET counts == n \in counting[e] /\ e \notin former[n]
    IN  /\ Here(n) /\ led[e] # NoLed /\ owner[e] \notin {n, None} /\ Leader(owner[e]) /\ epoch[owner[e]] = e
        /\ e >= epoch[n]
        /\ log[n].lineage < e \/ (log[n].lineage = e /\ n \notin learns /\ log[n].num + 1 < Len(led[e]))
        /\ n \in IF counts THEN Members(led[e]) ELSE Membership(led[e])
        /\ MayJoin(n, e)
        /\ Spares(n, e) \/ "one_copy" \in Fault
        /\ epoch' = [epoch EXCEPT ![n] = e]
        /\ log' = [log EXCEPT ![n] = [lineage |-> e, num |-> Len(led[e])]]
        /\ learns' = learns \union {n}
        /\ newcomers' = [newcomers EXCEPT ![e][n] =
               IF log[n] # Empty \/ counts \/ {"empty_votes", "newcomers_count"} \intersect Fault # {} THEN @ ELSE NotYet]
        /\ UNCHANGED <<votes, former, owner, was, promised, led, began, joined, counting, acked, committed, forgotten, left,
                       spent>>

\* It has the whole snapshot, and is live from the next batch on.  (Also if its sender does not lead any more.)
Synced(n, e) ==
    LET at == Len(led[e]) + 1
    IN  /\ Here(n) /\ n \in learns /\ epoch[n] = e /\ log[n].lineage = e
        /\ learns' = learns \ {n}
        /\ Acknowledge(n, e, log[n].num)
        /\ newcomers' = [newcomers EXCEPT ![e][n] = IF @ = NotYet THEN at ELSE @]
        /\ votes' = [votes EXCEPT ![n] = IF @ = Votes \/ "newcomers_count" \in Fault THEN Votes
                                        ELSE IF "early_live" \in Fault THEN at - 1 ELSE at]
        /\ UNCHANGED <<epoch, log, former, owner, was, promised, led, began, joined, counting, committed, forgotten, left,
                       spent>>

\* The members that count have the batch, and are a majority.  Which members count is left open until then: the
\* others are set aside.
Commit(n) ==
    LET e == epoch[n]
        had == {m \in Node : acked[e][m] = Len(led[e]) /\ newcomers[e][m] = Counts}
    IN  /\ Leader(n) /\ ~Landed(e)
        /\ Decides(had, had \ Membership(led[e]), led[e])
        /\ committed' = committed \union {[epoch |-> e, log |-> led[e]]}
        /\ newcomers' = [newcomers EXCEPT ![e] = [m \in Node |-> IF @[m] <= Len(led[e]) THEN Counts ELSE @[m]]]
        /\ UNCHANGED <<epoch, log, learns, votes, former, owner, was, promised, led, began, joined, counting, acked, forgotten, left,
                       spent>>

\* A member that is live hears that all that it has is committed: it votes.
Confirmed(n) ==
    /\ Here(n) /\ votes[n] # Votes /\ log[n].num >= votes[n] /\ epoch[n] = log[n].lineage
    /\ [epoch |-> epoch[n], log |-> Entries(log[n])] \in committed
    /\ votes' = [votes EXCEPT ![n] = Votes]
    /\ UNCHANGED <<epoch, log, learns, former, owner, was, spent, facts>>

\* A removed member that has the batch by which it goes ends, and has no say any more.  That may be before
\* the batch is committed, if no member is left to tell it so; but not if it has promised another epoch: that one
\* may begin without the batch, while others commit the batch because the member has left.  Nor if its vote does
\* not count: its former life may have promised an epoch.
Leave(n) ==
    /\ Here(n) /\ n \notin learns /\ log[n] # Empty /\ n \notin Membership(Entries(log[n]))
    /\ \/ /\ epoch[n] = log[n].lineage \/ "leaves_promised" \in Fault
          /\ votes[n] = Votes \/ "early_leave" \in Fault
       \/ \E a \in committed : Prefix(Entries(log[n]), a.log)
    /\ left' = left \union {n}
    /\ UNCHANGED <<epoch, log, learns, votes, former, owner, was, promised, led, began, joined, counting, newcomers, acked, committed,
                   forgotten, spent>>

\* A member without a coordinator hears that it is removed: from a member that its table has as live, or from one
\* of a later log, or from any if its own table is empty.  It leaves by the membership that it is told.
LeaveTold(n, m) ==
    LET told == Entries(log[m])
        at == {i \in 1..Len(told) : told[i].t = "members"}
        last == CHOOSE i \in at : \A j \in at : j <= i
    IN  /\ Here(n) /\ Here(m) /\ log[n] # Empty /\ log[m] # Empty /\ at # {}
        /\ n \notin Members(told) /\ m \in Membership(told)
        /\ n \in Membership(Entries(log[n]))
        /\ \/ n \in learns \/ m \in Membership(Entries(log[n]))
           \/ epoch[m] > epoch[n] /\ epoch[m] > log[n].lineage
        /\ left' = left \union {n}
        /\ log' = [log EXCEPT ![n] = [lineage |-> log[m].lineage, num |-> last]]
        /\ learns' = learns \ {n}
        /\ UNCHANGED <<epoch, votes, former, owner, was, promised, led, began, joined, counting, newcomers, acked,
                       committed, forgotten, spent>>

\* Of some members: those that vote, and have the log or know a member that has.
Remembers(x, S) ==
    /\ Here(x) /\ votes[x] = Votes
    /\ x \in learns => \E y \in S : Here(y) /\ y \notin learns /\ AtLeast(log[y], log[x])

\* A node comes back with nothing, or with its file alone.
Memberships == {First} \union {Membership(led[e]) : e \in {x \in Epoch : led[x] # NoLed}}
Boot(n) ==
    /\ Here(n) /\ n \in Boots /\ spent.boot < MaxBoot /\ log[n] # Empty
    /\ Tolerated => \A m \in Memberships : Majority({x \in Node \ {n} : Remembers(x, Node \ {n})}, m)
    /\ spent' = [spent EXCEPT !.boot = @ + 1]
    /\ log' = [log EXCEPT ![n] = Empty]
    /\ learns' = learns \ {n}
    /\ votes' = [votes EXCEPT ![n] = NotYet]
    /\ former' = [former EXCEPT ![n] = {e \in Epoch : owner[e] # None}]
    /\ epoch' = [epoch EXCEPT ![n] = IF n \in Files THEN @ ELSE 0]
    /\ UNCHANGED <<owner, was, facts>>

Next ==
    \/ \E n \in Node : \/ Candidate(n) \/ Withdraw(n) \/ Finish(n) \/ Propose(n) \/ Commit(n) \/ Confirmed(n)
                       \/ Leave(n) \/ Boot(n)
    \/ \E n, m \in Node : LeaveTold(n, m)
    \/ \E n \in Node, e \in Epoch : Promise(n, e) \/ Lead(n, e) \/ Batch(n, e) \/ Adopt(n, e) \/ Synced(n, e)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
Answered == committed \ forgotten

\* Answered batches are in one order everywhere, whatever links are cut.
OneOrder == \A a, b \in Answered : Prefix(a.log, b.log) \/ Prefix(b.log, a.log)

\* And are never lost: every later epoch begins with them.  After a majority came back empty: with all that any
\* member still had.
NothingLost ==
    \A a \in Answered : \A e \in Epoch : (e > a.epoch /\ led[e] # NoLed) => Prefix(a.log, led[e])

\* As long as the members that remember are a majority, nothing has to be forgotten.
NothingForgotten == Tolerated => forgotten = {}

\* While no member has lost its memory, each answered log is on two members (of three), so that any one may lose it.
OnTwo ==
    spent.boot = 0 =>
        \A a \in Answered : Cardinality({n \in Node \ learns : Prefix(a.log, Entries(log[n]))}) >= 2

\* So if the first of a name's writers was answered `yes`, no other one is, in any component.
Winner(l) ==
    LET W == {i \in 1..Len(l) : l[i].t = "write"}
    IN  IF W = {} THEN None ELSE l[CHOOSE i \in W : \A j \in W : i <= j].by
OneWinner == Cardinality({Winner(a.log) : a \in Answered} \ {None}) <= 1

\* A constraint of some models: no member stands before the first batch, a change of the membership, is out,
\* and epochs are taken one after the other.
BatchFirst ==
    /\ led[1] # <<>> => led[1][1].t = "members"
    /\ led[1] = <<>> => \A e \in Epoch : e > 1 => owner[e] = None
    /\ \A e \in Epoch : (e > 2 /\ owner[e] # None) => owner[e - 1] # None

Symmetry == Permutations(Same)

\* States that differ only in what no step and no property depends on count as one: promises to a candidate that
\* has given up, and what a former coordinator knew.  (A member that stood in vain may go on leading here.)
MayLead(e) ==
    LET n == owner[e]
    IN  /\ n # None /\ Here(n) /\ led[e] # NoLed /\ log[n].lineage = e /\ e \notin former[n]
        /\ epoch[n] = e \/ (epoch[n] \in Epoch /\ owner[epoch[n]] = n /\ Collects(epoch[n]) /\ was[epoch[n]] = e)
Relevant ==
    <<epoch, log, learns, votes, led, began, committed, forgotten, left, spent,
      [e \in Epoch |-> LET n == owner[e] IN
                       IF n = None \/ MayLead(e) \/ (Here(n) /\ epoch[n] <= e) THEN n ELSE TRUE],
      [n \in Node |-> {e \in former[n] : owner[e] # None}],
      [n \in Node |-> {e \in Epoch : owner[e] = n /\ log[n].lineage > 0 /\ log[n].lineage < e}],
      [e \in Epoch |-> IF Collects(e) THEN <<was[e], promised[e]>> ELSE <<>>],
      [e \in Epoch |-> {n \in joined[e] : epoch[n] = e /\ log[n].lineage < e}],
      [e \in Epoch |-> IF MayLead(e) THEN <<counting[e], newcomers[e]>> ELSE <<>>],
      [e \in Epoch |-> IF MayLead(e) THEN {n \in Node : acked[e][n] = Len(led[e])} ELSE {}]>>
=============================================================================
