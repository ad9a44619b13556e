%% SPDX-License-Identifier: Apache-2.0
-module(sderl_histories).

%% Histories of real nodes: clients that do commands at the same time and note what they called,
%% when, and what it answered; and what each node shows at the end. `sderl_linear` judges them.
%%
%% A case is a list of clients, `{Node, Group, Commands}`, with nodes and groups as positions in the
%% lists of a setting. The same module runs on the nodes.

-export([clocks/2, setting/3, case_of/1, run/2, check/1, count/1, failure/2]).
%% On the nodes.
-export([clock/0, pool/1, play/4, show/2, perform/2, idle/0]).

-include_lib("proper/include/proper.hrl").

-define(NAMES, [x, y, z]).
-define(CALL, 90_000).

%% ---------------------------------------------------------------- one clock

%% Nanoseconds of the machine's clock, which all its virtual machines share. They do not share
%% erlang:monotonic_time/0, because each one corrects its own.
clock() -> os:perf_counter(1_000_000_000).

%% Checks that the nodes share this clock: a node's time must lie between two times that are read
%% here.
clocks(Fleet, Nodes) ->
    [begin
         Before = clock(),
         There = sderl_fleet:call(Fleet, N, ?MODULE, clock, [], ?CALL),
         After = clock(),
         Before =< There andalso There =< After
             orelse error({clocks_differ, N, Before, There, After})
     end || _ <- [1, 2, 3], N <- Nodes],
    ok.

%% ---------------------------------------------------------------- cases

%% The nodes and groups that cases speak of. With `kills => true` clients also kill the group's
%% process on their node, which must make no difference.
setting(Fleet, Nodes, Groups) -> #{fleet => Fleet, nodes => Nodes, groups => Groups}.

