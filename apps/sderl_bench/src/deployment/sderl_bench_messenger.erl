%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_messenger).
-moduledoc """
The program that is upgraded under load: a process on each node sends messages to the others, in its
node's groups and, over gateways, in the neighbouring ones.

The process has the name `{box, Id}` in each of its node's groups. A message is kept until its
receiver has acknowledged it, and sent again with growing pauses until then; a receiver counts it
once. A node that stops writes its unacknowledged and its received messages into the folder that
stays over an upgrade (`SDERL_OPS_STATE`), and the next one goes on with them.

The program is the application `messenger` of a release: `application/2` makes that. It needs this
module and the library. A file `quiet` in the folder of its environment variable `MESSENGER` ends
the sending of new messages; then it writes a report into its folder each second.
""".

-behaviour(application).
-behaviour(gen_server).

-export([application/2, groups/3, next_groups/2]).
-export([start/2, stop/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([report/0, group/0]).

-doc "A group, and the instances in it.".
-type group() :: {Name :: binary(), [Id :: binary()]}.

-doc """
`sent` and `acked` are counts of messages to each instance, `taken` of those from each; `pending`:
not yet acknowledged; `again`: sent again; `missing`: names of its own groups that it does not find.
""".
-type report() :: #{
    sent := #{binary() => non_neg_integer()},
    acked := #{binary() => non_neg_integer()},
    taken := #{binary() => non_neg_integer()},
    pending := non_neg_integer(),
    again := non_neg_integer(),
    missing := [{Group :: binary(), Id :: binary()}],
    quiet := boolean()
}.

-record(message, {
    to :: {Group :: binary(), Id :: binary()},
    due :: integer(),
    pause :: pos_integer()
}).

-record(s, {
    id :: binary(),
    groups :: [group()],
    near :: [{Group :: binary(), Id :: binary()}],
    far :: [{Group :: binary(), Id :: binary()}],
    every_ms :: pos_integer(),
    number = 0 :: non_neg_integer(),
    out = #{} :: #{pos_integer() => #message{}},
    sent = #{} :: #{binary() => non_neg_integer()},
    acked = #{} :: #{binary() => non_neg_integer()},
    %% Of each sender.
    taken = #{} :: #{binary() => #{Number :: pos_integer() => []}},
    again = 0 :: non_neg_integer(),
    quiet = false :: boolean(),
    reported = 0 :: integer()
}).

%% The share of messages that go to other groups.
-define(FAR, 0.2).
-define(FIRST_PAUSE_MS, 250).
-define(LONGEST_PAUSE_MS, 2_000).
-define(NAMES_MS, 200).
-define(REPORT_MS, 1_000).

%% ---------------------------------------------------------------- its release and groups

-doc "Makes the application's folder, for a release of that version.".
-spec application(file:filename(), Version :: string()) -> ok.
application(Ebin, Version) ->
    ok = filelib:ensure_path(Ebin),
    Beam = filename:join(Ebin, atom_to_list(?MODULE) ++ ".beam"),
    {ok, _} = file:copy(code:which(?MODULE), Beam),
    App = {application, messenger, [
        {vsn, Version}, {modules, [?MODULE]}, {registered, [?MODULE]},
        {applications, [kernel, stdlib, sderl]}, {mod, {?MODULE, []}}
    ]},
    ok = file:write_file(filename:join(Ebin, "messenger.app"), io_lib:format("~tp.~n", [App])).

-doc """
Instances in a ring of groups of `Size`, as in the demo: the last of each group, so many as there
are gateways, are also in the next one.
""".
-spec groups([binary()], Size :: pos_integer(), Gateways :: pos_integer()) -> [group()].
groups(Ids, Size, Gateways) ->
    Parts = parts(Ids, Size),
    Before = [lists:last(Parts) | lists:droplast(Parts)],
    [
        {<<"g", (integer_to_binary(Number))/binary>>,
         lists:uniq(Own ++ [Id || length(Parts) > 1,
                                  Id <- lists:nthtail(max(0, length(Prior) - Gateways), Prior)])}
     || {Number, Own, Prior} <- lists:zip3(lists:seq(1, length(Parts)), Parts, Before)
    ].

parts(Ids, Size) when length(Ids) < 2 * Size -> [Ids];
parts(Ids, Size) ->
    {Part, Rest} = lists:split(Size, Ids),
    [Part | parts(Rest, Size)].

-doc "The groups that this instance is not in and that share a member with one of its own.".
-spec next_groups(binary(), [group()]) -> [group()].
next_groups(Id, Groups) ->
    {Own, Others} = lists:partition(fun({_, Ids}) -> lists:member(Id, Ids) end, Groups),
    Mates = lists:append([Ids || {_, Ids} <- Own]),
    [Group || {_, Ids} = Group <- Others, Ids -- Mates =/= Ids].

%% ---------------------------------------------------------------- its process

-doc false.
-spec start(term(), term()) -> {ok, pid()} | {error, term()}.
start(_, _) ->
    case gen_server:start_link({local, ?MODULE}, ?MODULE, [], []) of
        {ok, Pid} -> {ok, Pid};
        {error, _} = Error -> Error
    end.

-doc false.
-spec stop(term()) -> ok.
stop(_) -> ok.

-doc false.
-spec init([]) -> {ok, #s{}}.
init([]) ->
    process_flag(trap_exit, true),
    {ok, Given} = application:get_env(messenger, groups),
    {ok, Every} = application:get_env(messenger, every_ms),
    Groups = [{Name, Ids} || [Name, Ids] <- Given],
    [Id, _] = string:split(atom_to_binary(node()), "@"),
    Own = [Group || {_, Ids} = Group <- Groups, lists:member(Id, Ids)],
    S = restore(#s{
        id = Id,
        groups = Groups,
        near = others(Id, Own),
        far = others(Id, next_groups(Id, Groups)),
        every_ms = Every
    }),
    Box = self(),
    _ = spawn_link(fun() -> keep_names([Name || {Name, _} <- Own], {box, Id}, Box) end),
    self() ! tick,
    {ok, S}.

others(Id, Groups) -> [{Name, Other} || {Name, Ids} <- Groups, Other <- Ids, Other =/= Id].

%% Registering a name waits for other nodes, so another process does it.
keep_names(Groups, Name, Box) ->
    Own = own_groups(),
    lists:foreach(fun(Group) ->
        case lists:member(Group, Own)
                 andalso s_group:whereis_name(binary_to_atom(Group), Name) of
            undefined ->
                try s_group:register_name(binary_to_atom(Group), Name, Box)
                catch _:_ -> again_later
                end;
            _ -> there_or_no_member
        end
    end, Groups),
    receive after ?NAMES_MS -> keep_names(Groups, Name, Box) end.

own_groups() ->
    case s_group:own_s_groups() of
        Groups when is_list(Groups) -> [atom_to_binary(Group) || {Group, _} <- Groups];
        _ -> []
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, ok, #s{}}.
handle_call(_, _, S) -> {reply, ok, S}.

-doc false.
-spec handle_cast(term(), #s{}) -> {noreply, #s{}}.
handle_cast(_, S) -> {noreply, S}.

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}} | {stop, term(), #s{}}.
handle_info(tick, #s{every_ms = Every} = S) ->
    _ = erlang:send_after(Every, self(), tick),
    Own = own_groups(),
    {noreply, report(send_again(Own, send_new(Own, look_for_quiet(S))))};
handle_info({message, From, Number}, S) ->
    {noreply, take(From, Number, S)};
handle_info({taken, Number}, #s{out = Out, acked = Acked} = S) ->
    case maps:take(Number, Out) of
        {#message{to = {_, Id}}, Left} -> {noreply, S#s{out = Left, acked = one_more(Id, Acked)}};
        error -> {noreply, S}
    end;
handle_info({'EXIT', _, Why}, S) ->
    {stop, Why, S};
handle_info(_, S) ->
    {noreply, S}.

-doc false.
-spec terminate(term(), #s{}) -> ok.
terminate(_, S) ->
    %% Nothing is taken or acknowledged from here on.
    Kept = {S#s.number, S#s.out, S#s.sent, S#s.acked, S#s.taken, S#s.again},
    ok = file:write_file(in_state("messages"), term_to_binary(Kept)).

restore(S) ->
    case file:read_file(in_state("messages")) of
        {ok, Bytes} ->
            {Number, Out, Sent, Acked, Taken, Again} = binary_to_term(Bytes),
            Due = #{N => Message#message{due = 0} || N := Message <- Out},
            S#s{number = Number, out = Due, sent = Sent, acked = Acked, taken = Taken,
                again = Again};
        {error, enoent} ->
            S
    end.

in_state(Name) -> filename:join(os:getenv("SDERL_OPS_STATE"), Name).

one_more(Id, Counts) -> maps:update_with(Id, fun(N) -> N + 1 end, 1, Counts).

look_for_quiet(S) ->
    S#s{quiet = filelib:is_regular(filename:join(os:getenv("MESSENGER"), "quiet"))}.

send_new(_, #s{quiet = true} = S) -> S;
send_new(Own, #s{near = Near, far = Far, number = Before, out = Out, sent = Sent} = S) ->
    Receivers = case Far =/= [] andalso rand:uniform() < ?FAR of
        true -> Far;
        false -> Near
    end,
    {_, Id} = To = lists:nth(rand:uniform(length(Receivers)), Receivers),
    Number = Before + 1,
    ok = pass(To, {message, S#s.id, Number}, Own),
    Message = #message{to = To, due = wall_ms() + ?FIRST_PAUSE_MS, pause = ?FIRST_PAUSE_MS},
    S#s{number = Number, out = Out#{Number => Message}, sent = one_more(Id, Sent)}.

send_again(Own, #s{id = Id, out = Out, again = Before} = S) ->
    Now = wall_ms(),
    Due = #{Number => Message || Number := #message{due = At} = Message <- Out, At =< Now},
    Later = maps:map(fun(Number, #message{to = To, pause = Pause} = Message) ->
        ok = pass(To, {message, Id, Number}, Own),
        Next = min(2 * Pause, ?LONGEST_PAUSE_MS),
        Message#message{due = Now + Next, pause = Next}
    end, Due),
    S#s{out = maps:merge(Out, Later), again = Before + map_size(Due)}.

%% A receiver that is not there gets the message with the next try.
pass({Group, Id}, Message, Own) ->
    Name = {box, Id},
    Atom = binary_to_atom(Group),
    _ = try
        case lists:member(Group, Own) of
            true ->
                case s_group:whereis_name(Atom, Name) of
                    undefined -> not_there;
                    Pid -> erlang:send(Pid, Message, [noconnect])
                end;
            false ->
                sderl_route:send({Atom, Name}, Message)
        end
    catch
        _:Why -> {failed, Why}
    end,
    ok.

%% A message that came before is acknowledged again: the first answer may have been lost.
take(From, Number, #s{taken = Taken, groups = Groups} = S) ->
    Own = own_groups(),
    Of = [Name || {Name, Ids} <- Groups, lists:member(From, Ids)],
    Way = case [Name || Name <- Of, lists:member(Name, Own)] of
        [Name | _] -> Name;
        [] -> hd(Of)
    end,
    ok = pass({Way, From}, {taken, Number}, Own),
    Before = maps:get(From, Taken, #{}),
    S#s{taken = Taken#{From => Before#{Number => []}}}.

report(#s{quiet = false} = S) -> S;
report(#s{reported = Last} = S) ->
    Now = wall_ms(),
    case Now - Last >= ?REPORT_MS of
        true ->
            ok = file:write_file(in_state("part"), term_to_binary(reported(S))),
            ok = file:rename(in_state("part"), in_state("report")),
            S#s{reported = Now};
        false ->
            S
    end.

reported(#s{id = Id, groups = Groups, out = Out} = S) ->
    #{
        sent => S#s.sent,
        acked => S#s.acked,
        taken => #{From => map_size(Numbers) || From := Numbers <- S#s.taken},
        pending => map_size(Out),
        again => S#s.again,
        quiet => true,
        missing => [
            {Group, Member}
         || {Group, Ids} <- Groups, lists:member(Id, Ids), Member <- Ids,
            not is_there(Group, Member)
        ]
    }.

is_there(Group, Member) ->
    try s_group:whereis_name(binary_to_atom(Group), {box, Member}) of
        Pid when is_pid(Pid) -> true;
        undefined -> false
    catch
        _:_ -> false
    end.

%% Wall clock, so that 0 is in the past: `due` after a restart, and the first report.
wall_ms() -> erlang:system_time(millisecond).
