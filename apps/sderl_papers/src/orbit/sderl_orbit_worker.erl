%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_worker).
-moduledoc """
A worker of Orbit: has a part of the table, computes the images of its elements, and sends those of
other parts to their workers.

## Messages

| message | from | |
|---|---|---|
| `{init, Conf}` | its leader, which is the master or a submaster | its configuration; it answers `{ready, Index}` |
| `{vertex, X, K}` | a worker, a gateway | an element of its part, perhaps known, with an atom of credit |
| `{vertices, Xs, K}` | | several, with one atom |
| `{done, Index, Credit, Found}` | to its leader | it has nothing to do; `Found` is how many elements it has so far |
| `{progress, Index, Found}` | to its leader | about every half second |
| `{dump}` | its leader | answered with `{result, Index, Report}`; then it ends |

## Order of work

All arrived vertices are put into the table first, which is quick. Only new ones are kept, in a
list, to have their images computed, which is slow. So mailboxes stay short, and all that waits are
elements that wait for their first and only expansion: no more than there are. Images in the own
part take no message.

Images of others are gathered into bundles of `batch`. A bundle leaves when it is full, and all
leave when there is nothing else to do. While it has elements or bundles a worker has credit; with
the last message it may give its last.

It is linked to its leader and ends with it. There is no recovery: a message that cannot be
delivered ends the worker, and so the run.
""".

-export([start/3, init/2]).
-export_type([conf/0, route/0, report/0]).

-import(sderl_clock, [now_ms/0, now_us/0]).

-doc """
How to reach a worker: directly; by a gateway of the own group, which knows the others; or by its
name in a group of others, over the library's routes.
""".
-type route() :: pid() | {gateway, pid()} | {name, Group :: term()}.

-doc """
`routes` has an element for each worker. In the group `register` its name is `{orbit, Index}`.
""".
-type conf() :: #{
    index := pos_integer(),
    generators := sderl_orbit_generators:generators(),
    size := pos_integer(),
    spread := sderl_orbit_table:spread(),
    routes := tuple(),
    batch := pos_integer(),
    idle_ms := non_neg_integer(),
    register => Group :: term()
}.

-doc """
What it found and did. Idle times in milliseconds: until the first vertex, the longest wait between
two, and from the last work until the end. `least_credit` is the greatest K, so the smallest part,
that it gave away. `sent` counts messages, `sent_far` those of them that went by way of a gateway,
`sent_vertices` the vertices in them. `waiting_max` and `credit_atoms_max` are the greatest values
that it saw, as it looks now and then.
""".
-type report() :: #{
    node := node(),
    contents := sderl_orbit_table:contents(),
    vertices_received := non_neg_integer(),
    credits_returned := non_neg_integer(),
    least_credit := sderl_orbit_credit:atom_credit(),
    sent := non_neg_integer(),
    sent_far := non_neg_integer(),
    sent_vertices := non_neg_integer(),
    waiting_max := non_neg_integer(),
    credit_atoms_max := non_neg_integer(),
    idle_init_ms := number(),
    idle_max_ms := number(),
    idle_tail_ms := number()
}.

%% The constant part of the state.
-record(conf, {
    leader :: pid(),
    index :: pos_integer(),
    generators :: sderl_orbit_generators:generators(),
    n :: pos_integer(),
    spread :: sderl_orbit_table:spread(),
    routes :: tuple(),
    batch :: pos_integer(),
    idle_ms :: non_neg_integer()
}).

%% The changing part. `waiting` are elements whose images are to be computed.
-record(w, {
    part :: sderl_orbit_table:part(),
    waiting = [] :: [non_neg_integer()],
    credit = sderl_orbit_credit:zero() :: sderl_orbit_credit:credit(),
    unit = 0 :: sderl_orbit_credit:atom_credit(),
    %% By worker: how many vertices wait for it, and these.
    bundles = #{} :: #{pos_integer() => {pos_integer(), [non_neg_integer()]}},
    found = 0 :: non_neg_integer(),
    expanded = 0 :: non_neg_integer(),
    reported_ms :: integer(),
    received = 0 :: non_neg_integer(),
    returned = 0 :: non_neg_integer(),
    least_credit = 0 :: sderl_orbit_credit:atom_credit(),
    atoms_max = 0 :: non_neg_integer(),
    sent = 0 :: non_neg_integer(),
    sent_far = 0 :: non_neg_integer(),
    sent_vertices = 0 :: non_neg_integer(),
    waiting_max = 0 :: non_neg_integer(),
    idle_init :: number() | undefined,
    idle_max = 0 :: number()
}).

-define(REPORT_MS, 500).
%% After so many elements it looks at the clock and at how many wait: a power of two.
-define(REPORT_EVERY, 256).
%% The library's report on a routed message that could not be delivered.
-define(UNDELIVERED(To, Why), {sderl_undelivered, To, Why, _}).

