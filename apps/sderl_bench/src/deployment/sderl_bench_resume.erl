%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_resume).
-moduledoc """
Kills the operations service (`kill -9`) at points of each operation, from the first step to the
last. A new service goes on from what is stored and what it sees; the cluster must end as its file
says, and each instance must run once.
""".

-export([round/4, operations/0]).
-export_type([operation/0, outcome/0]).

-type operation() :: apply | upgrade | scale | drain | rollback.

-doc """
`resumed`: whether the cluster ended as its file says; `twice`: instances that ran more than once in
the end; `why`: the state that was found instead.
""".
-type outcome() :: #{
    operation := operation(),
    resumed := boolean(),
    twice := non_neg_integer(),
    why => unicode:chardata()
}.

-define(PATIENCE_MS, 180_000).
-define(LOOK_MS, 100).
-define(NODES, 3).

-doc "The operations, in the order of a round.".
-spec operations() -> [operation()].
operations() -> [apply, upgrade, scale, drain, rollback].

-doc """
Runs all operations one after the other, and kills the service in each of them when
`Point / Points` of its steps have begun; then destroys the cluster. `Told` is called after each.
""".
-spec round(Point :: pos_integer(), Points :: pos_integer(), fun((outcome()) -> term()),
            sderl_bench_ops_site:site()) ->
    {ok, {[outcome()], sderl_bench_ops_site:site()}} | {error, unicode:chardata()}.