%% Some clients on members of the groups. A process is one of a pool (two on each node), or `new`.
case_of(#{nodes := Nodes, groups := Groups} = Setting) ->
    Kills = maps:get(kills, Setting, false),
    Places = [{I, K}
              || {I, N} <- lists:enumerate(Nodes), {K, {_, Ms}} <- lists:enumerate(Groups),
                 lists:member(N, Ms)],
    ?SUCHTHAT(Case, ?LET(K, range(3, 8), vector(
        K, ?LET({I, G}, oneof(Places), {I, G, list(command(I, length(Nodes), Kills))})
    )), count(Case) > 0).

command(Node, Nodes, Kills) ->
    Name = oneof(?NAMES),
    Who = frequency([{3, {range(1, Nodes), range(1, 2)}}, {2, {Node, range(1, 2)}}, {2, new}]),
    frequency([{6, {register, Name, Who}},
               {3, {re_register, Name, Who}},
               {4, {unregister, Name}},
               {5, {whereis, Name}},
               {2, {lookup, Name}},
               {2, {read, Name}},
               {1, {kill, {Node, range(1, 2)}}}]
              ++ [{4, kill_group} || Kills]).

count(Case) -> lists:sum([length(Cs) || {_, _, Cs} <- Case]).

%% ---------------------------------------------------------------- running one

%% All clients at once, then what every member shows. Gives the history of each group. Names and
%% processes are fresh for every run.
run(Case, #{fleet := Fleet, nodes := Nodes, groups := Groups}) ->
    Run = erlang:unique_integer([positive]),
    Pool = maps:from_list(lists:enumerate(all(Fleet, Nodes, pool, [2]))),
    Start = clock() + 2_000_000,
    Played = lists:append(each(Fleet,
                               [{lists:nth(I, Nodes), play,
                                 [Start, Run, Pool, [{element(1, lists:nth(G, Groups)), Cs}]]}
                                || {I, G, Cs} <- Case])),
    Shown = lists:append(each(Fleet, [{N, show, [G, [{Run, Name} || Name <- ?NAMES]]}
                                      || {G, Ms} <- Groups, N <- Ms])),
    #{G => [maps:remove(group, Op)
            || #{group := H} = Op <- Played ++ Shown, H =:= G orelse H =:= all]
      || {G, _} <- Groups}.

all(Fleet, Nodes, F, Args) -> each(Fleet, [{N, F, Args} || N <- Nodes]).

%% Makes the calls at the same time, each in a process of its own.
each(Fleet, Calls) ->
    Running = [spawn_monitor(fun() ->
        exit({result, sderl_fleet:call(Fleet, N, ?MODULE, F, Args, ?CALL)})
    end)
               || {N, F, Args} <- Calls],
    [receive
         {'DOWN', Ref, process, Pid, {result, R}} -> R;
         {'DOWN', Ref, process, Pid, Why} -> error(Why)
     end || {Pid, Ref} <- Running].

%% `ok`, or the first refused history. A history with too many concurrent operations to be searched
%% to the end counts as legal.
check(Histories) ->
    case [{G, Verdict} || G := H <- Histories, {refused, _} = Verdict <- [sderl_linear:check(H)]] of
        [] -> ok;
        [Bad | _] -> Bad
    end.

%% What went wrong, for people.
failure(Case, {Group, {refused, Refusal}}) ->
    io_lib:format("group ~tp, case~n~tp~n~ts", [Group, Case, sderl_linear_text:format(Refusal)]);
failure(Case, Other) -> io_lib:format("~tp~n~tp", [Case, Other]).

%% ---------------------------------------------------------------- on a node

%% Processes to register. They live until the next run.
pool(Count) ->
    case whereis(sderl_histories_pool) of
        undefined -> ok;
        Old ->
            Ref = monitor(process, Old),
            exit(Old, kill),
            receive {'DOWN', Ref, process, Old, _} -> ok end
    end,
    Self = self(),
    Keeper = spawn(fun() ->
        register(sderl_histories_pool, self()),
        _ = process_flag(trap_exit, true),
        Self ! {self(), [spawn_link(?MODULE, idle, []) || _ <- lists:seq(1, Count)]},
        idle()
    end),
    receive {Keeper, Pids} -> Pids end.

idle() -> receive {'EXIT', never} -> ok end.

%% The operations of one client. It spins until `Start`, so that all clients begin at the same time.
play(Start, Run, Pool, [{Group, Commands}]) ->
    wait(Start),
    [Op || C <- Commands, Op <- perform(Group, command_on(C, Run, Pool))].

wait(Start) -> case clock() < Start of true -> wait(Start); false -> ok end.

command_on({kill, {I, K}}, _, Pool) -> {kill, lists:nth(K, map_get(I, Pool))};
command_on({K, Name, new}, Run, _) -> {K, {Run, Name}, spawn(?MODULE, idle, [])};
command_on({K, Name, {I, J}}, Run, Pool) -> {K, {Run, Name}, lists:nth(J, map_get(I, Pool))};
command_on(kill_group, _, _) -> kill_group;
command_on({K, Name}, Run, _) -> {K, {Run, Name}}.

%% One operation with its times.
perform(Group, kill_group) ->
    exit(sderl_dir:process(Group), kill),
    [];
perform(_, {kill, P} = Call) ->
    Ref = monitor(process, P),
    Start = clock(),
    exit(P, kill),
    receive {'DOWN', Ref, process, P, _} -> ok end,
    [#{group => all, node => node(), start => Start, stop => clock(), call => Call, answer => ok}];
perform(Group, Call) ->
    Start = clock(),
    {Answer, Stop} =
        try {answer(Group, Call), clock()} catch exit:{timeout, _} -> {unknown, infinity} end,
    [#{group => Group, node => node(), start => Start, stop => Stop, call => Call,
       answer => Answer}].

answer(G, {register, N, P}) -> s_group:register_name(G, N, P);
answer(G, {re_register, N, P}) -> s_group:re_register_name(G, N, P);
answer(G, {unregister, N}) -> s_group:unregister_name(G, N);
answer(G, {whereis, N}) -> s_group:whereis_name(G, N);
answer(G, {lookup, N}) ->
    case s_group:lookup(G, N) of
        #{pid := P, token := T} -> {P, T};
        %% `undefined`, or the error that this node is no member.
        None -> None
    end;
answer(G, {read, N}) ->
    case s_group:read(G, N) of
        {error, no_majority} -> {no, no_majority};
        %% The read saw nothing: its answer counts as unknown.
        {error, Why} -> exit({timeout, Why});
        Found -> Found
    end.

show(Group, Names) ->
    [Op || N <- Names, Kind <- [whereis, read], Op <- perform(Group, {Kind, N})].
