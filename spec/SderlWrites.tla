---------------------------- MODULE SderlWrites ----------------------------
(***************************************************************************)
(* Writes and elections within one component of a group: from a client's   *)
(* operation to its answer, over the death of nodes, of processes and of   *)
(* links, and over silence of any length on links that live.               *)
(*                                                                         *)
(* One step is what the core does with one event: a message, an expired    *)
(* time limit, a call.  Time is not modelled: every limit may expire at    *)
(* once or never, so nothing here depends on its length.  spec/README.md   *)
(* says what else is left out, and which function each action stands for.  *)
(***************************************************************************)
EXTENDS Naturals, Integers, Sequences, FiniteSets, TLC

CONSTANTS
    Node, Name,
    None,             \* no node
    First,            \* the coordinator at the beginning: any, as nodes are exchanged for each other
    MaxEpoch,         \* epochs that may ever be taken
    MaxOp,            \* operations that clients may ask for
    Kinds,            \* a subset of {"register", "unregister"}
    Relay,            \* whether a client registers processes of other members too
    MaxKill,          \* nodes that die for good
    MaxCrash,         \* processes that die, and their successors
    Pieces,           \* messages that a shard comes in: 1 or 2
    MaxBreak,         \* links that break
    MaxSilence,       \* time limits that expire although the other side lives
    SilenceRule,      \* "committed": what is specified; "live", "none": see Quorum
    Fault,            \* rules that are left out: a set of names
    \* What merges add (module SderlMerge); here nothing.
    ItemOrdered(_, _, _, _),  \* what else a batch changes in a member
    ItemLanded(_, _),         \* what a coordinator does when its batch is committed
    Known(_, _),              \* what a member does when it hears that
    TakeIn(_, _, _, _)        \* what a coordinator does with a member that joins

VARIABLES
    st,               \* each member's state
    net,              \* net[a][b]: what is on its way from a to b, in order
    up,               \* the links that live, as sets of two nodes
    ops,              \* what clients asked for, and what they were answered
    owner,            \* who took each epoch
    spent             \* how much of each bound was used

vars == <<st, net, up, ops, owner, spent>>

-----------------------------------------------------------------------------
(* Values.  A row of the table is the number of the operation that         *)
(* registered it: every registration is of a process of its own, on the    *)
(* member ops[o].home.  0 is no row and no operation.                      *)

Op == 1..MaxOp
Epoch == 1..MaxEpoch
Lineage == 0..MaxEpoch      \* 0: a node that has just booted

\* What a view says of a member: it counts, it is not there, or it is set aside and all that its own
\* log had up to this position is in our table (of one that booted: of epoch 0).
Live == <<-2, 0>>
Out == <<-1, 0>>
IsAside(place) == place[1] >= 0
LiveIn(view) == {n \in DOMAIN view : view[n] = Live}

\* A shard of which not all pieces are ordered: its place covers nothing.
Incomplete == <<MaxEpoch + 1, 0>>

NoItem == [t |-> "none"]
NoBatch == [op |-> 0, answer |-> "", item |-> NoItem, view |-> [n \in Node |-> Out]]
NoSession == [op |-> 0, answer |-> ""]
NoHistory == [e \in Lineage |-> -1]

\* What a process of a member holds beyond what its successor would find in the tables.
Volatile(s) ==
    [s EXCEPT !.role = IF s.lineage = 0 THEN "boots" ELSE "orphan", !.lead = None, !.suspect = None, !.live = s.view, !.flight = FALSE,
              !.wait = {}, !.reqs = {}, !.held = [m \in Node |-> 0], !.syncs = {}, !.specials = {}, !.memory = {}, !.joined = <<>>,
              !.agreed = FALSE, !.was = 0, !.sent = FALSE, !.answers = {},
              !.committed = IF s.flight THEN s.num - 1 ELSE @]

StartOf(n, lead) ==
    [alive |-> TRUE,
     role |-> IF n = lead THEN "coord" ELSE "follower",
     lead |-> lead,
     suspect |-> None,                      \* the coordinator that fell silent
     epoch |-> 1,                           \* the highest epoch promised
     lineage |-> 1,                         \* the epoch of the log that the table has
     history |-> NoHistory,                 \* the last number of each epoch of that log that ended
     num |-> 0,                             \* the last batch applied
     last |-> NoBatch,                      \* and what it was
     table |-> [x \in Name |-> 0],
     token |-> [x \in Name |-> <<0, 0>>],     \* the position that wrote the row
     session |-> [m \in Node |-> NoSession],
     clashes |-> [x \in Name |-> {}],       \* rows that a merge found beside that of the table
     effects |-> {},                        \* registrations that lost a clash, for their homes to be told
     told |-> {},                           \* those that this home told
     view |-> [m \in Node |-> Live],        \* as in the log
     bases |-> {[live |-> Node, by |-> lead]},  \* views of which one is the last that was committed
     committed |-> 0,
     seen |-> Node \ {n},                   \* members with a link, as far as this one knows
     \* its clients
     queue |-> {},                          \* operations that wait for the next list
     out |-> 0,                             \* the list that is out: of one operation
     sent |-> FALSE,                        \* whether the present coordinator was sent it
     decided |-> {},                        \* answers to relayed operations, kept for askers
     answers |-> {},                        \* answers to relayed operations that our table is not up to
     \* of a coordinator
     live |-> [m \in Node |-> Live],        \* the view of its next batch
     flight |-> FALSE, wait |-> {},         \* whether its last batch is out, and who lacks it
     reqs |-> {}, syncs |-> {},             \* operations to decide; members that get a snapshot
     held |-> [m \in Node |-> 0],           \* those of members that are aside
     specials |-> {},                       \* what a merge has to order
     memory |-> {},                         \* (planted: losers that only this process knows)
     \* of a candidate
     joined |-> <<>>,                       \* members that promised, with position and last batch
     agreed |-> FALSE,                      \* the coordinator itself wants it
     was |-> 0]                             \* the epoch before, if it fails

Dead(s) == [Volatile(s) EXCEPT !.alive = FALSE, !.committed = 0, !.token = [x \in Name |-> <<0, 0>>],
    !.clashes = [x \in Name |-> {}], !.effects = {}, !.told = {}, !.epoch = 0, !.lineage = 0, !.num = 0, !.seen = {},
    !.last = NoBatch, !.table = [x \in Name |-> 0], !.session = [m \in Node |-> NoSession],
    !.view = [m \in Node |-> Out], !.live = [m \in Node |-> Out], !.bases = {}, !.history = NoHistory,
    !.queue = {}, !.out = 0, !.decided = {}, !.answers = {}]

Nothing == [kill |-> 0, crash |-> 0, break |-> 0, heal |-> 0, silence |-> 0, boot |-> 0, calm |-> FALSE]

Init ==
    /\ st = [n \in Node |-> StartOf(n, First)]
    /\ net = [a \in Node |-> [b \in Node |-> <<>>]]
    /\ up = {{a, b} : a, b \in Node} \ {{a} : a \in Node}
    /\ ops = <<>>
    /\ owner = [e \in Epoch |-> IF e = 1 THEN First ELSE None]
    /\ spent = Nothing

-----------------------------------------------------------------------------
(* A step is a function of the world: the members, what is on its way, the *)
(* clients, the epochs.                                                    *)

World == [st |-> st, net |-> net, ops |-> ops, owner |-> owner]
Becomes(w) == st' = w.st /\ net' = w.net /\ ops' = w.ops /\ owner' = w.owner

\* Messages go over existing links only.
SendAll(w, a, S, m) ==
    [w EXCEPT !.net[a] =
        [b \in Node |-> IF b \in S /\ {a, b} \in up THEN Append(@[b], m) ELSE @[b]]]
Send(w, a, b, m) == SendAll(w, a, {b}, m)

Home(o) == ops[o].home
Base(view, n) == [live |-> LiveIn(view), by |-> n]

-----------------------------------------------------------------------------
(* The rows.                                                               *)

\* A batch drops the rows of members that its view does not have, then does its operation.  A row
\* that goes makes room for one that clashed with it.
Written(s, num, b) ==
    LET there(r) == r # 0 /\ b.view[Home(r)] # Out
        clashes(x) == {r \in s.clashes[x] : there(r)}
        first(S) == IF S = {} THEN 0 ELSE CHOOSE r \in S : \A q \in S : r <= q
        kept(x) == IF there(s.table[x]) THEN s.table[x] ELSE first(clashes(x))
        o == b.op
        row(x) ==
            IF o = 0 \/ ops[o].name # x THEN kept(x)
            ELSE CASE b.answer = "yes" -> o
                   [] b.answer = "ok" -> first(clashes(x) \ {kept(x)})
                   [] OTHER -> kept(x)
    IN  [s EXCEPT !.num = num,
                  !.last = b,
                  !.table = [x \in Name |-> row(x)],
                  !.token = [x \in Name |-> IF row(x) = 0 THEN <<0, 0>>
                                            ELSE IF row(x) = s.table[x] THEN @[x] ELSE <<s.lineage, num>>],
                  !.clashes = [x \in Name |-> clashes(x) \ {row(x)}],
                  !.effects = {e \in @ : b.view[Home(e)] # Out},
                  !.session = IF o = 0 THEN @ ELSE [@ EXCEPT ![Home(o)] = [op |-> o, answer |-> b.answer]],
                  \* One batch is out at a time, so the one before this is committed.
                  !.bases = {Base(s.view, owner[s.lineage]), Base(b.view, owner[s.lineage])},
                  !.view = b.view,
                  !.live = b.view]
Applied(s, num, b) ==
    LET s1 == Written(s, num, b)
    IN  IF b = NoBatch THEN [s EXCEPT !.num = num]
        ELSE IF b.item = NoItem THEN s1 ELSE ItemOrdered(s1, num, b.item, s.lineage)

\* The home's list is decided and committed: the home answers its own client, or the member that asked,
\* which answers its client once its own table is as new.
ReplyWith(w, n, a) ==
    LET s == w.st[n]
        o == s.out
        c == ops[o].client
    IN  IF c = n THEN [w EXCEPT !.st[n].out = 0, !.ops[o].status = a]
        ELSE LET answered == [op |-> o, answer |-> a, at |-> <<s.lineage, s.num>>]
             IN  Send([w EXCEPT !.st[n].out = 0, !.st[n].decided = @ \union {answered}],
                      n, c, [t |-> "relayed", of |-> answered])
Reply(w, n) ==
    LET s == w.st[n]
    IN  IF s.out = 0 \/ s.session[n].op # s.out THEN w ELSE ReplyWith(w, n, s.session[n].answer)

\* What the silence of linked members allows.  Links that are gone split a component as always.  But while
\* a member of the last committed view is linked and does not count, the members that count must be more
\* than half of that view, or half with the coordinator that committed it: otherwise the silent ones may go
\* on without us.  Whether a batch that is out is committed is not known, so this must hold for all views
\* that may be the last committed one.
Quorum(s, n) ==
    SilenceRule = "committed" =>
        \A b \in s.bases :
            LET live == LiveIn(s.live) \intersect b.live
                silent == (b.live \ LiveIn(s.live)) \intersect s.seen
            IN  \/ silent = {}
                \/ 2 * Cardinality(live) > Cardinality(b.live)
                \/ 2 * Cardinality(live) = Cardinality(b.live) /\ b.by = n

\* Every live member has the batch: it is committed.
Landed(w, n) ==
    LET s == w.st[n]
        o == s.last.op
    IN  IF ~s.flight \/ s.wait # {} \/ ~Quorum(s, n) THEN w
        ELSE LET w1 == [w EXCEPT !.st[n].flight = FALSE,
                                 !.st[n].committed = s.num,
                                 !.st[n].bases = {Base(s.view, n)}]
                 home == {Home(e) : e \in s.effects \union ({o} \ {0})} \ {n}
             IN  ItemLanded(SendAll(Known(Reply(w1, n), n), n, home,
                                    [t |-> "commit", epoch |-> s.lineage, num |-> s.num]), n)

-----------------------------------------------------------------------------
(* A member's clients.                                                     *)

\* A client asks its node for a name.  The operation enters the log through the home of the name:
\* by a relay where that is another member.
Operation(c, kind, x, h) ==
    LET s == st[c]
        o == Len(ops) + 1
        w == [World EXCEPT !.ops = Append(@, [kind |-> kind, name |-> x, home |-> h, client |-> c,
                                              status |-> "waits", gone |-> FALSE])]
    IN  /\ Len(ops) < MaxOp
        /\ s.alive
        /\ \A p \in DOMAIN ops : ops[p].client = c => ops[p].status # "waits"
        /\ kind \in Kinds
        /\ CASE kind = "register" -> (Relay \/ h = c) /\ s.view[h] = Live
             [] kind = "unregister" -> s.table[x] # 0 /\ h = Home(s.table[x]) /\ (Relay \/ h = c)
        /\ Becomes(IF h = c THEN [w EXCEPT !.st[c].queue = @ \union {o}]
                   ELSE Send(w, c, h, [t |-> "relay", op |-> o]))
        /\ UNCHANGED <<up, spent>>

\* A relay that was lost is sent again.
RelayAgain(o) ==
    LET c == ops[o].client
        h == Home(o)
        lost == /\ \A i \in 1..Len(net[c][h]) : net[c][h][i] # [t |-> "relay", op |-> o]
                /\ \A i \in 1..Len(net[h][c]) : net[h][c][i].t = "relayed" => net[h][c][i].of.op # o
    IN  /\ ops[o].status = "waits" /\ h # c
        /\ st[c].alive /\ h \in st[c].seen /\ {c, h} \in up
        /\ o \notin st[h].queue /\ st[h].out # o
        /\ \A a \in st[c].answers : a.op # o
        /\ lost
        /\ Becomes(Send(World, c, h, [t |-> "relay", op |-> o]))
        /\ UNCHANGED <<up, spent>>

\* The home takes a relayed operation once, and answers again what it decided.
RelayM(w, n, m, msg) ==
    LET s == w.st[n]
        o == msg.op
        known == {a \in s.decided : a.op = o}
    IN  IF known # {} THEN Send(w, n, m, [t |-> "relayed", of |-> CHOOSE a \in known : TRUE])
        ELSE IF s.out = o \/ o \in s.queue THEN w
        ELSE [w EXCEPT !.st[n].queue = @ \union {o}]

RelayedM(w, n, m, msg) == [w EXCEPT !.st[n].answers = @ \union {msg.of}]

UpTo(s, at) == s.lineage > at[1] \/ (s.lineage = at[1] /\ s.num >= at[2])

\* The client's own table has the position of the answer.
AnswerRelayed(n, a) ==
    /\ a \in st[n].answers
    /\ UpTo(st[n], a.at)
    /\ Becomes([World EXCEPT !.st[n].answers = @ \ {a}, !.ops[a.op].status = a.answer])
    /\ UNCHANGED <<up, spent>>

\* The home is not in our component any more: the outcome is unknown, and the call exits.
RelayEnds(o) ==
    LET c == ops[o].client
    IN  /\ ops[o].status = "waits" /\ st[c].alive /\ Home(o) # c
        /\ Home(o) \notin st[c].seen
        /\ Becomes([World EXCEPT !.ops[o].status = "unknown", !.st[c].answers = {a \in @ : a.op # o}])
        /\ UNCHANGED <<up, spent>>

\* A list as the coordinator takes it: what was decided before is answered again.  One of a member that is
\* aside is held until that counts.
Enqueue(w, n, o) ==
    LET s == w.st[n]
        h == Home(o)
    IN  IF IsAside(s.live[h]) THEN [w EXCEPT !.st[n].held[h] = o, !.st[n].reqs = {p \in @ : Home(p) # h}]
        ELSE IF s.session[h].op = o /\ "forget_session" \notin Fault
        THEN IF s.flight /\ s.last.op = o THEN w
             ELSE IF h = n THEN Reply(w, n)
             ELSE Send(w, n, h, [t |-> "answers", op |-> o, answer |-> s.session[h].answer])
        ELSE IF ops[o].status # "waits" THEN w
        ELSE [w EXCEPT !.st[n].reqs = @ \union {o}]

\* A list goes to the coordinator, again where there is a new one.
Flushes(s) == s.alive /\ s.role \in {"coord", "follower"}
                /\ ((s.out # 0 /\ ~s.sent) \/ (s.out = 0 /\ s.queue # {}))
Flush(n) ==
    LET s == st[n]
        pass(w, o) == IF s.role = "coord" THEN Enqueue(w, n, o)
                      ELSE Send(w, n, s.lead, [t |-> "req", epoch |-> s.lineage, op |-> o])
    IN  /\ s.alive /\ s.role \in {"coord", "follower"}
        /\ \/ /\ s.out # 0 /\ ~s.sent
              /\ Becomes(pass([World EXCEPT !.st[n].sent = TRUE], s.out))
           \/ /\ s.out = 0
              /\ \E o \in s.queue :
                    Becomes(pass([World EXCEPT !.st[n].queue = @ \ {o}, !.st[n].out = o, !.st[n].sent = TRUE], o))
        /\ UNCHANGED <<up, spent>>

ReqM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord" /\ s.lineage = msg.epoch THEN Enqueue(w, n, msg.op)
        \* (It asked in its former log, and asks again in the one that it gets.)
        ELSE IF m \in s.syncs THEN w
        ELSE Send(w, n, m, [t |-> "not_lead", epoch |-> s.epoch])

\* A member begins anew with a coordinator, or is gone: lists that it sent before are out of date.
Forgotten(s, m) == [s EXCEPT !.held[m] = 0, !.reqs = {o \in @ : Home(o) # m}]

AnswersM(w, n, m, msg) ==
    IF w.st[n].out = msg.op THEN ReplyWith(w, n, msg.answer) ELSE w

-----------------------------------------------------------------------------
(* The coordinator's batches.                                              *)

Dirty(s) == s.live # s.view \/ \E x \in Name : s.table[x] # 0 /\ s.view[Home(s.table[x])] = Out

\* What a batch with this view finds under a name.
Row(s, x) == IF s.table[x] # 0 /\ s.live[Home(s.table[x])] = Out THEN 0 ELSE s.table[x]

Answer(s, o) ==
    IF o = 0 THEN "" ELSE
    LET r == Row(s, ops[o].name)
    IN  CASE ops[o].kind = "register" -> IF r = 0 THEN "yes" ELSE "no"
               [] ops[o].kind = "unregister" -> IF r # 0 /\ Home(r) = Home(o) THEN "ok" ELSE "no"

\* The next batch: one operation of those that wait, with the present view.  It reaches those of To.
Proposed(w, n, c, To) ==
    LET s == w.st[n]
        o == c.op
        b == [op |-> o, answer |-> Answer(s, o), item |-> c.item, view |-> s.live]
        others == LiveIn(s.live) \ {n}
        x == ops[o].name
        w1 == [w EXCEPT !.st[n] = [Applied(s, s.num + 1, b) EXCEPT
                            !.reqs = @ \ {o}, !.specials = @ \ {c.item}, !.flight = TRUE,
                            !.wait = IF "early_yes" \in Fault THEN {} ELSE others]]
        w2 == IF b.answer = "ok" THEN [w1 EXCEPT !.ops[Row(s, x)].gone = TRUE] ELSE w1
    IN  Landed(SendAll(w2, n, (others \union s.syncs) \intersect To,
                       [t |-> "batch", epoch |-> s.lineage, num |-> s.num + 1, batch |-> b]), n)

Ready(s) == {o \in s.reqs : s.live[Home(o)] = Live}
Proposes(s) == s.alive /\ s.role = "coord" /\ ~s.flight /\ (Ready(s) # {} \/ s.specials # {} \/ Dirty(s))
\* A batch holds either changes of the component or operations.
Choices(s) == IF s.specials # {} THEN {[op |-> 0, item |-> i] : i \in s.specials}
              ELSE IF Ready(s) # {} THEN {[op |-> o, item |-> NoItem] : o \in Ready(s)}
              ELSE {[op |-> 0, item |-> NoItem]}

Propose(n) ==
    /\ Proposes(st[n])
    /\ \E c \in Choices(st[n]) : Becomes(Proposed(World, n, c, Node))
    /\ UNCHANGED <<up, spent>>

Refuse(w, n, m) == Send(w, n, m, [t |-> "refused", epoch |-> w.st[n].epoch, lead |-> w.st[n].lead])

\* A batch that is out says that the one before it is committed.
BatchM(w, n, m, msg) ==
    LET s == w.st[n]
        E == msg.epoch
        w1 == Known(Reply(w, n), n)
        acked(v, k) == Send(v, n, m, [t |-> "ack", epoch |-> E, num |-> k])
    IN  IF s.role = "follower" /\ s.lead = m /\ s.lineage = E /\ s.epoch = E
        THEN IF msg.num = s.num + 1
             THEN acked([w1 EXCEPT !.st[n] = Applied(@, msg.num, msg.batch)], msg.num)
             ELSE IF msg.num <= s.num THEN acked(w, s.num)
             ELSE Send(w, n, m, [t |-> "gap", epoch |-> E])
        ELSE IF E < s.epoch THEN Refuse(w, n, m)
        ELSE w

AckM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord" /\ s.lineage = msg.epoch /\ s.flight /\ s.num = msg.num
        THEN Landed([w EXCEPT !.st[n].wait = @ \ {m}], n)
        ELSE w

CommitM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.lineage = msg.epoch /\ s.lead = m /\ s.num = msg.num
        THEN Known(Reply([w EXCEPT !.st[n].bases = {Base(s.view, m)}], n), n)
        ELSE w

-----------------------------------------------------------------------------
(* Takeover.                                                               *)

\* Leaves its role; the lists that it was about to decide are sent again by its members.
StepDown(s) == [Volatile(s) EXCEPT !.committed = s.committed, !.answers = s.answers, !.suspect = s.suspect]

\* A follower has not heard its coordinator for too long.
Silent(n) ==
    /\ spent.silence < MaxSilence
    /\ st[n].alive /\ st[n].role = "follower"
    /\ Becomes([World EXCEPT !.st[n] = [StepDown(@) EXCEPT !.suspect = st[n].lead]])
    /\ spent' = [spent EXCEPT !.silence = @ + 1]
    /\ UNCHANGED up

Asked(s, n) == ((LiveIn(s.view) \ {n}) \intersect s.seen) \ {s.suspect}
Position(s) == [num |-> s.num, last |-> s.last]

Stand(w, n, e, agreed) ==
    LET s == w.st[n]
    IN  SendAll([w EXCEPT !.owner[e] = n,
                          !.st[n] = [StepDown(s) EXCEPT
                              !.role = "candidate", !.epoch = e, !.was = s.epoch, !.agreed = agreed,
                              !.wait = Asked(s, n), !.joined = (n :> Position(s))]],
                n, Asked(s, n), [t |-> "collect", epoch |-> e, lineage |-> s.lineage, agreed |-> agreed])

\* A member without a coordinator asks the others to promise a higher epoch.
Candidate(n) ==
    /\ st[n].alive /\ st[n].role = "orphan"
    /\ \E e \in Epoch : e > st[n].epoch /\ owner[e] = None /\ Becomes(Stand(World, n, e, FALSE))
    /\ UNCHANGED <<up, spent>>

\* A member that still follows a living coordinator refuses; the others answer with their position.
CollectM(w, n, m, msg) ==
    LET s == w.st[n]
        E == msg.epoch
        agreed == msg.agreed \/ s.lead = m \/ "rule_9" \in Fault
    IN  IF msg.lineage # s.lineage
        THEN Send(w, n, m, [t |-> "apart", epoch |-> E, lineage |-> s.lineage, lead |-> s.lead])
        ELSE IF E <= s.epoch \/ s.role = "coord" \/ (s.role = "follower" /\ ~agreed)
        THEN Send(w, n, m, [t |-> "nack", epoch |-> E])
        ELSE Send([w EXCEPT !.st[n] = [StepDown(s) EXCEPT !.epoch = E]],
                  n, m, [t |-> "joined", epoch |-> E, at |-> Position(s)])

Withdraw(w, n) == [w EXCEPT !.st[n] = [StepDown(@) EXCEPT !.epoch = w.st[n].was]]

\* A batch that let a member go removed its names.  That member does not undo this by applying it,
\* but brings its names back by a merge.
Drops(b, n) == b # NoBatch /\ b.view[n] = Out

\* Members that are linked and did not promise are set aside and keep their names; members whose link
\* is gone lose theirs by the new coordinator's first batch.
Finish(w, n) ==
    LET s == w.st[n]
        J == s.joined
        max == CHOOSE k \in {J[m].num : m \in DOMAIN J} : \A m \in DOMAIN J : J[m].num <= k
        best == {m \in DOMAIN J : J[m].num = max}
        whole == {m \in best : J[m].last # NoBatch}
        from == CHOOSE m \in (IF whole = {} THEN best ELSE whole) : TRUE
        items == IF "rule_7" \in Fault THEN s.last ELSE J[from].last
        top == IF "rule_7" \in Fault THEN s.num ELSE max
        s1 == IF top > s.num THEN Applied(s, top, items) ELSE s
        least == IF items = NoBatch THEN top ELSE top - 1
        able == {m \in DOMAIN J : J[m].num >= least}
        old == s.lineage
        place(m) == CASE m = n -> Live
                      [] m # n /\ m \notin s.seen -> Out
                      \* The last batch dropped it: it brings its names.
                      [] m # n /\ m \in s.seen /\ s1.view[m] = Out /\ "led_although_dropped" \notin Fault -> Out
                      \* It is bringing its shard, and our log does not have all of it.
                      [] m # n /\ m \in s.seen /\ s1.view[m] = Incomplete /\ "partial_counts" \notin Fault -> Incomplete
                      [] m # n /\ m \in s.seen /\ m \in able -> Live
                      [] m # n /\ m \in s.seen /\ m \notin able ->
                            IF s1.view[m] = Live THEN <<old, top>> ELSE s1.view[m]
        view == [m \in Node |-> place(m)]
        others == LiveIn(view) \ {n}
        s2 == [s1 EXCEPT !.role = "coord", !.lead = n, !.suspect = None, !.joined = <<>>,
                         !.lineage = s.epoch, !.history[old] = top, !.was = 0, !.agreed = FALSE,
                         !.view = view, !.live = view, !.sent = FALSE,
                         !.bases = s1.bases \union {Base(view, n)},
                         !.flight = TRUE, !.wait = others]
    IN  IF max > s.num + 1 \/ (max > s.num /\ (J[from].last = NoBatch \/ Drops(J[from].last, n)))
        \* We were set aside without knowing: the member with the longest log leads.
        THEN Send(Withdraw(w, n), n, from, [t |-> "handover", lineage |-> old])
        ELSE Landed(SendAll([w EXCEPT !.st[n] = s2], n, others,
                        [t |-> "lead", epoch |-> s.epoch, prev |-> old, num |-> top, batch |-> items,
                         view |-> view, bases |-> s2.bases, history |-> s2.history]), n)

MaybeFinish(w, n) == IF w.st[n].role = "candidate" /\ w.st[n].wait = {} THEN Finish(w, n) ELSE w

\* The first rule for silent members, which is not enough, decided at the takeover.
MayFinish(s, n) ==
    SilenceRule = "live" =>
        LET there == (LiveIn(s.view) \intersect s.seen) \union {n}
        IN  there \subseteq DOMAIN s.joined
              \/ 2 * Cardinality(DOMAIN s.joined) > Cardinality(LiveIn(s.view))

Finishes(n) == st[n].alive /\ st[n].role = "candidate" /\ st[n].wait = {} /\ MayFinish(st[n], n)
FinishAlone(n) ==
    /\ Finishes(n)
    /\ Becomes(Finish(World, n))
    /\ UNCHANGED <<up, spent>>

\* Some of the members that it asked are silent.
FinishWithout(n) ==
    /\ st[n].alive /\ st[n].role = "candidate"
    /\ st[n].wait # {} /\ spent.silence < MaxSilence
    /\ MayFinish(st[n], n)
    /\ Becomes(Finish(World, n))
    /\ spent' = [spent EXCEPT !.silence = @ + 1]
    /\ UNCHANGED up

JoinedM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "candidate" /\ s.epoch = msg.epoch
        THEN [w EXCEPT !.st[n].wait = @ \ {m}, !.st[n].joined = (m :> msg.at) @@ @]
        ELSE w

NackM(w, n, m, msg) ==
    IF w.st[n].role = "candidate" /\ w.st[n].epoch = msg.epoch THEN Withdraw(w, n) ELSE w

\* Of a log that it coordinated itself, what was committed: the tail was answered to nobody.
Mine(s, n) == IF s.lineage # 0 /\ owner[s.lineage] = n THEN s.committed ELSE s.num

\* Goes to a higher epoch, alone.
GiveUp(w, n, a) ==
    LET w1 == [w EXCEPT !.st[n] = StepDown(@)]
    IN  Send(w1, n, a, [t |-> "join", lineage |-> w1.st[n].lineage, num |-> Mine(w1.st[n], n)])

\* The same, and tells its followers.
GiveUpAll(w, n, a, e) ==
    GiveUp(SendAll(w, n, LiveIn(w.st[n].live) \ {n, a}, [t |-> "follow", lead |-> a, epoch |-> e]), n, a)

FollowM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role # "follower" \/ s.lead # m \/ msg.epoch < s.epoch THEN w
        ELSE IF msg.lead \in s.seen THEN GiveUp(w, n, msg.lead)
        ELSE [w EXCEPT !.st[n] = StepDown(@)]

FoundM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord"
        THEN IF msg.epoch > s.lineage /\ msg.lead \in s.seen /\ ~s.flight
             THEN GiveUpAll(w, n, msg.lead, msg.epoch) ELSE w
        ELSE Send(w, n, m, [t |-> "follow", lead |-> msg.lead, epoch |-> msg.epoch])

ApartM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role # "candidate" \/ s.epoch # msg.epoch THEN w
        ELSE IF msg.lineage > s.lineage /\ msg.lead # None /\ msg.lead \in s.seen
        THEN GiveUp(Withdraw(w, n), n, msg.lead)
        ELSE [w EXCEPT !.st[n].wait = @ \ {m}]

HandoverM(w, n, m, msg) ==
    LET s == w.st[n]
        free == {e \in Epoch : e > s.epoch /\ w.owner[e] = None}
    IN  IF s.role \in {"follower", "orphan"} /\ s.lineage = msg.lineage /\ free # {}
        THEN Stand(w, n, CHOOSE e \in free : \A f \in free : e <= f, TRUE)
        ELSE w

LeadM(w, n, m, msg) ==
    LET s == w.st[n]
        s1 == IF s.num = msg.num THEN s ELSE Applied(s, msg.num, msg.batch)
        fits == s.num = msg.num \/ s.num = msg.num - 1
    IN  IF msg.epoch < s.epoch THEN Refuse(w, n, m)
        ELSE IF s.role # "coord" /\ fits /\ s.num = msg.num - 1 /\ Drops(msg.batch, n)
        THEN GiveUp(w, n, m)
        ELSE IF s.role # "coord" /\ fits /\ s.lineage \in {msg.prev, msg.epoch}
        THEN Send([w EXCEPT !.st[n] = [StepDown(s1) EXCEPT
                      !.role = "follower", !.lead = m, !.suspect = None, !.epoch = msg.epoch,
                      !.lineage = msg.epoch, !.view = msg.view, !.live = msg.view, !.bases = msg.bases,
                      !.history = msg.history]],
                  n, m, [t |-> "ack", epoch |-> msg.epoch, num |-> msg.num])
        ELSE Send(w, n, m, [t |-> "gap", epoch |-> msg.epoch])

\* A higher epoch rules.  A coordinator that has a batch out drops it, as no client was answered
\* about it; if that epoch has no coordinator, only a higher one gets its members back.
Deposed(w, n, m, msg) ==
    LET s == w.st[n]
        free == {e \in Epoch : e > s.epoch /\ e > msg.epoch /\ w.owner[e] = None}
    IN  IF s.role # "coord" \/ msg.epoch <= s.lineage THEN w
        ELSE IF msg.lead # None
             THEN IF msg.lead \notin s.seen THEN w
                  ELSE IF s.flight THEN GiveUp(w, n, msg.lead) ELSE GiveUpAll(w, n, msg.lead, msg.epoch)
        ELSE IF free # {} THEN Stand(w, n, CHOOSE e \in free : \A f \in free : e <= f, FALSE)
        ELSE w

RefusedM(w, n, m, msg) == Deposed(w, n, m, msg)

NotLeadM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "follower" /\ s.lead = m THEN [w EXCEPT !.st[n] = StepDown(@)] ELSE w

-----------------------------------------------------------------------------
(* Members that are set aside, and that come back by a snapshot.           *)

Demote(s, S) ==
    [s EXCEPT !.live = [m \in Node |-> IF m \in S /\ @[m] = Live THEN <<s.lineage, s.num>> ELSE @[m]],
              !.wait = @ \ S]

\* A snapshot, in one message, for a member whose shard our log has.
Adopt(w, n, m) ==
    LET s == w.st[n]
    IN  IF ~IsAside(s.live[m]) \/ s.live[m] = Incomplete THEN w
        ELSE Send([w EXCEPT !.st[n].syncs = @ \union {m}], n, m,
             [t |-> "adopt", epoch |-> s.lineage, num |-> s.num, table |-> s.table, session |-> s.session,
              place |-> s.live[m], token |-> s.token, clashes |-> s.clashes, effects |-> s.effects, view |-> s.view, bases |-> s.bases, history |-> s.history])

SetAside(w, n, m) == Landed(Adopt([w EXCEPT !.st[n] = Demote(@, {m})], n, m), n)

\* Whether a log of this epoch and history, with this place of a member, has all that the member has at a
\* position of its own log: this log continues that one, or the member brought its shard.  (What a member has
\* beyond its place in an epoch that ended may come from a coordinator that this log does not know.)
Covers(place, epoch, history, lineage, num) ==
    /\ IsAside(place) /\ place # Incomplete
    /\ IF lineage = epoch THEN TRUE
       ELSE IF lineage = place[1] /\ "covers_ended" \notin Fault THEN num <= place[2]
       ELSE place = <<lineage, num>> \/ num <= history[lineage]

\* The coordinator has waited too long for some members.
Slow(n, S) ==
    LET s == st[n]
        rest == LiveIn(s.live) \ S
    IN  /\ spent.silence < MaxSilence
        /\ s.alive /\ s.role = "coord" /\ s.flight /\ S # {} /\ S \subseteq s.wait
        /\ SilenceRule = "live" => 2 * Cardinality(rest) >= Cardinality(LiveIn(s.live))
        /\ Becomes(Landed([World EXCEPT !.st[n] = Demote(@, S)], n))
        /\ spent' = [spent EXCEPT !.silence = @ + 1]
        /\ UNCHANGED up

GapM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role # "coord" \/ s.lineage # msg.epoch THEN w
        ELSE IF s.live[m] # Out THEN SetAside(w, n, m)
        ELSE Send(w, n, m, [t |-> "dropped", epoch |-> s.lineage])

\* A member comes by itself.  Whether we have all that it has is a matter of merges; without merges we do.
JoinM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord" THEN TakeIn(w, n, m, msg)
        ELSE IF s.role = "follower" /\ s.lead # m
        THEN Send(w, n, m, [t |-> "low", epoch |-> s.epoch, lead |-> s.lead])
        ELSE w

AdoptM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF msg.epoch < s.epoch THEN Refuse(w, n, m)
        ELSE IF s.role = "coord" THEN IF s.flight THEN GiveUp(w, n, m) ELSE GiveUpAll(w, n, m, msg.epoch)
        \* We have something that the log lacks: we went on since we joined.
        ELSE IF /\ ~Covers(msg.place, msg.epoch, msg.history, s.lineage, Mine(s, n))
                /\ "adopt_unchecked" \notin Fault
        THEN GiveUp(w, n, m)
        ELSE Send([w EXCEPT !.st[n] = [StepDown(s) EXCEPT
                      !.role = "follower", !.lead = m, !.suspect = None, !.epoch = msg.epoch,
                      !.lineage = msg.epoch, !.num = msg.num, !.last = NoBatch, !.committed = 0,
                      !.table = msg.table, !.token = msg.token, !.session = msg.session,
                      !.clashes = msg.clashes, !.effects = msg.effects, !.view = msg.view, !.live = msg.view,
                      !.bases = msg.bases, !.history = msg.history]],
                  n, m, [t |-> "synced", epoch |-> msg.epoch])

\* It has all that was sent, and later batches reach it in order: it counts from the next batch on.
SyncedM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord" /\ s.lineage = msg.epoch /\ m \in s.syncs /\ s.live[m] # Out
        THEN LET o == s.held[m]
                 w1 == [w EXCEPT !.st[n].syncs = @ \ {m}, !.st[n].live[m] = Live, !.st[n].held[m] = 0]
             IN  IF o = 0 THEN w1 ELSE Enqueue(w1, n, o)
        ELSE w

-----------------------------------------------------------------------------
(* Heartbeats, and who says hello.                                         *)

\* Fresh: of a new process.
Hello(s, fresh) == [t |-> "hello", lineage |-> s.lineage, num |-> s.num, epoch |-> s.epoch, lead |-> s.lead, fresh |-> fresh]

HeartbeatM(w, n, m, msg) ==
    LET s == w.st[n]
        E == msg.epoch
        hello(v) == Send(v, n, m, Hello(v.st[n], FALSE))
    IN  CASE s.role = "follower" /\ s.lead = m /\ s.lineage = E ->
                Send(IF msg.committed = s.num THEN Known(Reply(w, n), n) ELSE w, n, m, [t |-> "hb_ack", epoch |-> E])
          \* The coordinator that we want to replace lives.
          [] s.role = "candidate" /\ s.lineage = E ->
                IF DOMAIN s.joined = {n} THEN hello(Withdraw(w, n)) ELSE w
          [] E < s.epoch /\ ~(s.role = "candidate" /\ s.lineage = E) ->
                Send(w, n, m, [t |-> "low", epoch |-> s.epoch, lead |-> s.lead])
          [] s.role = "orphan" /\ E >= s.epoch /\ s.lineage = E -> hello([w EXCEPT !.st[n].suspect = None])
          [] s.role \in {"orphan", "boots"} /\ E >= s.epoch /\ s.lineage # E -> GiveUp(w, n, m)
          [] s.role = "coord" /\ E > s.epoch -> IF s.flight THEN w ELSE GiveUpAll(w, n, m, E)
          [] s.role = "follower" /\ s.lead = m /\ s.lineage < E /\ s.epoch <= E ->
                hello([w EXCEPT !.st[n] = StepDown(@)])
          [] s.role = "follower" /\ s.lead # m /\ E > s.epoch ->
                Send(w, n, s.lead, [t |-> "found", lead |-> m, epoch |-> E])
          [] OTHER -> w

HeartbeatAckM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord" /\ s.lineage = msg.epoch /\ IsAside(s.live[m]) /\ m \notin s.syncs
        THEN Adopt(w, n, m)
        ELSE w

LowM(w, n, m, msg) == IF w.st[n].flight THEN w ELSE Deposed(w, n, m, msg)

\* Whether a log of an epoch is ours but for its last batch: no batch was ordered in the epochs after it.
IsOfLog(lineage, s) == lineage = s.lineage \/ s.history[lineage] = s.num

\* The process of a member is a new one, or did not see its coordinator, or has yet to hear that we lead.  If it
\* is one batch behind it gets the last batch, otherwise a snapshot.
HelloM(w, n, m, msg) ==
    LET s == w.st[n]
        behind == s.num - msg.num \in {0, 1}
    IN  CASE s.role = "coord" /\ s.live[m] = Live ->
                \* It said hello before it had our `lead`, which it will answer.
                IF ~msg.fresh /\ msg.lineage < s.lineage /\ msg.epoch <= s.lineage THEN w
                ELSE IF ~msg.fresh /\ msg.lead = n THEN w
                ELSE IF behind /\ IsOfLog(msg.lineage, s)
                THEN Send(w, n, m, [t |-> "lead", epoch |-> s.lineage, prev |-> msg.lineage, num |-> s.num,
                                    batch |-> s.last, view |-> s.view, bases |-> s.bases,
                                    history |-> s.history])
                ELSE SetAside(w, n, m)
          \* It gave up bringing its shard, or died meanwhile: it begins anew.
          [] s.role = "coord" /\ s.live[m] = Incomplete -> Send(w, n, m, [t |-> "dropped", epoch |-> s.lineage])
          [] s.role = "coord" /\ IsAside(s.live[m]) -> IF msg.fresh \/ m \notin s.syncs THEN Adopt(w, n, m) ELSE w
          [] s.role = "coord" /\ m \in s.syncs /\ ~msg.fresh -> w
          \* Our link broke and came back: we have dropped it.  (Another node gets a heartbeat, as always.)
          [] s.role = "coord" /\ msg.lineage = s.lineage -> Send(w, n, m, [t |-> "dropped", epoch |-> s.lineage])
          [] s.role = "follower" /\ s.lead = m /\ msg.fresh -> [w EXCEPT !.st[n] = StepDown(@)]
          [] s.role = "candidate" /\ m \in s.wait /\ msg.fresh ->
                Send(w, n, m, [t |-> "collect", epoch |-> s.epoch, lineage |-> s.lineage, agreed |-> s.agreed])
          [] OTHER -> w

DroppedM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.lineage = msg.epoch /\ s.epoch = msg.epoch /\ (s.role = "orphan" \/ (s.role = "follower" /\ s.lead = m))
        THEN GiveUp(w, n, m) ELSE w

-----------------------------------------------------------------------------
(* A member's shard: its rows, its session and its position.               *)

Shard(s, n) ==
    [rows |-> {r \in Op : \E x \in Name : r \in {s.table[x]} \union s.clashes[x] /\ Home(r) = n},
     token |-> s.token, place |-> <<s.lineage, Mine(s, n)>>, session |-> s.session[n]]

\* A joining member brings the piece that it is asked for, while it joins the one that asks.  Piece 1 may hold
\* any of its rows, piece 2 has the rest.
BringM(w, n, m, msg) ==
    LET s == w.st[n]
        shard == Shard(s, n)
        part == {r \in shard.rows : r % 2 = msg.piece % 2}
        item(rows, last) == [t |-> "shard", member |-> n, first |-> msg.piece = 1, last |-> last, rows |-> rows,
                             token |-> shard.token, place |-> shard.place, session |-> shard.session]
    IN  IF s.role \notin {"orphan", "boots"} THEN w
        ELSE Send(w, n, m, [t |-> "shard", epoch |-> msg.epoch,
                            item |-> IF Pieces = 1 THEN item(shard.rows, TRUE) ELSE item(part, msg.piece = 2)])

ShardM(w, n, m, msg) ==
    LET s == w.st[n]
    IN  IF s.role = "coord" /\ s.lineage = msg.epoch /\ m \in s.seen
        THEN [w EXCEPT !.st[n].specials = {i \in @ : i.t # "shard" \/ i.member # m} \union {msg.item}]
        ELSE w

-----------------------------------------------------------------------------
(* Links, nodes and processes that go.                                     *)

\* Messages on their way arrive before the link's end is noticed, or never.
Nodedown(n, m) ==
    LET s == st[n]
        s1 == [Forgotten(s, m) EXCEPT !.seen = @ \ {m}, !.syncs = @ \ {m},
                        !.specials = {i \in @ : i.t # "shard" \/ i.member # m}]
        w == [World EXCEPT !.net[m][n] = <<>>]
    IN  /\ s.alive /\ m \in s.seen /\ {n, m} \notin up
        /\ Becomes(CASE s.role = "coord" ->
                          Landed([w EXCEPT !.st[n] = [s1 EXCEPT !.live[m] = Out, !.wait = @ \ {m}]], n)
                     [] s.role = "follower" /\ s.lead = m -> [w EXCEPT !.st[n] = StepDown(s1)]
                     [] s.role = "candidate" ->
                          [w EXCEPT !.st[n] = [s1 EXCEPT !.wait = @ \ {m},
                              !.joined = [k \in DOMAIN @ \ {m} |-> @[k]]]]
                     [] OTHER -> [w EXCEPT !.st[n] = s1])
        /\ UNCHANGED <<up, spent>>

Break(n, m) ==
    /\ spent.break < MaxBreak /\ n # m /\ {n, m} \in up
    /\ up' = up \ {{n, m}}
    /\ spent' = [spent EXCEPT !.break = @ + 1]
    /\ UNCHANGED <<st, net, ops, owner>>

Kill(n) ==
    /\ spent.kill < MaxKill /\ st[n].alive
    /\ st' = [st EXCEPT ![n] = Dead(@)]
    /\ net' = [a \in Node |-> [net[a] EXCEPT ![n] = <<>>]]
    /\ up' = {l \in up : n \notin l}
    /\ ops' = [o \in DOMAIN ops |->
                 CASE ops[o].client = n /\ ops[o].status = "waits" -> [ops[o] EXCEPT !.status = "unknown"]
                   [] Home(o) = n /\ ops[o].status = "yes" -> [ops[o] EXCEPT !.status = "dead"]
                   [] OTHER -> ops[o]]
    /\ spent' = [spent EXCEPT !.kill = @ + 1]
    /\ UNCHANGED owner

\* The process dies, and its successor finds in the tables what has to survive.
Crashed(w, n) ==
    LET s == Volatile(w.st[n])
    IN  SendAll([w EXCEPT !.st[n] = s, !.net = [a \in Node |-> [@[a] EXCEPT ![n] = <<>>]]], n, s.seen, Hello(s, TRUE))
Crashes == spent.crash < MaxCrash /\ spent' = [spent EXCEPT !.crash = @ + 1] /\ UNCHANGED up

Crash(n) == st[n].alive /\ Becomes(Crashed(World, n)) /\ Crashes

\* It dies in the middle of a step: its own table has the batch, and some members get it.
CrashProposing(n) ==
    /\ spent.crash < MaxCrash
    /\ Proposes(st[n])
    /\ \E c \in Choices(st[n]) : \E To \in SUBSET (LiveIn(st[n].live) \ {n}) :
          LET w == Proposed(World, n, c, To)
          IN  w.st[n].flight /\ Becomes(Crashed(w, n))
    /\ Crashes

-----------------------------------------------------------------------------
Handle(w, n, m, msg) ==
    CASE msg.t = "relay" -> RelayM(w, n, m, msg)
      [] msg.t = "relayed" -> RelayedM(w, n, m, msg)
      [] msg.t = "req" -> ReqM(w, n, m, msg)
      [] msg.t = "answers" -> AnswersM(w, n, m, msg)
      [] msg.t = "batch" -> BatchM(w, n, m, msg)
      [] msg.t = "ack" -> AckM(w, n, m, msg)
      [] msg.t = "commit" -> CommitM(w, n, m, msg)
      [] msg.t = "collect" -> CollectM(w, n, m, msg)
      [] msg.t = "joined" -> JoinedM(w, n, m, msg)
      [] msg.t = "nack" -> NackM(w, n, m, msg)
      [] msg.t = "apart" -> ApartM(w, n, m, msg)
      [] msg.t = "handover" -> HandoverM(w, n, m, msg)
      [] msg.t = "lead" -> LeadM(w, n, m, msg)
      [] msg.t = "refused" -> RefusedM(w, n, m, msg)
      [] msg.t = "not_lead" -> NotLeadM(w, n, m, msg)
      [] msg.t = "gap" -> GapM(w, n, m, msg)
      [] msg.t = "follow" -> FollowM(w, n, m, msg)
      [] msg.t = "found" -> FoundM(w, n, m, msg)
      [] msg.t = "dropped" -> DroppedM(w, n, m, msg)
      [] msg.t = "bring" -> BringM(w, n, m, msg)
      [] msg.t = "shard" -> ShardM(w, n, m, msg)
      [] msg.t = "join" -> JoinM(w, n, m, msg)
      [] msg.t = "adopt" -> AdoptM(w, n, m, msg)
      [] msg.t = "synced" -> SyncedM(w, n, m, msg)
      [] msg.t = "hb" -> HeartbeatM(w, n, m, msg)
      [] msg.t = "hb_ack" -> HeartbeatAckM(w, n, m, msg)
      [] msg.t = "low" -> LowM(w, n, m, msg)
      [] msg.t = "hello" -> HelloM(w, n, m, msg)

InStep(n, m) == st[m].role = "follower" /\ st[m].lead = n /\ st[m].lineage = st[n].lineage
                /\ st[m].epoch = st[n].lineage

\* A heartbeat is sent where it, or its answer, may be news, and where the link is idle.
News(n, m, hb) ==
    LET w1 == HeartbeatM(World, m, n, hb)
        w2 == IF w1.net[m][n] = <<>> THEN w1 ELSE Handle(w1, n, m, w1.net[m][n][1])
    IN  w1.st # st \/ w2.st # st \/ w2.net[n] # net[n]

Heartbeat(n, m) ==
    LET hb == [t |-> "hb", epoch |-> st[n].lineage,
               committed |-> IF st[n].flight THEN st[n].num - 1 ELSE st[n].num]
    IN  /\ st[n].alive /\ st[n].role = "coord" /\ m \in st[n].seen /\ {n, m} \in up
        /\ \/ ~InStep(n, m)
           \/ st[m].effects \ st[m].told # {}
           \/ IsAside(st[n].live[m]) /\ m \notin st[n].syncs
        /\ net[n][m] = <<>> /\ net[m][n] = <<>>
        /\ News(n, m, hb)
        /\ Becomes(Send(World, n, m, hb))
        /\ UNCHANGED <<up, spent>>

Message(m, n) ==
    /\ net[m][n] # <<>> /\ st[n].alive /\ m \in st[n].seen
    /\ Becomes(Handle([World EXCEPT !.net[m][n] = Tail(@)], n, m, Head(net[m][n])))
    /\ UNCHANGED <<up, spent>>

\* A step of the core ends with these: the next list goes out, the next batch is made, an election ends.
\* So they come before anything else happens.
Urgent(n) ==
    \/ Flushes(st[n]) \/ Proposes(st[n]) \/ Finishes(n)
    \/ \E a \in st[n].answers : UpTo(st[n], a.at)
StepEnds(n) ==
    \/ Flush(n) \/ Propose(n) \/ FinishAlone(n)
    \/ \E a \in st[n].answers : AnswerRelayed(n, a)

Rest == {n \in Node : Urgent(n)} = {}

\* The steps without a fault.
Progress ==
    \/ \E n \in Node : StepEnds(n)
    \/ /\ Rest
       /\ \/ \E n \in Node : Candidate(n)
          \/ \E m, n \in Node : Message(m, n) \/ Nodedown(n, m) \/ Heartbeat(n, m)
          \/ \E o \in DOMAIN ops : RelayAgain(o) \/ RelayEnds(o)

\* From here on nothing fails, and no client asks for anything (for liveness).
Calm == Rest /\ ~spent.calm /\ spent' = [spent EXCEPT !.calm = TRUE] /\ UNCHANGED <<st, net, up, ops, owner>>

\* Some models let faults and calls come in certain states only.
FaultsCome == TRUE
CallsCome == TRUE

Faults == ~spent.calm /\ FaultsCome /\
    \/ \E n \in Node : CrashProposing(n)
    \/ /\ Rest
       /\ \/ \E n \in Node : Kill(n) \/ Crash(n) \/ Silent(n) \/ FinishWithout(n)
          \/ \E n, m \in Node : Break(n, m)
          \/ \E n \in Node : \E S \in SUBSET st[n].wait : Slow(n, S)

Clients == ~spent.calm /\ CallsCome /\ Rest /\ \E c, h \in Node, x \in Name, k \in Kinds : Operation(c, k, x, h)

Next == Progress \/ Faults \/ Clients
Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Without merges.                                                         *)

NoItemOrdered(s, num, item, e) == s
NoItemLanded(w, n) == w
NoKnown(w, n) == w
NoTakeIn(w, n, m, msg) == IF w.st[n].live[m] # Out THEN SetAside(w, n, m) ELSE w

-----------------------------------------------------------------------------
(* What holds.                                                             *)

Registered(o) == ops[o].kind = "register" /\ ops[o].status = "yes" /\ ~ops[o].gone
NoLinkLost == spent.break = 0

\* At most one process was answered that it has a name, unless a link was lost.
OneWinner ==
    NoLinkLost =>
        \A o, p \in DOMAIN ops :
            (o # p /\ ops[o].name = ops[p].name /\ Registered(o) /\ Registered(p))
                => ~st[Home(o)].alive \/ ~st[Home(p)].alive

\* The home's own copy of its shard has every registration that was answered.
AnsweredAtHome ==
    \A o \in DOMAIN ops :
        (Registered(o) /\ st[Home(o)].alive) => st[Home(o)].table[ops[o].name] = o

\* Every live member of the home's component has it too.  (A home that has just caught up counts from the
\* batch on whose view says so.)
AnsweredEverywhere ==
    \A o \in DOMAIN ops : \A n, c \in Node :
        (/\ Registered(o) /\ st[Home(o)].alive
         /\ st[n].alive /\ st[n].role = "follower" /\ st[n].lead = c
         /\ st[c].role = "coord" /\ st[c].live[n] = Live /\ st[n].lineage = st[c].lineage
         /\ \A b \in st[c].bases : n \in b.live /\ Home(o) \in b.live
         /\ st[Home(o)].lineage = st[c].lineage /\ st[c].live[Home(o)] = Live)
            => st[n].table[ops[o].name] = o \/ o \in st[n].clashes[ops[o].name]

\* A standing registration keeps its token, or gets a higher one (of a batch that is committed).
TokensGrow ==
    [][\A n \in Node : \A x \in Name :
          (st[n].table[x] # 0 /\ st'[n].table[x] = st[n].table[x] /\ Cardinality(st[n].bases) = 1)
              => \/ st'[n].token[x] = st[n].token[x]
                 \/ st'[n].token[x][1] > st[n].token[x][1]
                 \/ st'[n].token[x][1] = st[n].token[x][1] /\ st'[n].token[x][2] > st[n].token[x][2]]_vars

\* `no` means not applied: no member has it, but in a batch that is not committed.
NoMeansNo ==
    \A n \in Node : \A x \in Name :
        LET o == st[n].table[x]
        IN  (o # 0 /\ ops[o].status = "no") => st[n].last.op = o

\* Members at one position of one log have the same rows and sessions.
SamePrefix ==
    \A n, m \in Node :
        (st[n].alive /\ st[m].alive /\ st[n].lineage = st[m].lineage /\ st[n].num = st[m].num)
            => /\ st[n].table = st[m].table /\ st[n].session = st[m].session
               /\ st[n].token = st[m].token /\ st[n].clashes = st[m].clashes /\ st[n].effects = st[m].effects

\* Live members have all that is committed, and so differ by one batch at most.  (A member that
\* has just caught up counts from the batch on whose view says so.)
OneBatchApart ==
    \A n, c \in Node :
        (/\ st[n].alive /\ st[n].role = "follower" /\ st[n].lead = c /\ st[c].role = "coord"
         /\ st[n].lineage = st[c].lineage /\ st[c].live[n] = Live
         /\ \A b \in st[c].bases : n \in b.live)
            => st[n].num \in (IF st[c].flight THEN {st[c].num, st[c].num - 1} ELSE {st[c].num})

\* One coordinator per epoch: no member leads an epoch that another took.
OneCoordinator ==
    \A n \in Node : (st[n].alive /\ st[n].role = "coord") => owner[st[n].lineage] = n

Exhausted == \A e \in Epoch : owner[e] # None
Waits(o) == o \in DOMAIN ops /\ ops[o].status = "waits"
AllEnded == Exhausted \/ \A o \in Op : ~Waits(o)

\* Every operation ends: with an answer, or unknown if its client or its home died.  (Elections without a
\* result may use up the model's epochs.)
\* The only assumption is that some possible step is taken, whichever: steps go on for ever, or end where none is
\* possible.  There TLC finds a deadlock, unless all is as it should be.
LiveNext == Next \/ Calm \/ (AllEnded /\ UNCHANGED vars)
LiveSpec == Init /\ [][LiveNext]_vars
GoesOn == []<><<TRUE>>_vars
Ends == GoesOn => \A o \in Op : Waits(o) ~> (~Waits(o) \/ Exhausted)

\* States with longer queues are not followed any further.
Bound == \A a, b \in Node : Len(net[a][b]) <= 6

\* Faults come while no message, or at most two, are on their way (constraints of some models).
OnTheirWay == LET Sum[L \in SUBSET (Node \X Node)] ==
                      IF L = {} THEN 0 ELSE LET l == CHOOSE x \in L : TRUE IN Len(net[l[1]][l[2]]) + Sum[L \ {l}]
              IN  Sum[Node \X Node]
InQuiet0 == spent' # spent => OnTheirWay = 0
AllInQuiet == (spent' # spent \/ Len(ops') # Len(ops)) => OnTheirWay = 0   \* and so do calls
InQuiet2 == spent' # spent => OnTheirWay <= 2

\* Or when the one before has been dealt with: every member leads or follows, and knows who is there.
Settled ==
    /\ OnTheirWay = 0
    /\ \A n \in Node : st[n].alive =>
        /\ st[n].role \in {"coord", "follower"} /\ ~st[n].flight /\ st[n].syncs = {}
        /\ \A m \in Node : m \in st[n].seen <=> {n, m} \in up
        /\ st[n].role = "follower" => InStep(st[n].lead, n)

\* Epochs are taken one after the other.
EpochsInOrder == \A e \in Epoch : (e > 2 /\ owner[e] # None) => owner[e - 1] # None

\* To find a counterexample sooner: the first operation is answered before a member loses its coordinator.
FirstAnswered ==
    (ops = <<>> \/ (ops # <<>> /\ ops[1].status = "waits"))
        => \A n \in Node : st[n].alive => st[n].role \in {"coord", "follower"}

Symmetry == {p @@ q : p \in Permutations(Node \ {First}), q \in Permutations(Name)}
=============================================================================