round(Point, Points, Told, Site0) ->
    maybe
        {ok, {Outcomes, Site}} ?= each(operations(), Point / Points, Told, Site0, []),
        #{service := Service} = Site,
        {ok, #{~"state" := ~"destroyed"}} ?=
            sderl_bench_ops_service:ask(#{do => destroy}, Service),
        {ok, {lists:reverse(Outcomes), Site}}
    else
        {ok, #{~"state" := State}} -> {error, ["what is to be destroyed is ", State]};
        {error, _} = Error -> Error
    end.

each([], _, _, Site, Outcomes) -> {ok, {Outcomes, Site}};
each([Operation | Operations], Part, Told, Site0, Outcomes) ->
    maybe
        {ok, Request} ?= request(Operation, Site0),
        ok = killed_at(Part, Request, Site0),
        {ok, Site} ?= again(Site0),
        %% A request that had not begun is repeated, as a person would do.
        ok ?= ask_again(Operation, Request, Site),
        Outcome = await(Operation, Site),
        _ = Told(Outcome),
        each(Operations, Part, Told, Site, [Outcome | Outcomes])
    end.

request(apply, Site) -> file(#{}, Site);
request(upgrade, Site) -> file(#{sderl => #{tick_ms => 900}}, Site);
request(scale, _) -> {ok, #{do => scale, family => ~"n", count => ?NODES + 1}};
request(drain, _) -> {ok, #{do => drain, instance => ~"n2"}};
request(rollback, Site) ->
    maybe
        {ok, First} ?= first_revision(Site),
        {ok, #{do => rollback, revision => First}}
    end.

%% The first one of this round: revisions before the last "destroy" are of earlier rounds.
first_revision(#{service := Service}) ->
    maybe
        {ok, #{~"revisions" := Revisions}} ?=
            sderl_bench_ops_service:ask(#{do => history}, Service),
        Latest = lists:takewhile(fun(#{~"what" := What}) -> What =/= ~"destroy" end, Revisions),
        {ok, map_get(~"revision", lists:last(Latest))}
    end.

file(Config, #{folder := Folder}) ->
    File = filename:join(Folder, "cluster.json"),
    ok = file:write_file(File, json:encode(#{
        cluster => bench,
        providers => #{here => #{type => local, hosts => 2}},
        releases => #{code => #{code => [sderl_bench_ops_site:library()], applications => [sderl],
                                start_timeout_s => 300}},
        domains => #{all => #{provider => here}},
        families => #{n => #{release => code, domains => [all], count => ?NODES,
                             config => Config}},
        groups => [#{name => g, nodes => [~"n*"]}],
        upgrade => #{wait_s => 1}
    })),
    {ok, #{do => apply, file => unicode:characters_to_binary(File)}}.

%% ---------------------------------------------------------------- the kill

%% Kills the service when this part of the steps has begun, or when the request is done.
killed_at(Part, Request, #{service := Service}) ->
    Caller = self(),
    {Asker, Monitor} = spawn_monitor(fun() ->
        Tell = fun
            ({progress, Done, Total, _}) -> Caller ! {begun, self(), Done + 1, Total};
            (_) -> ok
        end,
        _ = sderl_bench_ops_service:ask(Request, Tell, Service)
    end),
    ok = await_part(Part, Asker, Monitor),
    ok = sderl_bench_ops_service:kill(Service),
    exit(Asker, kill),
    _ = demonitor(Monitor, [flush]),
    forget(Asker).

await_part(Part, Asker, Monitor) ->
    receive
        {begun, Asker, Begun, Total} when Begun >= Part * Total -> ok;
        {begun, Asker, _, _} -> await_part(Part, Asker, Monitor);
        {'DOWN', Monitor, process, Asker, _} -> ok
    end.

forget(Asker) ->
    receive {begun, Asker, _, _} -> forget(Asker) after 0 -> ok end.

again(#{hosts := Hosts} = Site) ->
    maybe
        {ok, Service} ?= sderl_bench_ops_service:start("s", Hosts),
        {ok, Site#{service := Service}}
    end.

ask_again(Operation, Request, #{service := Service}) ->
    case is_known(Operation, Service) of
        true -> ok;
        false ->
            case sderl_bench_ops_service:ask(Request, Service) of
                {ok, _} -> ok;
                {error, _} = Error -> Error
            end
    end.

%% Whether the newest revision is of this operation. Draining again does no harm.
is_known(drain, Service) ->
    _ = sderl_bench_ops_service:ask(#{do => drain, instance => ~"n2", wait => false}, Service),
    true;
is_known(Operation, Service) ->
    Begins = case Operation of
        scale -> ~"scale ";
        rollback -> ~"roll back ";
        _ -> ~"apply "
    end,
    case sderl_bench_ops_service:ask(#{do => history}, Service) of
        {ok, #{~"revisions" := [#{~"what" := What} | Before]}} ->
            string:prefix(What, Begins) =/= nomatch
                andalso (Operation =/= upgrade orelse is_second(Before));
        _ ->
            false
    end.

is_second([#{~"what" := <<"apply ", _/binary>>} | _]) -> true;
is_second(_) -> false.

%% ---------------------------------------------------------------- the end

await(Operation, Site) ->
    await(Operation, Site, erlang:monotonic_time(millisecond) + ?PATIENCE_MS).

await(Operation, Site, Deadline) ->
    Seen = seen(Site),
    Running = running(Site),
    Twice = length([Id || {Id, Count} <- Running, Count > 1]),
    Right = Seen =:= wanted(Operation) andalso settings_are_one(Operation, Site)
        andalso Running =:= [{Id, 1} || {Id, up} <- element(2, wanted(Operation))],
    case Right orelse erlang:monotonic_time(millisecond) > Deadline of
        true when Right ->
            #{operation => Operation, resumed => true, twice => 0};
        true ->
            #{operation => Operation, resumed => false, twice => Twice,
              why => io_lib:format("~0tp, running ~0tp", [Seen, Running])};
        false ->
            receive after ?LOOK_MS -> await(Operation, Site, Deadline) end
    end.

wanted(apply) -> {steady, up(?NODES)};
wanted(upgrade) -> {steady, up(?NODES)};
wanted(scale) -> {steady, up(?NODES + 1)};
wanted(drain) -> {steady, drained(up(?NODES + 1))};
%% It stays down.
wanted(rollback) -> {steady, drained(up(?NODES))}.

drained(Up) -> lists:keyreplace(~"n2", 1, Up, {~"n2", drained}).

up(Count) -> [{<<"n", (integer_to_binary(Number))/binary>>, up} || Number <- lists:seq(1, Count)].

seen(#{service := Service}) ->
    case sderl_bench_ops_service:ask(#{do => status}, Service) of
        {ok, #{~"state" := State, ~"instances" := Instances}} ->
            {word(State), lists:sort([{Id, word(Of)}
                                      || #{~"id" := Id, ~"state" := Of} <- Instances])};
        {error, Text} ->
            {error, Text}
    end.

word(~"steady") -> steady;
word(~"up") -> up;
word(~"drained") -> drained;
word(Other) -> Other.

%% All running instances have the same release and settings: none is half upgraded.
settings_are_one(drain, _) -> true;
settings_are_one(_, #{folder := Folder}) ->
    Files = filelib:wildcard(filename:join(Folder, "s/hosts/here/*/nodes/*/instance")),
    Lines = [[Line || Line <- string:split(Text, "\n", all),
                      string:prefix(Line, "settings ") =/= nomatch]
             || File <- Files, filelib:is_regular(filename:join(filename:dirname(File), "started")),
                {ok, Text} <- [file:read_file(File)]],
    length(lists:uniq(Lines)) =< 1.

%% Virtual machines of each instance, by the mark in their environment.
running(#{folder := Folder}) ->
    Mark = unicode:characters_to_binary(["SDERL_OPS_FOLDER=", Folder, "/s/hosts/here/"]),
    Ids = [lists:last(filename:split(Value))
           || {_, Environment} <- sderl_bench_proc:emulators(), Value <- Environment,
              binary:match(Value, Mark) =/= nomatch],
    [{Id, length([Other || Other <- Ids, Other =:= Id])} || Id <- lists:usort(Ids)].
