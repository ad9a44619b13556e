----------------------------- MODULE SderlMerge -----------------------------
(***************************************************************************)
(* Components that become one.  Extends writes and elections by links that *)
(* heal, nodes that boot, members that go on alone, shards that members    *)
(* bring, and clashes with their effects.                                  *)
(***************************************************************************)
EXTENDS SderlWrites

CONSTANTS
    MaxHeal,          \* links that come back
    MaxBoot           \* nodes that come back, empty

-----------------------------------------------------------------------------
(* The higher component.                                                   *)

\* Whether our copy of a joining member's shard is right.
Covered(s, m, lineage, num) ==
    \/ "covers_all" \in Fault /\ IsAside(s.live[m])
    \/ Covers(s.live[m], s.lineage, s.history, lineage, num)

\* The member takes the snapshot, or brings its shard first.
JoinTakenIn(w, n, m, msg) ==
    LET w1 == [w EXCEPT !.st[n] = Forgotten(Demote(@, {m}), m)]
        s == w1.st[n]
        w2 == IF Covered(s, m, msg.lineage, msg.num) THEN Adopt(w1, n, m)
              ELSE Send([w1 EXCEPT !.st[n].syncs = @ \ {m}], n, m, [t |-> "bring", epoch |-> s.lineage, piece |-> 1])
    IN  Landed(w2, n)