-doc "Starts one on a node, linked to the caller, its leader.".
-spec start(node(), Leader :: pid(), Index :: pos_integer()) -> pid().
start(Node, Leader, Index) -> spawn_link(Node, ?MODULE, init, [Leader, Index]).

-doc false.
-spec init(pid(), pos_integer()) -> ok.
init(Leader, Index) ->
    proc_lib:set_label({orbit, worker, Index}),
    receive
        {init, #{generators := Generators, size := N, spread := Spread, routes := Routes,
                 batch := Batch, idle_ms := IdleMs} = Conf} ->
            ok = known(Conf),
            C = #conf{
                leader = Leader, index = Index, generators = Generators, n = N, spread = Spread,
                routes = Routes, batch = Batch, idle_ms = IdleMs
            },
            W = #w{part = sderl_orbit_table:part(Index, Spread), reported_ms = now_ms()},
            Leader ! {ready, Index},
            work(C, W)
    end.

%% Registers its name, where others send to that; then it also gets reports on undelivered messages.
known(#{register := Group, index := Index}) ->
    ok = sderl_route:reports(true),
    case s_group:register_name(Group, {orbit, Index}, self()) of
        yes -> ok;
        {no, Reason} -> exit({not_registered, Reason})
    end;
known(_) ->
    ok.

work(C, #w{waiting = [X | Waiting]} = W) ->
    receive
        {vertex, Y, K} -> work(C, got([Y], K, W));
        {vertices, Ys, K} -> work(C, got(Ys, K, W));
        ?UNDELIVERED(To, Why) -> undelivered(To, Why)
    after 0 ->
        W1 = expand(C#conf.generators, X, C, W#w{waiting = Waiting}),
        work(C, reported(C, away(C, W1)))
    end;
work(C, W) ->
    %% Nothing to expand. What arrived may give something; if it does not, the bundles leave.
    receive
        {vertex, Y, K} -> work(C, got([Y], K, W));
        {vertices, Ys, K} -> work(C, got(Ys, K, W));
        ?UNDELIVERED(To, Why) -> undelivered(To, Why)
    after 0 -> idle(C, send_all(C, W), now_us())
    end.

got(Ys, K, #w{credit = Credit0, part = Part0, waiting = Waiting0, found = Found0,
              received = Received0} = W) ->
    Credit = sderl_orbit_credit:add_atom(K, Credit0),
    {Part, Waiting, Found, Received} = keep(Ys, Part0, Waiting0, Found0, Received0),
    W#w{credit = Credit, part = Part, waiting = Waiting, found = Found, received = Received}.

keep([Y | Ys], Part, Waiting, Found, Received) ->
    case sderl_orbit_table:insert(Y, Part) of
        seen -> keep(Ys, Part, Waiting, Found, Received + 1);
        New -> keep(Ys, New, [Y | Waiting], Found + 1, Received + 1)
    end;
keep([], Part, Waiting, Found, Received) ->
    {Part, Waiting, Found, Received}.

expand([], _X, _C, W) ->
    W#w{expanded = W#w.expanded + 1};
expand([G | Gs], X, #conf{n = N, spread = Spread, index = Index} = C, W) ->
    Y = sderl_orbit_generators:image(G, X, N),
    case sderl_orbit_table:owner(Y, Spread) of
        Index ->
            #w{part = Part, waiting = Waiting, found = Found, received = Received} = W,
            case sderl_orbit_table:insert(Y, Part) of
                seen -> expand(Gs, X, C, W#w{received = Received + 1});
                New ->
                    expand(Gs, X, C, W#w{part = New, waiting = [Y | Waiting], found = Found + 1,
                                         received = Received + 1})
            end;
        Other ->
            expand(Gs, X, C, bundle(Other, Y, C, W))
    end.

bundle(To, Y, #conf{batch = Batch} = C, #w{bundles = Bundles} = W) ->
    case Bundles of
        #{To := {Count, Ys}} when Count + 1 >= Batch, Batch > 1 ->
            send(To, [Y | Ys], keeping, C, W#w{bundles = maps:remove(To, Bundles)});
        #{To := {Count, Ys}} ->
            W#w{bundles = Bundles#{To := {Count + 1, [Y | Ys]}}};
        #{} ->
            W#w{bundles = Bundles#{To => {1, [Y]}}}
    end.

%% After an element: without bundling its images leave at once.
away(#conf{batch = 1} = C, W) -> send_all(C, W);
away(_, W) -> W.

send_all(_, #w{bundles = Bundles} = W) when map_size(Bundles) =:= 0 ->
    W;
send_all(C, #w{bundles = Bundles} = W) ->
    send_each(maps:to_list(Bundles), C, W#w{bundles = #{}}).

%% The last message may take the last of the credit, when there is nothing left to do.
send_each([{To, {1, [X]}}], C, #w{waiting = []} = W) -> send(To, [X], last, C, W);
send_each([{To, {_, Xs}}], #conf{batch = Batch} = C, #w{waiting = []} = W) when Batch > 1 ->
    send(To, Xs, last, C, W);
send_each([{To, {_, [X | Xs]}} | Rest], #conf{batch = 1} = C, W) ->
    %% Two images for one worker, as separate messages.
    W1 = send(To, [X], keeping, C, W),
    send_each([{To, {length(Xs), Xs}} || Xs =/= []] ++ Rest, C, W1);
send_each([{To, {_, Xs}} | Rest], C, W) -> send_each(Rest, C, send(To, Xs, keeping, C, W));
send_each([], _, W) -> W.

send(To, Xs, Which, #conf{routes = Routes}, W) ->
    #w{credit = Credit, unit = Unit, sent = Sent, sent_far = Far, sent_vertices = Vertices,
       least_credit = Least} = W,
    {K, Rest, Unit1} =
        case Which of
            keeping ->
                sderl_orbit_credit:debit_keeping(Unit, Credit);
            last ->
                {Head, Others} = sderl_orbit_credit:debit(Credit),
                {Head, Others, Unit}
        end,
    Route = element(To, Routes),
    ok = post(Route, To, message(Xs, K)),
    W#w{
        credit = Rest,
        unit = Unit1,
        sent = Sent + 1,
        sent_far = case is_pid(Route) of true -> Far; false -> Far + 1 end,
        sent_vertices = Vertices + length(Xs),
        least_credit = max(K, Least)
    }.

message([X], K) -> {vertex, X, K};
message(Xs, K) -> {vertices, Xs, K}.

post(Pid, _To, Message) when is_pid(Pid) ->
    Pid ! Message,
    ok;
post({gateway, Gateway}, To, Message) ->
    Gateway ! {out, To, Message},
    ok;
post({name, Group}, To, Message) ->
    case sderl_route:send({Group, {orbit, To}}, Message) of
        ok -> ok;
        {error, Reason} -> undelivered({Group, {orbit, To}}, Reason)
    end.

-spec undelivered(term(), term()) -> no_return().
undelivered(To, Why) -> exit({undelivered, To, Why}).

%% There is nothing to do since `Since`. It keeps its credit for a moment, as a vertex may arrive.
idle(#conf{idle_ms = IdleMs} = C, W, Since) ->
    receive
        {vertex, Y, K} -> work(C, got([Y], K, waited(Since, W)));
        {vertices, Ys, K} -> work(C, got(Ys, K, waited(Since, W)));
        ?UNDELIVERED(To, Why) -> undelivered(To, Why);
        {dump} -> dump(C, W, Since)
    after timeout(IdleMs, W) -> idle(C, give_back(C, W), Since)
    end.

timeout(_, #w{credit = []}) -> infinity;
timeout(IdleMs, _) -> IdleMs.

waited(Since, #w{idle_init = undefined} = W) -> W#w{idle_init = (now_us() - Since) / 1000};
waited(Since, #w{idle_max = Max} = W) -> W#w{idle_max = max(Max, (now_us() - Since) / 1000)}.

give_back(#conf{leader = Leader, index = Index},
          #w{credit = Credit, found = Found, returned = Returned} = W) ->
    Leader ! {done, Index, Credit, Found},
    W#w{credit = sderl_orbit_credit:zero(), unit = 0, returned = Returned + 1}.

reported(C, #w{expanded = Expanded} = W) when Expanded band (?REPORT_EVERY - 1) =:= 0 ->
    #w{waiting_max = Max, credit = Credit, atoms_max = AtomsMax, reported_ms = Last,
       found = Found} = W,
    W1 = W#w{waiting_max = max(Max, Found - Expanded), atoms_max = max(AtomsMax, length(Credit))},
    case now_ms() of
        Now when Now - Last >= ?REPORT_MS ->
            C#conf.leader ! {progress, C#conf.index, Found},
            W1#w{reported_ms = Now};
        _ ->
            W1
    end;
reported(_, W) ->
    W.

dump(#conf{leader = Leader, index = Index}, W, Since) ->
    Tail = (now_us() - Since) / 1000,
    Leader !
        {result, Index, #{
            node => node(),
            contents => sderl_orbit_table:contents(W#w.part),
            vertices_received => W#w.received,
            credits_returned => W#w.returned,
            least_credit => W#w.least_credit,
            sent => W#w.sent,
            sent_far => W#w.sent_far,
            sent_vertices => W#w.sent_vertices,
            waiting_max => W#w.waiting_max,
            credit_atoms_max => W#w.atoms_max,
            %% A worker that never got a vertex was idle all the time.
            idle_init_ms => case W#w.idle_init of undefined -> Tail; Init -> Init end,
            idle_max_ms => W#w.idle_max,
            idle_tail_ms => Tail
        }},
    ok.
