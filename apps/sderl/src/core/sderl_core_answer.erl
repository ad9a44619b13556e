%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_answer).
-moduledoc false.
%% The answers to clients' operations.
%%
%% A batch answers each operation, and the answer names the homes, beside the client's node, that
%% must have the batch (`plain` strips them). A client hears the answer when it is certain. An
%% operation on a frozen name waits. The answer is unknown if nobody can tell any more: a home is
%% gone, or this member leaves the log that may have its list.

-include("sderl_core.hrl").

%% For so long an operation on a name of a member that is set aside is asked again.
-define(WAIT_MS, 10_000).

-export([default/1, plain/1, told_again/5, answers/3, reply/3, at_once/1, requeue/1]).
-export([unknown_answers/2, unknown_in/1, amend/2, amend_sessions/2, forget_answers/1,
         told_committed/1]).
-export([look_up_removed/1, looked_up/2, leave_log/1, decided_before/3, leave/2, left_out/2]).

-import(sderl_core_state, [fx/2]).

%% Whose list, and the positions in it of the answers that nobody will know.
-type unknown() ::
    {node(), Sid :: integer(), Number :: pos_integer(), Positions :: [pos_integer()]}.

%% The answer of an operation that succeeds. If all operations of a list answer so, the list
%% travels, and is kept, without answers.
-spec default(sderl_core:op()) -> yes | ok.
default(?REGISTER(_, _)) -> yes;
default(?UNREGISTER(_)) -> ok;
default(#?REGISTER_WITH{}) -> yes;
default(#?REGISTER_OVER{}) -> yes;
default(#?RE_REGISTER{}) -> yes;
default(_) -> ok.

-doc "An answer of a batch, without the homes that must have the batch.".
-spec plain(term()) -> term().
plain({yes, _}) -> yes;
plain({ok, Home}) when is_atom(Home) -> ok;
plain(A) -> A.

%% ---------------------------------------------------------------- a list that is settled

-doc """
The coordinator repeats the answers to an earlier list of ours. They count if we have the batch that
has them, as a follower of that coordinator does. A learner may never get the rows of that log, and
a member that gave the coordinator up and was set aside since may lack the batch: these ask again.
""".
-spec told_again(epoch(), pos_integer(), [term()] | default, node(), #s{}) -> #s{}.
told_again(E, R, As, N,
           #s{role = follower, lead = N, d = #d{lineage = E, syncing = false}} = S) ->
    answers(R, As, S);
told_again(_, _, _, _, S) -> S.

-spec answers(pos_integer(), [term()] | default, #s{}) -> #s{}.
answers(R, As, #s{clients = #clients{out = {R, List}} = Clients} = S)
  when As =:= default; length(As) =:= length(List) ->
    reply(List, As, S#s{clients = Clients#clients{out = undefined, answers = undefined}});
answers(_, _, S) -> S.

-doc "The answers of a list that is settled; operations that have to wait are asked again.".
-spec reply([{term(), sderl_core:op()}], [term()] | default, #s{}) -> #s{}.
reply(List, default, #s{clients = #clients{predecessor = undefined, waited = Waited}} = S)
  when map_size(Waited) =:= 0 ->
    %% The way nearly everything goes.
    fx({replies, [{F, default(Op)} || {F, Op} <- List, F =/= none]}, S);
reply(List, As, #s{clients = Clients0, now = Now} = S0) ->
    #clients{predecessor = Predecessor, deferred = Deferred, waited = Waited} = Clients0,
    Answers = settled(List, As, S0),
    Later = [{maps:get(F, Waited, Now), F, Op} || {F, Op, {no, later}} <- Answers],
    Clients = Clients0#clients{deferred = Later ++ Deferred,
                               waited = maps:without([F || {F, _, _} <- Answers], Waited)},
    S = S0#s{clients = Clients},
    Rs = [{F, A} || {F, _, A} <- Answers, F =/= none, A =/= {no, later}],
    %% The list that our predecessor left: clients that saw it die may ask again later.
    case Predecessor of
        {asked, List} ->
            fx({replies, Rs}, S#s{clients = Clients#clients{predecessor = {answered, Rs}}});
        _ -> fx({replies, Rs}, S)
    end.

-doc """
This member has just applied a batch. With `answer => applied` its clients hear now the answers that
concern this node's shard alone. An answer that names another home waits for that home's
acknowledgement, and a change of the membership for that of every member. A member that was stopped
waits, too: the batch may be of a coordinator that the others follow no longer.
""".
-spec at_once(#s{}) -> #s{}.
at_once(#s{answer = applied, unconfirmed = [],
           clients = #clients{answers = {_, default}, out = {_, List}} = Clients} = S) ->
    case lists:all(fun({_, Op}) -> sderl_op:name(Op) =/= none end, List) of
        true ->
            reply(List, default,
                  S#s{clients = Clients#clients{answers = undefined, out = undefined}});
        false -> S
    end;
at_once(S) -> S.

settled(List, default, #s{clients = #clients{waited = Waited}}) when map_size(Waited) =:= 0 ->
    [{F, Op, default(Op)} || {F, Op} <- List];
settled(List, default, S) ->
    [{F, Op, settled(F, Op, default(Op), S)} || {F, Op} <- List];
settled(List, As, S) ->
    [{F, Op, settled(F, Op, A, S)} || {{F, Op}, A} <- lists:zip(List, As)].

%% An answer as the client hears it.
settled(F, Op, A, S) ->
    case plain(A) of
        A -> certain(F, Op, A, S);
        Plain -> Plain
    end.

%% The name went while its home was set aside: maybe only because the home went, and brings it back.
certain(F, ?UNREGISTER(_), ok, #s{clients = #clients{waited = Waited}})
  when is_map_key(F, Waited) ->
    unknown;
%% The name was of our shard once; what its present home has done with it is not known here.
certain(_, ?UNREGISTER_OF(_, _), {no, not_its_home}, _) -> unknown;
%% An operation that went to a coordinator whose log we left may have been applied there, at another
%% home: `no` would say that it was not.
certain(_, Op, {no, _} = A, S) ->
    case elsewhere(Op, S) of
        true -> unknown;
        false -> A
    end;
certain(_, _, A, _) -> A.

elsewhere(Op, #s{clients = #clients{in_doubt = InDoubt}, self = Self, d = #d{lineage = E}}) ->
    case {lists:delete(E, InDoubt), sderl_op:registers(Op)} of
        {[], _} -> false;
        {_, none} -> false;
        {_, _} when is_record(Op, ?RE_REGISTER) -> true;
        {_, Pid} -> node(Pid) =/= Self orelse lists:member(decided, InDoubt)
    end.

-doc """
Operations on names of members that are set aside wait, because only its home may change a frozen
shard. They are asked again with every tick, until no client waits for them any more.
""".
-spec requeue(#s{}) -> #s{}.
requeue(#s{clients = #clients{deferred = []}} = S) -> S;
requeue(#s{clients = #clients{deferred = Deferred, waited = Waited, queue = Queue} = Clients,
           now = Now} = S) ->
    {Late, Again} = lists:partition(fun({At, F, _}) ->
        F =/= none andalso Now - At > ?WAIT_MS
    end, Deferred),
    Since = #{F => At || {At, F, _} <- Again, F =/= none},
    fx({replies, [{F, unknown} || {_, F, _} <- Late]},
       S#s{clients = Clients#clients{deferred = [],
                                     waited = maps:merge(Waited, Since),
                                     queue = [{F, Op} || {_, F, Op} <- Again] ++ Queue}}).

%% ---------------------------------------------------------------- answers that nobody will know

%% An operation may change a name of another home than its client's node. That home acknowledges the
%% batch, so its own copy of its shard has the change before anybody is answered. If the home is set
%% aside or dropped before it acknowledges, its copy may come back without the change: the answer is
%% unknown. The coordinator orders that with the change of the component, before it tells of the
%% commit.

-doc "The answers of a batch that concern homes which went without acknowledging it.".
-spec unknown_answers([term()], [node()]) -> [unknown()].
unknown_answers(_, []) -> [];
unknown_answers(Items, Homes) ->
    [{O, Sid, R, Positions}
     || #seg{member = O, session = Sid, number = R, answers = As} <- Items, is_list(As),
        [_ | _] = Positions <- [[I
                                 || {I, A} <- lists:enumerate(As),
                                    homes(A) -- Homes =/= homes(A)]]].

%% The homes that an answer depends on, beside the client's node.
homes({yes, [_ | _] = Homes}) -> Homes;
homes({yes, Home}) -> [Home];
homes({ok, Home}) when is_atom(Home) -> [Home];
homes(_) -> [].

-doc "The unknown answers that a batch orders.".
-spec unknown_in([term()]) -> [unknown()].
unknown_in(Items) -> lists:append([Unknown || #view{unknown = Unknown} <- Items]).

-doc "Makes answers of the last batch to our own clients unknown.".
-spec amend([unknown()], #s{}) -> #s{}.
amend([], S) -> S;
amend(Unknown, #s{self = Self, d = #d{sid = Sid},
                  clients = #clients{answers = {At, As}, out = {R, _}} = Clients} = S) ->
    case [Ps || {N, Of, Number, Ps} <- Unknown, N =:= Self, Of =:= Sid, Number =:= R] of
        [] -> S;
        Positions ->
            Known = without_answers(lists:append(Positions), As),
            S#s{clients = Clients#clients{answers = {At, Known}}}
    end;
amend(_, S) -> S.

-doc "The same for the answers that are kept for every member.".
-spec amend_sessions([unknown()], #{node() => session()}) -> #{node() => session()}.
amend_sessions(Unknown, Sessions) ->
    lists:foldl(fun({O, Sid, R, Positions}, Acc) ->
        case Acc of
            #{O := {Sid, R, As}} -> Acc#{O := {Sid, R, without_answers(Positions, As)}};
            _ -> Acc
        end
    end, Sessions, Unknown).

without_answers(_, default) -> default;
without_answers(Positions, As) ->
    [case lists:member(I, Positions) of true -> unknown; false -> A end
     || {I, A} <- lists:enumerate(As)].

-doc "The same for the coordinator's own clients, as soon as it knows.".
-spec forget_answers(#s{}) -> #s{}.
forget_answers(#s{office = #office{unknown_answers = Unknown}} = S) -> amend(Unknown, S).

-doc "The last batch whose answers members may give to their clients.".
-spec told_committed(#s{}) -> non_neg_integer().
told_committed(#s{office = #office{unknown_answers = []}, committed = C}) -> C;
told_committed(#s{num = Num, committed = C}) -> min(C, Num - 1).

%% ---------------------------------------------------------------- leaving a log

-doc """
This member takes its shard to another log. The log that it leaves may have decided its list, in a
batch that it lacks: names of other homes are changed there, its own rows are not. A registration
can be decided again; if the answer is `no` and it may stand elsewhere, the outcome is unknown
(`elsewhere`). A removal must not be done twice. A name of our own shard was not removed, as our own
copy counts, so its removal is asked for again if the same process holds the name. The outcome of
other removals is unknown.
""".
-spec leave_log(#s{}) -> #s{}.
leave_log(#s{clients = #clients{out = {R, List}, in_doubt = [_ | _]} = Clients, self = Self,
             sessions = Sessions, d = #d{sid = Sid}} = S) ->
    case Sessions of
        %% Applied here, and not known to be on all members: names of others may be changed on this
        %% member alone.
        #{Self := {Sid, R, As}} when is_list(As) ->
            Own = {Sid, R, [case homes(A) of [] -> A; _ -> unknown end || A <- As]},
            Sessions1 = Sessions#{Self := Own},
            fx({sessions, Sessions1}, S#s{sessions = Sessions1});
        #{Self := {Sid, R, _}} -> S;
        _ ->
            {Once, Again0} = lists:partition(fun({F, Op}) ->
                F =/= none andalso lists:any(fun(Name) -> not is_own(Name, S) end, removed_by(Op))
            end, List),
            Again = [{F, again_if_held(Op, S)} || {F, Op} <- Again0],
            Number = R + 1,
            Left = Clients#clients{predecessor = undefined, number = Number},
            Now = case Again of
                [] -> Left#clients{out = undefined, in_doubt = []};
                _ -> Left#clients{out = {Number, Again},
                                  in_doubt = [{left, R} | Left#clients.in_doubt]}
            end,
            S1 = fx({replies, [{F, removed(Op, S)} || {F, Op} <- Once]}, S),
            %% A successor of this process must know that the list was out under another number.
            fx({outbox, {again, Number}, Again}, S1#s{clients = Now})
    end;
leave_log(S) -> S.

-doc """
Our log has a list of ours. If this member had left the log, was taken in by nobody, and has sent
the list again under a later number, the list is decided twice: what the second answer denies may be
so.
""".
-spec decided_before(node(), session() | undefined, #s{}) -> #s{}.
decided_before(Self, {Sid, R, _}, #s{self = Self, clients = #clients{in_doubt = InDoubt} = Clients,
                                     d = #d{sid = Sid}} = S) ->
    case lists:member({left, R}, InDoubt) of
        true -> S#s{clients = Clients#clients{in_doubt = [decided | InDoubt]}};
        false -> S
    end;
decided_before(_, _, S) -> S.

%% A name that our table does not have was free when its removal was asked for.
removed(?UNREGISTER(Name), #s{clients = #clients{rows = Found}})
  when not is_map_key(Name, Found) ->
    ok;
removed(_, _) -> unknown.

-doc "Asks for the rows of the names that our list would remove or replace, before our shard goes.".
-spec look_up_removed(#s{}) -> #s{}.
look_up_removed(#s{clients = #clients{out = {_, List}}} = S) ->
    case lists:usort([Name || {_, Op} <- List, Name <- removed_by(Op)]) of
        [] -> looked_up([], S);
        Names -> fx({look_up, Names}, looked_up([], S))
    end;
look_up_removed(S) -> looked_up([], S).

-doc "The rows that our table has of these names.".
-spec looked_up([sderl_core:row()], #s{}) -> #s{}.
looked_up(Rows, #s{clients = Clients} = S) ->
    S#s{clients = Clients#clients{rows = #{sderl_row:name(Row) => Row || Row <- Rows}}}.

removed_by(?UNREGISTER(Name)) -> [Name];
removed_by(#?RE_REGISTER{name = Name}) -> [Name];
removed_by(_) -> [].

is_own(Name, #s{self = Self, clients = #clients{rows = Found}}) ->
    case Found of
        #{Name := ?ROW_AT(Self)} -> true;
        _ -> false
    end.

again_if_held(?UNREGISTER(Name), #s{clients = #clients{rows = Found}}) ->
    ?UNREGISTER_OF(Name, sderl_row:pid(map_get(Name, Found)));
again_if_held(Op, _) -> Op.

%% ---------------------------------------------------------------- leaving the group

%% The last thing that this member does for the group (rule 5): it gives the answers that the last
%% batch holds. Everything else was not applied.
-spec leave(removed | deleted, #s{}) -> #s{}.
%% A learner got the answers of its log with the snapshot, and they waited for its end.
leave(Why,
      #s{self = Self, sessions = Sess, joining = #joining{session = {_, _, _} = Session} = Joining,
         d = #d{syncing = true}} = S) ->
    leave(Why,
          S#s{sessions = Sess#{Self => Session}, joining = Joining#joining{session = undefined}});
leave(Why, #s{self = Self, clients = #clients{out = Out, in_doubt = InDoubt}, sessions = Sess,
              d = #d{sid = Sid, lineage = E}} = S) ->
    case {Out, Sess, lists:delete(E, InDoubt)} of
        {undefined, _, _} -> left(Why, [], S);
        {{R, List}, #{Self := {Sid, R, As}}, _} -> left(Why, [], reply(List, As, S));
        %% The list is not in this log. It was also sent to a coordinator of another epoch, which
        %% may have gone on with it without us.
        {{_, List}, _, [_ | _]} -> left_unsettled(Why, List, S);
        {{_, List}, _, _} -> left(Why, List, S)
    end.

%% This process may die in between, before its successor knows that the member has left. The
%% successor must find no list whose clients were told that it was not applied.
left(Why, Refused, #s{clients = Clients, d = #d{mem = Mem}} = S) ->
    #clients{queue = Queue, deferred = Deferred, number = Before} = Clients,
    Number = Before + 1,
    Left = Clients#clients{out = undefined, queue = [], deferred = [], number = Number},
    S1 = fx({outbox, Number, []}, S#s{clients = Left, leaving = Why}),
    fx({left, Why, Mem}, refuse(Refused ++ Queue ++ [{F, Op} || {_, F, Op} <- Deferred], S1)).

%% The same where no batch of our own log says that we leave. A list that went to a coordinator may
%% be in a batch that did not reach us, and be applied by the others: `no` would say that it was
%% not. And a batch that did reach us may have reached nobody else until it is committed: `yes`
%% would hold on this member alone.
-spec left_out(removed | deleted, #s{}) -> #s{}.
left_out(Why, #s{clients = #clients{in_doubt = [_ | _], out = {R, List}}} = S) ->
    #s{self = Self, sessions = Sess, clients = #clients{answers = Mine}, d = #d{sid = Sid}} = S,
    case Sess of
        #{Self := {Sid, R, _}} when Mine =:= undefined -> leave(Why, S);
        _ -> left_unsettled(Why, List, S)
    end;
left_out(Why, S) -> leave(Why, S).

%% Nobody here will ever know the outcome. (Only that we are no member any more is certain. A client
%% that asked for this may have been answered by our predecessor, which died as it left: it gets the
%% same answer from us.)
left_unsettled(Why, List, #s{mode = majority, clients = Clients} = S) ->
    %% Not even that is certain: the majority may go on without that batch.
    Replies = [{F, unknown} || {F, _} <- List, F =/= none],
    left(Why, [],
         fx({replies, Replies}, S#s{clients = Clients#clients{answers = undefined,
                                                              predecessor = {answered, Replies}}}));
left_unsettled(Why, List, #s{self = Self, clients = #clients{answers = Mine} = Clients} = S) ->
    {Settled, Open} = lists:partition(fun({_, Op}) -> settles(Op, Self) end, List),
    {Out, Refused} = case Mine of
        {_, As} ->
            Ours = [{F, A} || {F, _, A} <- settled(List, As, S), F =/= none],
            lists:partition(fun({F, Op}) -> Op =/= delete andalso lists:member({F, ok}, Ours) end,
                            Settled);
        undefined -> {[], Settled}
    end,
    Replies = [{F, unknown} || {F, _} <- Open, F =/= none] ++ [{F, ok} || {F, _} <- Out],
    %% Clients that saw our predecessor die ask again, in this very step.
    Told = Clients#clients{answers = undefined, predecessor = {answered, Replies}},
    left(Why, Refused, fx({replies, Replies}, S#s{clients = Told})).

settles(#remove{nodes = Nodes}, Self) -> Nodes -- [Self] =:= [];
settles(Op, _) -> Op =:= delete.

refuse(List, S) -> fx({replies, [{F, {no, not_member}} || {F, _} <- List, F =/= none]}, S).
