%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_member).
-moduledoc """
One of several members of a service. It connects to the others, runs its part of their store
(`m:sderl_ops_raft`), and runs the server that decides and acts while it holds the lease
(`m:sderl_ops_lease`). When it no longer holds the lease, it kills that server with all its steps.

A service with one member has no such process. The functions here then answer that there are no
others, and that this node acts.
""".

-behaviour(gen_server).

-import(sderl_ops_membership, [is_member/0]).

-export([start_link/1]).
-export([acting/0, others/0, has_store/0, majority_of_others/0]).
-export([home/1, tell/0]).
-export([list/0, dismiss/0, has_joined/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([options/0]).

-import(sderl_clock, [now_ms/0]).

-doc """
`act` starts the server with an epoch; `dismiss` ends the service of this virtual machine with a
reason; `folder` and `mark` are the member's.
""".
-type options() :: #{
    folder := file:filename(),
    mark := sderl_ops_raft:mark(),
    act := fun((Epoch :: pos_integer()) -> gen_server:start_ret()),
    dismiss := fun((unicode:chardata()) -> ok)
}.

-record(s, {
    folder :: file:filename(),
    mark :: sderl_ops_raft:mark(),
    act :: fun((pos_integer()) -> gen_server:start_ret()),
    dismiss :: fun((unicode:chardata()) -> ok),
    stage = blank :: blank | member | left,
    lease :: sderl_ops_lease:state(),
    roster = #{} :: sderl_ops_raft:roster(),
    voters = [] :: [node()],
    leader :: node() | undefined,
    server = none :: none | {pid(), Epoch :: pos_integer()},
    %% After a server has ended, no other is started until then.
    rest = now_ms() :: integer(),
    %% Links that are missing: when each is tried again, and how long that is put off.
    missing = #{} :: #{node() => {At :: integer(), DelayMs :: pos_integer()}},
    %% Work in processes of their own.
    enrol = none :: none | reference() | {again, At :: integer()},
    asker = none :: none | reference(),
    reader = none :: none | reference(),
    writer = none :: none | {reference(), sderl_ops_lease:write(), Began :: integer()},
    waits = "it has just started" :: unicode:chardata()
}).

-define(TICK_MS, 500).
-define(REST_MS, 1_000).
-define(ENROL_MS, 1_000).
-define(MOST_DELAY_MS, 5_000).
%% Usually beats come far more often.
-define(QUIET_MS, 10_000).
-define(CALL_MS, 10_000).
%% How long the store may take to bring all earlier decisions here, before the first new one.
-define(FENCE_MS, 5_000).
-define(BEGINS, "this ops member is about to begin again: ask in some seconds").

%% ---------------------------------------------------------------- questions

-doc "Starts it; the folder says whether the member has its part of the store.".
-spec start_link(options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Options, []).

-doc "Whether the store can be read here.".
-spec has_store() -> boolean().
has_store() -> not is_member() orelse map_get(stage, ask(tell)) =:= member.

-doc """
The node whose server acts. `soon`: none acts at the moment, but one will. `no`: none acts until an
operator does something.
""".
-spec acting() -> {ok, node()} | {soon | no, Sentence :: unicode:chardata()}.
acting() ->
    case is_member() of
        true ->
            try gen_server:call(?MODULE, acting, ?CALL_MS)
            catch exit:_ -> {soon, ?BEGINS} end;
        false ->
            {ok, node()}
    end.

%% For a request of an operator; `Alone` is the answer of a service with one member.
ask(What, Alone) ->
    case is_member() of
        true -> ask(What);
        false -> Alone
    end.

ask(What) ->
    try gen_server:call(?MODULE, What, ?CALL_MS)
    catch exit:_ -> throw({unavailable, ?BEGINS}) end.

-doc "Other members that answer.".
-spec others() -> [node()].
others() -> ask(others, []).

-doc "How many other members make a majority together with this one.".
-spec majority_of_others() -> non_neg_integer().
majority_of_others() -> ask(majority_of_others, 0).

-doc """
The folder for hosts that are folders of this machine; all members use the same one.
""".
-spec home(Folder :: file:filename()) -> {ok, file:filename_all()} | {apart, unicode:chardata()}.
home(Folder) ->
    case is_member() of
        false -> {ok, Folder};
        true ->
            Members = [Member || _ := {Member, _} <- sderl_ops_raft:roster()],
            case sderl_ops_roster:is_one_machine(Members) of
                true -> {ok, sderl_ops_raft:home(Folder)};
                false -> {apart, "its hosts are folders of one machine, and the members of the "
                                 "service are on several"}
            end
    end.

-doc "What another member wants to know.".
-spec tell() -> sderl_ops_enrol:told().
tell() -> gen_server:call(?MODULE, tell, ?CALL_MS).

-doc "All members for a person: who acts, who leads the store, who is away.".
-spec list() -> [sderl_ops_wire:member()] | none.
list() -> ask(list, none).

-doc "Tells this member that it was removed.".
-spec dismiss() -> ok.
dismiss() -> gen_server:cast(?MODULE, dismiss).

%% ---------------------------------------------------------------- beginning

-doc false.
-spec init(options()) -> {ok, #s{}} | {stop, term()}.
init(#{folder := Folder, mark := Mark, act := Act, dismiss := Dismiss}) ->
    process_flag(trap_exit, true),
    ok = sderl_ops_membership:begin_in(Folder),
    case sderl_ops_raft:open(Folder) of
        {ok, Stage} ->
            self() ! tick,
            {ok, #s{folder = Folder, mark = Mark, act = Act, dismiss = Dismiss, stage = Stage,
                    lease = sderl_ops_lease:new(node())}};
        {error, Why} ->
            {stop, {store, Why}}
    end.

-doc false.
-spec handle_call(term(), gen_server:from(), #s{}) -> {reply, term(), #s{}}.
handle_call(acting, _, S) -> {reply, who_acts(S), S};
handle_call(others, _, S) -> {reply, [Node || Node <- known(S), lists:member(Node, nodes())], S};
handle_call(majority_of_others, _, S) -> {reply, majority(S) - 1, S};
handle_call(list, _, S) -> {reply, listed(S), S};
handle_call(tell, _, #s{stage = Stage, roster = Roster, mark = #{members := Members}} = S) ->
    {reply, #{stage => Stage, roster => Roster, brings => sderl_ops_moved:is_there(S#s.folder),
              members => lists:sort([Node || #{node := Node} <- Members])}, S}.

who_acts(#s{stage = Stage, waits = Why}) when Stage =/= member ->
    {no, ["this member has no part of the store yet: ", Why]};
who_acts(#s{server = {_, _}}) ->
    {ok, node()};
who_acts(#s{lease = Lease} = S) ->
    Holder = sderl_ops_lease:holder(Lease),
    Present = [Node || Node <- voters(S), Node =:= node() orelse lists:member(Node, nodes())],
    case {length(Present) >= majority(S), lists:member(Holder, nodes())} of
        {false, _} ->
            {no, ["no majority of the ops members: of ", words(voters(S)), " only ", words(Present),
                  " answers here; nothing is decided until more are back, and what runs goes on"]};
        {true, true} ->
            {ok, Holder};
        {true, false} ->
            {soon, "no ops member acts at the moment: another takes over in some seconds"}
    end.

words(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- lists:sort(Nodes)]).

voters(#s{voters = [], roster = Roster, mark = #{members := Members}}) when Roster =:= #{} ->
    [Node || #{node := Node} <- Members];
voters(#s{voters = [], roster = Roster}) -> maps:keys(Roster);
voters(#s{voters = Voters}) -> Voters.

majority(S) -> length(voters(S)) div 2 + 1.

%% The members to link to: those of the roster, or, without one, those that this member was given.
known(#s{roster = Roster} = S) -> [Node || #{node := Node} <- known_members(S, Roster)].

known_members(#s{mark = #{members := Members}}, Roster) when Roster =:= #{} -> Members;
known_members(_, Roster) -> [Member || _ := {Member, _} <- Roster].

listed(#s{roster = Roster, voters = Voters, leader = Leader} = S) ->
    Acts = case who_acts(S) of {ok, Node} -> Node; _ -> none end,
    [#{member => iolist_to_binary(sderl_ops_roster:words(Member)),
       state => if Of =:= node() -> here;
                   Answers -> there;
                   true -> away
                end,
       store => case lists:member(Of, Voters) of
                    _ when S#s.stage =/= member -> unknown;
                    true when Of =:= Leader -> leads;
                    true -> has_it;
                    false -> expected
                end,
       acts => Of =:= Acts}
     || #{node := Of} = Member <- lists:sort(known_members(S, Roster)),
        Answers <- [lists:member(Of, nodes())]].

-doc false.
-spec handle_cast(dismiss, #s{}) -> {noreply, #s{}}.
handle_cast(dismiss, S) -> {noreply, leave(S)}.

%% Its part of the store is deleted at the next start. That cannot be done while the store runs, so
%% the whole service of this virtual machine ends.
leave(#s{folder = Folder, mark = Mark, dismiss = Dismiss} = S) ->
    ok = sderl_ops_raft:write(Folder, Mark#{stage := joining}),
    logger:warning("sderl_ops: this member was removed from the service"),
    ok = Dismiss("this member was removed from the service: `members add` on another one lets it "
                 "come again"),
    (end_server(S))#s{stage = left, lease = sderl_ops_lease:new(node()), waits = "it was removed"}.

%% ---------------------------------------------------------------- the loop

-doc false.
-spec handle_info(term(), #s{}) -> {noreply, #s{}}.
handle_info(tick, S) ->
    _ = erlang:send_after(?TICK_MS, self(), tick),
    {noreply, act_or_not(write(read(ask_others(enrol(link_missing(S))))))};
handle_info(check, S) ->
    {noreply, act_or_not(S)};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{enrol = Ref} = S) ->
    {noreply, enrolled(Outcome, S#s{enrol = none})};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{asker = Ref} = S) ->
    {noreply, others_told(Outcome, S#s{asker = none})};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{reader = Ref} = S) ->
    {noreply, act_or_not(write(was_read(Outcome, S#s{reader = none})))};
handle_info({'DOWN', Ref, process, _, Outcome}, #s{writer = {Ref, Write, Began}} = S) ->
    {noreply, act_or_not(was_written(Outcome, Write, Began, S#s{writer = none}))};
handle_info({'EXIT', Pid, Why}, #s{server = {Pid, _}} = S) ->
    logger:warning("sderl_ops: the server of this member ended: ~0tP", [Why, 20]),
    {noreply, act_or_not(S#s{server = none, rest = now_ms() + ?REST_MS})};
handle_info(_, S) ->
    {noreply, S}.

-doc false.
-spec terminate(term(), #s{}) -> ok.
terminate(_, S) ->
    ok = give_back(end_write(end_server(S))),
    sderl_ops_store:close().

%% The next write has to name the last one, so that has to end first.
end_write(#s{writer = none} = S) ->
    S;
end_write(#s{writer = {Ref, Write, Began}} = S) ->
    receive
        {'DOWN', Ref, process, _, Outcome} -> was_written(Outcome, Write, Began, S#s{writer = none})
    end.

give_back(#s{lease = Lease}) ->
    case sderl_ops_lease:give_back(Lease) of
        nothing ->
            ok;
        #{from := From, to := To} ->
            logger:notice("sderl_ops: this member ends and gives the lease back: ~0tP",
                          [sderl_ops_raft:swap(From, To), 12])
    end.

%% Processes answer with their exit reason. Khepri's types do not allow a map as the expected value.
-dialyzer({nowarn_function, [begin_work/1, give_back/1]}).

begin_work(Fun) ->
    {_, Ref} = spawn_opt(fun() -> exit({ended, Fun()}) end, [link, monitor]),
    Ref.

%% Each attempt with a wrong cookie is logged on both sides, so failing ones become rare.
link_missing(#s{missing = Before} = S) ->
    Now = now_ms(),
    Missing = known(S) -- [node() | nodes()],
    Tried = #{Node => {Now + Delay, Delay}
              || Node <- Missing, {At, Last} <- [maps:get(Node, Before, {Now, 0})], At =< Now,
                 Delay <- [min(?MOST_DELAY_MS, max(?TICK_MS, 2 * Last))]},
    ok = sderl_ops_links:connect(maps:keys(Tried)),
    S#s{missing = maps:merge(maps:with(Missing, Before), Tried)}.

%% ---------------------------------------------------------------- getting the store

enrol(#s{stage = blank, enrol = none, folder = Folder, mark = Mark} = S) ->
    S#s{enrol = begin_work(fun() -> sderl_ops_enrol:try_it(Folder, Mark, fun ask_each/1) end)};
enrol(#s{enrol = {again, At}} = S) ->
    case now_ms() >= At of
        true -> enrol(S#s{enrol = none});
        false -> S
    end;
enrol(S) ->
    S.

ask_each(Nodes) -> erpc:multicall(Nodes, ?MODULE, tell, [], ?CALL_MS).

%% The file that it brought is dropped only now: until then others must know that it brings one.
enrolled({ended, ok}, #s{folder = Folder} = S) ->
    logger:notice("sderl_ops: this member has its part of the store"),
    ok = sderl_ops_moved:drop(Folder),
    S#s{stage = member};
enrolled({ended, {waits, Why}}, S) ->
    waits(Why, S);
enrolled(Other, S) ->
    waits(io_lib:format("it could not join: ~0tP", [Other, 12]), S).

waits(Why, #s{waits = Before} = S) ->
    Text = unicode:characters_to_binary(Why),
    %% Logged, because somebody may have to do something about it.
    _ = [logger:warning("sderl_ops: this member waits: ~ts", [Text]) || Text =/= Before],
    S#s{waits = Text, enrol = {again, now_ms() + ?ENROL_MS}}.

%% ---------------------------------------------------------------- removal

%% A member that was removed while it did not run gets no beats, and would wait for ever.
ask_others(#s{stage = member, asker = none, lease = Lease} = S) ->
    Others = [Node || Node <- known(S), lists:member(Node, nodes())],
    case sderl_ops_lease:quiet_ms(now_ms(), Lease) > ?QUIET_MS andalso Others of
        [_ | _] ->
            S#s{asker = begin_work(fun() ->
                erpc:multicall(Others, ?MODULE, has_joined, [node()], ?CALL_MS)
            end)};
        _ ->
            S
    end;
ask_others(S) ->
    S.

others_told({ended, Told}, #s{stage = member} = S) ->
    case lists:member({ok, no}, Told) of
        true -> leave(S);
        false -> S
    end;
others_told(_, S) ->
    S.

-doc """
Whether a member has joined and was not removed since, as a majority knows it now. A member that has
its part of the store has joined before, so for such a one `no` means that it was removed.
""".
-spec has_joined(node()) -> yes | no | unknown.
has_joined(Node) ->
    case sderl_ops_raft:roster_now(?FENCE_MS) of
        {ok, #{Node := {_, joined}}} -> yes;
        {ok, #{}} -> no;
        {error, _} -> unknown
    end.

%% ---------------------------------------------------------------- the lease

read(#s{stage = member, reader = none} = S) ->
    S#s{reader = begin_work(fun() ->
        {sderl_ops_raft:lease(), sderl_ops_raft:roster(), sderl_ops_raft:members()}
    end)};
read(S) ->
    S.

was_read({ended, {Lease, Roster, {Voters, Leader}}}, S0) ->
    S = took_roster(Roster, S0#s{voters = Voters, leader = Leader}),
    case Lease of
        {ok, Seen} -> S#s{lease = sderl_ops_lease:see(Seen, now_ms(), S#s.lease)};
        {error, _} -> S
    end;
was_read(_, S) ->
    S.

took_roster(Roster, S) when Roster =:= #{}; Roster =:= S#s.roster ->
    S;
took_roster(Roster, #s{mark = #{self := #{port := Port}}} = S) ->
    Members = known_members(S, Roster),
    ok = sderl_ops_ports:set(Port, Members),
    ok = sderl_ops_links:allow(Members),
    S#s{roster = Roster}.

write(#s{stage = member, writer = none, lease = Lease} = S) ->
    Now = now_ms(),
    case sderl_ops_lease:next(Now, erlang:system_time(second), Lease) of
        nothing ->
            S;
        #{from := From, to := To} = Write ->
            Ref = begin_work(fun() -> sderl_ops_raft:swap(From, To) end),
            S#s{writer = {Ref, Write, Now}}
    end;
write(S) ->
    S.

was_written({ended, ok}, Write, Began, #s{lease = Lease} = S) ->
    S#s{lease = sderl_ops_lease:granted(Write, Began, Lease)};
was_written(Outcome, _, Began, #s{lease = Lease} = S) ->
    logger:info("sderl_ops: no beat of the lease after ~b ms: ~0tP",
                [now_ms() - Began, Outcome, 20]),
    S#s{lease = sderl_ops_lease:failed(now_ms(), Lease)}.

%% ---------------------------------------------------------------- acting

act_or_not(#s{lease = Lease, server = Server, rest = Rest} = S) ->
    Now = now_ms(),
    case {sderl_ops_lease:acts(Now, Lease), Server} of
        {{true, Epoch}, none} when Now >= Rest -> begin_server(Epoch, S);
        {{true, Epoch}, {_, Epoch}} -> check_in_time(S);
        {{true, _}, none} -> S;
        {{true, _}, _} -> end_server(S);
        {false, none} -> S;
        {false, _} ->
            logger:warning("sderl_ops: this member acts no more: it reaches no majority in time"),
            end_server(S)
    end.

begin_server(Epoch, #s{act = Act, lease = Lease} = S) ->
    Fenced = sderl_ops_raft:fence(?FENCE_MS),
    case {Fenced, sderl_ops_lease:acts(now_ms(), Lease)} of
        {ok, {true, Epoch}} ->
            case Act(Epoch) of
                {ok, Pid} ->
                    logger:notice("sderl_ops: this member acts, with epoch ~b", [Epoch]),
                    check_in_time(S#s{server = {Pid, Epoch}});
                Error ->
                    logger:warning("sderl_ops: the server does not start: ~0tP", [Error, 20]),
                    S#s{rest = now_ms() + ?REST_MS}
            end;
        _ ->
            S#s{rest = now_ms() + ?REST_MS}
    end.

%% Checks again when the lease ends.
check_in_time(#s{lease = Lease} = S) ->
    case sderl_ops_lease:until(Lease) of
        none -> S;
        Until ->
            _ = erlang:send_after(Until, self(), check, [{abs, true}]),
            S
    end.

end_server(#s{server = none} = S) ->
    S;
end_server(#s{server = {Pid, _}} = S) ->
    %% Its steps are linked to it, and the programs that they started end with them.
    unlink(Pid),
    Monitor = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    S#s{server = none}.
