%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_client).
-moduledoc """
The clients of one node during a fault, and the journal of the answers that they got.

*Writers* register a name for a process of this node, keep it for a while, unregister it, and so on.
The *far* writer registers processes of another node, which live on when this one is killed.
A *burst* is many registrations at once. Names are `{Class, Number}`, and no two clients ever use
the same one: whatever a registry does, each client knows what must be true of its names.

One leader process a node owns the journal, a table with one row a name,
`{Name, Pid, State, Since}`:

| state | |
|---|---|
| `held` | its registration was answered `yes`, and nobody has begun to undo it: it must be there |
| `gone` | its unregistration was answered: it must not be there |
| `open` | an operation is under way, or ended without an answer |

In a group that decides by majority a held name becomes `open` when its process is told that the
majority is lost: the name may go to others. So do the far names of a node that was cut off.

*Rivals* exist only in such groups. Every node runs one for each node's name, and all try to
register that name again and again, for a process that ends when it is told that the majority is
lost. The journal has the times from which and until which each of them had the name, as far as it
was told.

The journal can be read while clients wait for answers. The row of a far name is kept by the named
process, on its own node, and only once it was told that it has the name; so the journal of a node
that is killed is never needed.
""".

%% Called over the fleet's control channel.
-export([start/2, holders/1, far/1, mark/0, answers/0, gap/0, pin/0, journal/1, since/1, stop/0]).
-export([burst/2, burst_done/1, short/1, short_end/0]).
-export([compete/1, cut_off/1]).
-export_type([journal/0, claim/0]).

-import(sderl_bench_faults_counters, [answered/2, asked/2, is_paused/1, now_us/0]).

-doc """
`refused`: answers `no`, which nobody should get, without those for want of a majority, which are
`no_majority`. `hung`: clients that still waited for an answer. `cut_off_yes`: writes that were
answered `yes` although they were begun and answered on a side of a split without a majority.
`claims`: those of the rivals.
""".
-type journal() :: #{
    held := [{term(), pid()}],
    gone := [term()],
    open := [term()],
    answers := non_neg_integer(),
    unknown := non_neg_integer(),
    refused := non_neg_integer(),
    no_majority := non_neg_integer(),
    cut_off_yes := non_neg_integer(),
    claims := [claim()],
    hung := non_neg_integer()
}.

-doc """
The time in which a rival's process had a name: from the answer until it was told that the majority
is lost (`infinity`: it was not), in us of the system's clock.
""".
-type claim() :: {Name :: term(), pid(), From :: integer(), To :: integer() | infinity}.

-record(w, {
    registry :: module(),
    counters :: sderl_bench_faults_counters:counters(),
    class :: term(),
    number = 1,
    kept = [] :: [term()],
    pinned = 0
}).

%% Names that a writer keeps before it begins to unregister the oldest.
-define(KEEP, 10).
-define(PAUSE_MS, 5).
-define(FAR_PAUSE_MS, 25).
-define(RIVAL_PAUSE_MS, 200).

-doc "Starts writers, after ending those that were there.".
-spec start(module(), non_neg_integer()) -> ok.
start(Registry, Writers) ->
    ok = stop(),
    Caller = self(),
    {_, Ref} = spawn_monitor(fun() -> leader(Caller, Registry, Writers) end),
    receive
        {?MODULE, started} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, _, Why} -> error(Why)
    end.