\* A piece of a shard.  The first one replaces all rows that our log had for that home, the last one has
\* the position of the shard.  A name that is held by another process is a clash.
ShardOrdered(s, item, e) ==
    LET m == item.member
        first(S) == IF S = {} THEN 0 ELSE CHOOSE r \in S : \A q \in S : r <= q
        old(r) == item.first /\ r # 0 /\ Home(r) = m
        kept(x) == {r \in {s.table[x]} \union s.clashes[x] : r # 0 /\ ~old(r)}
        new(x) == {r \in item.rows : ops[r].name = x}
        row(x) == IF s.table[x] # 0 /\ ~old(s.table[x]) THEN s.table[x]
                  ELSE IF kept(x) # {} THEN first(kept(x)) ELSE first(new(x))
        place == IF item.last THEN item.place ELSE Incomplete
    IN  [s EXCEPT !.table = [x \in Name |-> row(x)],
                  !.token = [x \in Name |->
                      IF row(x) = 0 THEN <<0, 0>>
                      ELSE IF row(x) = s.table[x] THEN @[x]
                      ELSE IF row(x) \in item.rows THEN item.token[x] ELSE <<e, s.num>>],
                  !.clashes = [x \in Name |-> (kept(x) \union new(x)) \ {row(x)}],
                  !.session = IF item.last THEN [@ EXCEPT ![m] = item.session] ELSE @,
                  !.view[m] = place,
                  !.live[m] = IF s.live[m] = Live THEN Live ELSE place]

\* The winner of a clash gets a token above both; the loser is kept until its home has told it.
SettleOrdered(s, num, item, e) ==
    LET x == item.name
        all == {s.table[x]} \union s.clashes[x]
    IN  IF all # item.rows THEN s
        ELSE [s EXCEPT !.table[x] = item.keep,
                       !.token[x] = <<e, num>>,
                       !.clashes[x] = {},
                       !.effects = IF "effects_in_memory" \in Fault THEN @ ELSE @ \union (all \ {item.keep})]

\* A home has told a loser.
MergeItemOrdered(s, num, item, e) ==
    CASE item.t = "shard" -> ShardOrdered(s, item, e)
      [] item.t = "settle" -> SettleOrdered(s, num, item, e)
      [] item.t = "done" -> [s EXCEPT !.effects = @ \ {item.op}]

\* Once a piece is committed, the next one is asked for; after the last one comes the snapshot.
MergeItemLanded(w, n) ==
    LET s == w.st[n]
        i == s.last.item
        piece == [t |-> "bring", epoch |-> s.lineage, piece |-> 2]
        \* Effects that only this process knows.
        told == {Home(o) : o \in s.memory}
    IN  CASE i.t = "shard" /\ s.live[i.member] # Out ->
                IF i.last THEN Adopt(w, n, i.member) ELSE Send(w, n, i.member, piece)
          [] i.t = "settle" /\ s.memory # {} ->
                [w EXCEPT !.st = [h \in Node |-> IF h \in told
                                                 THEN [@[h] EXCEPT !.told = @ \union {o \in s.memory : Home(o) = h}]
                                                 ELSE @[h]],
                          !.st[n].memory = {}]
          [] OTHER -> w

\* The home of a loser tells it when the settling is committed, and then has the effect removed.
RunEffects(w, n) ==
    LET s == w.st[n]
    IN  [w EXCEPT !.st[n].told = @ \union {o \in s.effects : Home(o) = n}]

Done(n, o) ==
    /\ st[n].alive /\ st[n].role = "follower" /\ o \in st[n].told /\ o \in st[n].effects
    /\ st[st[n].lead].role = "coord" /\ st[st[n].lead].lineage = st[n].lineage
    /\ [t |-> "done", op |-> o] \notin st[st[n].lead].specials
    /\ o \in st[st[n].lead].effects
    \* In the code by the home's own list; here in one step.
    /\ Becomes([World EXCEPT !.st[st[n].lead].specials = @ \union {[t |-> "done", op |-> o]}])
    /\ UNCHANGED <<up, spent>>

DoneHere(n, o) ==
    /\ st[n].alive /\ st[n].role = "coord" /\ ~st[n].flight /\ o \in st[n].told /\ o \in st[n].effects
    /\ [t |-> "done", op |-> o] \notin st[n].specials
    /\ Becomes([World EXCEPT !.st[n].specials = @ \union {[t |-> "done", op |-> o]}])
    /\ UNCHANGED <<up, spent>>

\* The resolver has decided: here for the registration that was asked for first.  The homes of both
\* rows must be live: otherwise a shard would change without its member, which would bring it as it was,
\* with the old token, if it goes on with another epoch.
Resolve(n, x) ==
    LET s == st[n]
        all == {s.table[x]} \union s.clashes[x]
        keep == CHOOSE r \in all : \A q \in all : r <= q
        item == [t |-> "settle", name |-> x, rows |-> all, keep |-> keep]
    IN  /\ s.alive /\ s.role = "coord" /\ ~s.flight /\ s.clashes[x] # {} /\ s.specials = {}
        /\ "settle_early" \in Fault \/ \A r \in all : s.view[Home(r)] = Live /\ s.live[Home(r)] = Live
        /\ Becomes([World EXCEPT !.st[n].specials = @ \union {item},
                                 !.st[n].memory = IF "effects_in_memory" \in Fault THEN @ \union (all \ {keep}) ELSE @,
                                 !.ops = [o \in DOMAIN ops |-> IF o \in all \ {keep} THEN [ops[o] EXCEPT !.gone = TRUE]
                                                               ELSE ops[o]]])
        /\ UNCHANGED <<up, spent>>

-----------------------------------------------------------------------------
(* Members without a component.                                            *)

\* All members that it sees follow a coordinator that it does not see, or it sees none: it goes on alone,
\* without all others.
Secede(n) ==
    LET s == st[n]
        view == [m \in Node |-> IF m = n THEN Live ELSE Out]
    IN  /\ s.alive /\ s.role = "orphan"
        \* (Its death is noticed long before a member goes on alone.)
        /\ \A m \in s.seen : st[m].role = "follower" /\ st[m].lead \notin s.seen \union {n} /\ st[st[m].lead].alive
        /\ \E e \in Epoch :
            /\ e > s.epoch /\ owner[e] = None
            /\ Becomes(Landed([World EXCEPT
                   !.owner[e] = n,
                   !.st[n] = [StepDown(s) EXCEPT
                       !.role = "coord", !.lead = n, !.epoch = e, !.lineage = e, !.history[s.lineage] = s.num,
                       !.view = view, !.live = view, !.bases = {Base(view, n)}, !.flight = TRUE, !.suspect = None]], n))
        /\ UNCHANGED <<up, spent>>

Heal(n, m) ==
    /\ spent.heal < MaxHeal /\ n # m /\ {n, m} \notin up /\ st[n].alive /\ st[m].alive
    /\ m \notin st[n].seen /\ n \notin st[m].seen
    /\ up' = up \union {{n, m}}
    /\ st' = [st EXCEPT ![n].seen = @ \union {m}, ![m].seen = @ \union {n}]
    /\ net' = [net EXCEPT ![n][m] = <<>>, ![m][n] = <<>>]
    /\ spent' = [spent EXCEPT !.heal = @ + 1]
    /\ UNCHANGED <<ops, owner>>

\* A node that comes back knows nothing.  It has a link to all that live, and waits to be taken in.
Boot(n) ==
    LET there == {m \in Node : st[m].alive}
        s == [StartOf(n, n) EXCEPT !.role = "boots", !.lead = None, !.epoch = 0, !.lineage = 0,
                  !.view = [m \in Node |-> IF m = n THEN Live ELSE Out],
                  !.live = [m \in Node |-> IF m = n THEN Live ELSE Out],
                  !.bases = {}, !.seen = there]
    IN  /\ spent.boot < MaxBoot /\ ~st[n].alive
        /\ \A m \in there : n \notin st[m].seen
        /\ st' = [m \in Node |-> IF m = n THEN s ELSE IF m \in there THEN [st[m] EXCEPT !.seen = @ \union {n}] ELSE st[m]]
        /\ up' = up \union {{n, m} : m \in there}
        /\ net' = [net EXCEPT ![n] = [m \in Node |-> <<>>]]
        /\ spent' = [spent EXCEPT !.boot = @ + 1]
        /\ UNCHANGED <<ops, owner>>

-----------------------------------------------------------------------------
MergeProgress ==
    \/ Progress
    \/ /\ Rest
       /\ \E n \in Node :
            \/ \E x \in Name : Resolve(n, x)
            \/ \E o \in DOMAIN ops : Done(n, o) \/ DoneHere(n, o)
            \/ Secede(n)

MergeFaults ==
    \/ Faults
    \/ ~spent.calm /\ FaultsCome /\ Rest /\ \E n \in Node : Boot(n) \/ \E m \in Node : Heal(n, m)

MergeNext == MergeProgress \/ MergeFaults \/ Clients
MergeSpec == Init /\ [][MergeNext]_vars

-----------------------------------------------------------------------------
(* What holds.                                                             *)

\* A registration that was answered is in its home's own copy of its shard, until it loses a clash:
\* then its home tells it, or the home's log says that it has to be told.
KeptOrTold ==
    \A o \in DOMAIN ops :
        LET h == Home(o)
            x == ops[o].name
        IN  (/\ ops[o].kind = "register" /\ ops[o].status = "yes" /\ st[h].alive
             /\ ~\E p \in DOMAIN ops : ops[p].kind = "unregister" /\ ops[p].name = x)
                => \/ st[h].table[x] = o \/ o \in st[h].clashes[x]
                   \/ o \in st[h].told \/ o \in st[h].effects
                   \/ \E c \in Node : o \in st[c].memory

\* Only losers are told: a registration that stands was told nothing.
ToldHasLost ==
    \A n \in Node : \A o \in st[n].told : ops[o].gone

\* A component has no name twice, and only rows of members in its view.
RowsHaveHomes ==
    \A n \in Node : \A x \in Name :
        LET s == st[n]
        IN  (s.alive /\ s.role = "coord" /\ ~s.flight) =>
                \A r \in ({s.table[x]} \union s.clashes[x]) \ {0} : s.live[Home(r)] # Out \/ Dirty(s)

\* A copy of a member's shard that counts as covered is equal to the member's own.
FrozenIsOwn ==
    \A c, m \in Node :
        (/\ st[c].alive /\ st[c].role = "coord" /\ st[m].alive /\ st[m].lineage > 0
         /\ IsAside(st[c].live[m]) /\ Covered(st[c], m, st[m].lineage, Mine(st[m], m))
         /\ st[m].num = Mine(st[m], m) /\ st[m].lineage # st[c].lineage)
            => \A x \in Name :
                  LET r == st[m].table[x]
                  IN  (r # 0 /\ Home(r) = m /\ ~ops[r].gone /\ ops[r].status = "yes")
                        => r = st[c].table[x] \/ r \in st[c].clashes[x]

\* When nothing fails any more, components that see each other are one, and every clash is settled and
\* told.
AllTold == \A n \in Node : st[n].alive =>
    /\ \A x \in Name : st[n].clashes[x] = {}
    /\ st[n].effects = {}
OneComponent == \E c \in Node : \A n \in Node : st[n].alive => st[n].lead = c
Whole == up = {{a, b} : a, b \in Node} \ {{a} : a \in Node} => OneComponent /\ AllTold
MergeLiveNext == MergeNext \/ Calm \/ ((Exhausted \/ Whole) /\ UNCHANGED vars)
MergeLiveSpec == Init /\ [][MergeLiveNext]_vars
WholeAgain == GoesOn => <>[]Whole \/ <>Exhausted
=============================================================================