leader(Caller, Registry, Writers) ->
    true = register(?MODULE, self()),
    _ = process_flag(trap_exit, true),
    ?MODULE = ets:new(?MODULE, [named_table, public, {write_concurrency, true}]),
    Counters = sderl_bench_faults_counters:new(),
    ets:insert(?MODULE, {counters, Counters}),
    Pids = [
        spawn_link(fun() ->
            writer(#w{registry = Registry, counters = Counters, class = {node(), I}})
        end)
     || I <- lists:seq(1, Writers)
    ],
    Caller ! {?MODULE, started},
    lead(Registry, Counters, Pids).

%% Starts all clients itself, so that they are linked to it.
lead(Registry, Counters, Clients) ->
    receive
        {clients, From, Ref, Bodies} ->
            New = [spawn_link(fun() -> Body(Registry, Counters) end) || Body <- Bodies],
            From ! {Ref, ok},
            lead(Registry, Counters, New ++ Clients);
        {pause, From, Ref, Deadline} ->
            sderl_bench_faults_counters:pause(Counters),
            From ! {Ref, ended(Clients, Deadline)},
            lead(Registry, Counters, []);
        {stop, From, Ref} ->
            _ = ended(Clients, 0),
            true = ets:delete(?MODULE),
            true = unregister(?MODULE),
            From ! {Ref, ok};
        {'EXIT', Pid, normal} ->
            lead(Registry, Counters, lists:delete(Pid, Clients));
        {'EXIT', _, Why} ->
            exit(Why)
    end.

%% How many did not end by themselves.
ended([], _) ->
    0;
ended([Pid | Pids], Deadline) ->
    receive
        {'EXIT', Pid, normal} -> ended(Pids, Deadline);
        {'EXIT', Pid, Why} -> exit(Why)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        exit(Pid, kill),
        receive
            {'EXIT', Pid, _} -> ok
        end,
        1 + ended(Pids, Deadline)
    end.

ask(Request) ->
    Leader = whereis(?MODULE),
    Ref = monitor(process, Leader),
    Leader ! list_to_tuple([element(1, Request), self(), Ref | tl(tuple_to_list(Request))]),
    receive
        {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, process, _, Why} -> error({clients_ended, Why})
    end.

counters() -> ets:lookup_element(?MODULE, counters, 2).

%% ---------------------------------------------------------------- clients

writer(
    #w{registry = Registry, counters = Counters, class = Class, number = Number, kept = Kept} = W
) ->
    case is_paused(Counters) of
        true ->
            ok;
        false ->
            Name = {Class, Number},
            Next =
                case claim(Registry, Counters, Name, holder()) of
                    true -> W#w{number = Number + 1, kept = Kept ++ [Name]};
                    false -> W#w{number = Number + 1}
                end,
            pause(?PAUSE_MS),
            writer(give_back(Next))
    end.

%% Names that the driver has pinned stay until the end.
give_back(#w{counters = Counters, pinned = Pinned} = W) ->
    case sderl_bench_faults_counters:pins(Counters) of
        Pinned -> give_oldest(W);
        Other -> W#w{pinned = Other, kept = []}
    end.

give_oldest(#w{kept = [Name | Kept]} = W) when length(Kept) >= ?KEEP ->
    #w{registry = Registry, counters = Counters, pinned = Pinned} = W,
    [{Name, Pid, State, _}] = Row = ets:lookup(?MODULE, Name),
    note(Name, Pid, open),
    %% The driver may have pinned the names just now: it reads the rows after that, and may have
    %% read this one before it was `open`.
    case sderl_bench_faults_counters:pins(Counters) of
        _ when State =/= held ->
            W#w{kept = Kept};
        Pinned ->
            case answered(Counters, fun() -> Registry:unregister(Name) end) of
                yes ->
                    note(Name, Pid, gone),
                    exit(Pid, kill);
                _ ->
                    ok
            end,
            pause(?PAUSE_MS),
            W#w{kept = Kept};
        Other ->
            ets:insert(?MODULE, Row),
            W#w{pinned = Other, kept = []}
    end;
give_oldest(W) ->
    W.

note(Name, Pid, State) -> ets:insert(?MODULE, {Name, Pid, State, now_us()}).

%% Whether the name is held now.
claim(Registry, Counters, Name, Pid) ->
    note(Name, Pid, open),
    case answered(Counters, fun() -> Registry:register(Name, Pid) end) of
        yes ->
            note(Name, Pid, held),
            %% Its process may have been told before that the majority is lost.
            _ = [note(Name, Pid, open) || ets:member(?MODULE, {told, Pid})],
            true;
        no ->
            ets:delete(?MODULE, Name),
            exit(Pid, kill),
            false;
        unknown ->
            false
    end.

%% Has a name, and ends with the clients.
holder() -> spawn_holder(fun hold/1).

%% A lost majority is an exit signal to it. `Body` gets its monitor of the clients' leader.
spawn_holder(Body) ->
    spawn(fun() ->
        _ = process_flag(trap_exit, true),
        Body(monitor(process, ?MODULE))
    end).

hold(Clients) ->
    receive
        {'DOWN', Clients, process, _, _} ->
            ok;
        {'EXIT', _, {s_group_no_majority, _, Name}} ->
            true = ets:insert(?MODULE, {{told, self()}}),
            _ = [note(Name, Pid, open) || {_, Pid, held, _} <- ets:lookup(?MODULE, Name)],
            hold(Clients)
    end.

pause(Ms) -> receive after Ms -> ok end.

-doc "Processes of this node for another node's far writer. Each keeps the row of its name.".
-spec holders(non_neg_integer()) -> [pid()].
holders(Count) ->
    [spawn_holder(fun told/1) || _ <- lists:seq(1, Count)].

told(Clients) ->
    receive
        {yes, Name, At} ->
            ets:insert(?MODULE, {Name, self(), held, At}),
            hold(Clients);
        {'DOWN', Clients, process, _, _} ->
            ok
    end.

-doc "Starts the far writer, with processes of another node.".
-spec far([pid()]) -> ok.
far(Holders) ->
    ask({clients, [fun(Registry, Counters) -> far(Registry, Counters, Holders, 1) end]}).

far(_Registry, _Counters, [], _) ->
    ok;
far(Registry, Counters, [Holder | Holders], I) ->
    case is_paused(Counters) of
        true ->
            ok;
        false ->
            Name = {{far, node()}, I},
            %% It may be refused, when the other node cannot be reached. Its answers are not
            %% counted, because their time depends on two nodes.
            try Registry:register(Name, Holder) of
                yes ->
                    %% Must not make a link nor wait for one.
                    _ = erlang:send(Holder, {yes, Name, now_us()}, [noconnect, nosuspend]),
                    ok;
                {no, _} ->
                    ok
            catch
                _:_ -> ok
            end,
            pause(?FAR_PAUSE_MS),
            far(Registry, Counters, Holders, I + 1)
    end.

%% ---------------------------------------------------------------- rivals

-doc """
Starts a rival for the name of each of these nodes. It tries the name of this node at once, and the
others later, so that each node usually has its own name.
""".
-spec compete([node()]) -> ok.
compete(Nodes) ->
    ask({clients, [
        fun(Registry, Counters) ->
            pause(case Node =:= node() of true -> 0; false -> 2 * ?RIVAL_PAUSE_MS end),
            rival(Registry, Counters, {{rival, Node}, 1})
        end
     || Node <- Nodes
    ]}).

rival(Registry, Counters, Name) ->
    case is_paused(Counters) of
        true ->
            ok;
        false ->
            Holder = spawn_holder(fun contend/1),
            true = ets:insert(?MODULE, {{claim, Holder}, Name, undefined, infinity}),
            case asked(Counters, fun() -> Registry:register(Name, Holder) end) of
                yes ->
                    _ = ets:update_element(?MODULE, {claim, Holder}, {3, now_us()}),
                    held_until_paused(Counters, monitor(process, Holder));
                {no, _} ->
                    ets:delete(?MODULE, {claim, Holder}),
                    exit(Holder, kill);
                unknown ->
                    ok
            end,
            pause(?RIVAL_PAUSE_MS),
            rival(Registry, Counters, Name)
    end.

held_until_paused(Counters, Monitor) ->
    receive
        {'DOWN', Monitor, process, _, _} -> ok
    after ?RIVAL_PAUSE_MS ->
        case is_paused(Counters) of
            true -> ok;
            false -> held_until_paused(Counters, Monitor)
        end
    end.

%% The name is free only when this process has ended, but it does nothing under the name from here.
contend(Clients) ->
    receive
        {'DOWN', Clients, process, _, _} -> ok;
        {'EXIT', _, _} -> ets:update_element(?MODULE, {claim, self()}, {4, now_us()})
    end.

-doc """
Says whether this node is on a side of a split that has no majority: a request that is made and
answered meanwhile must not be answered `yes`.
""".
-spec cut_off(boolean()) -> ok.
cut_off(IsCutOff) ->
    %% The other side may have given a process of this node its far name without this node, which
    %% then tells it of no loss.
    _ = [note({{far, Far}, I}, Pid, open)
         || not IsCutOff,
            [Far, I, Pid] <- ets:match(?MODULE, {{{far, '$1'}, '$2'}, '$3', held, '_'})],
    sderl_bench_faults_counters:cut_off(IsCutOff, counters()).

%% ---------------------------------------------------------------- bursts

-doc """
`Processes` processes register `Each` names each, one after the other, as fast as they are answered.
""".
-spec burst(pos_integer(), pos_integer()) -> ok.
burst(Processes, Each) ->
    ask({clients, [
        fun(Registry, Counters) ->
            lists:foreach(
                fun(I) ->
                    _ = claim(Registry, Counters, {{burst, node()}, I}, holder()),
                    sderl_bench_faults_counters:count_burst(Counters)
                end,
                lists:seq((P - 1) * Each + 1, P * Each)
            )
        end
     || P <- lists:seq(1, Processes)
    ]}).

-doc "Waits until so many registrations of bursts were answered, or given up.".
-spec burst_done(pos_integer()) -> ok.
burst_done(Count) ->
    case sderl_bench_faults_counters:burst_answers(counters()) of
        N when N >= Count -> ok;
        _ -> pause(1), burst_done(Count)
    end.

-doc "Registers so many names, each for a process of its own; gives how many were answered `yes`.".
-spec short(pos_integer()) -> non_neg_integer().
short(Count) ->
    Each = 20,
    ok = ask({clients, [
        fun(R, Counters) ->
            lists:foreach(
                fun(I) ->
                    Name = {{short, node()}, I},
                    Pid = holder(),
                    Answer = answered(Counters, fun() -> R:register(Name, Pid) end),
                    %% Not a name that is to be found: its row is under another key.
                    ets:insert(?MODULE, {{short_row, I}, Pid, Answer})
                end,
                lists:seq(First, min(Count, First + Each - 1))
            )
        end
     || First <- lists:seq(1, Count, Each)
    ]}),
    all_short(Count),
    length(short_rows(yes)).

all_short(Count) ->
    case length(short_rows('_')) of
        Count -> ok;
        _ -> pause(1), all_short(Count)
    end.

short_rows(Answer) -> ets:match(?MODULE, {{short_row, '_'}, '$1', Answer}).

-doc "Ends those processes all at once; gives the moment before.".
-spec short_end() -> integer().
short_end() ->
    Pids = short_rows('_'),
    At = now_us(),
    _ = [exit(Pid, kill) || [Pid] <- Pids],
    At.

%% ---------------------------------------------------------------- what the driver asks

-doc "From now on the longest time without an answer is measured.".
-spec mark() -> ok.
mark() -> sderl_bench_faults_counters:mark(counters()).

-doc "How many answers all clients got.".
-spec answers() -> non_neg_integer().
answers() -> sderl_bench_faults_counters:answers(counters()).

-doc "The longest time without an answer since the mark, in us, also if it still lasts.".
-spec gap() -> non_neg_integer().
gap() -> sderl_bench_faults_counters:gap(counters()).

-doc "The held names; writers keep these names from now on, and go on with others.".
-spec pin() -> #{held := [{term(), pid()}], burst := {non_neg_integer(), non_neg_integer()}}.
pin() ->
    sderl_bench_faults_counters:pin(counters()),
    {Burst, Others} = lists:partition(fun({{{Class, _}, _}, _}) -> Class =:= burst end, held()),
    #{held => Others, burst => sderl_bench_faults_watch:digest(Burst)}.

held() -> [{Name, Pid} || [Name, Pid] <- ets:match(?MODULE, {'$1', '$2', held, '_'})].

-doc """
Lets no client begin anything more, waits so many milliseconds for those that wait for an answer,
and gives the journal.
""".
-spec journal(non_neg_integer()) -> journal().
journal(Ms) ->
    Hung = ask({pause, erlang:monotonic_time(millisecond) + Ms}),
    Counted = sderl_bench_faults_counters:counted(counters()),
    Counted#{
        held => held(),
        gone => [Name || [Name] <- ets:match(?MODULE, {'$1', '_', gone, '_'})],
        open => [Name || [Name] <- ets:match(?MODULE, {'$1', '_', open, '_'})],
        claims => [{Name, Pid, From, To}
                   || [Pid, Name, From, To] <- ets:match(?MODULE,
                                                         {{claim, '$1'}, '$2', '$3', '$4'}),
                      is_integer(From)],
        hung => Hung
    }.

-doc """
The state of these names, as far as this node's clients know them, and since when, in us of the
system's clock.
""".
-spec since([term()]) -> [{term(), held | gone | open, integer()}].
since(Names) ->
    [{Name, State, At} || Name <- Names, {_, _, State, At} <- ets:lookup(?MODULE, Name)].

-doc "Ends all clients and the processes that have names.".
-spec stop() -> ok.
stop() ->
    case whereis(?MODULE) of
        undefined -> ok;
        _ -> ask({stop})
    end.
