%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_reach).
-moduledoc """
Calls of the agents on the nodes, in the way that the user has given. Loads the code where a node
lacks it, and starts agents.
""".

-export([install/3, install_all/3, beat/4, clock/2, look/5, strike/6, finish/3, at_once/3]).
-export_type([call/0]).

-doc "Applies a function on a node and gives its result; raises where it cannot.".
-type call() :: fun((node(), module(), atom(), [term()]) -> term()).

%% A little longer than the calls' own time limit.
-define(ANSWER_MS, 8000).
-define(CLOCK_MS, 3000).

-doc "Starts an agent on a node.".
-spec install(call(), node(), sderl_chaos_agent:conf()) -> {ok, pid()} | {error, term()}.
install(Call, Node, Conf) ->
    Ours = sderl_chaos_agent:version(),
    maybe
        ok ?= load(Call, Node),
        {ok, Ours} ?= try_call(Call, Node, version, []),
        {ok, {ok, Agent}} ?= try_call(Call, Node, start, [Conf]),
        {ok, Agent}
    else
        {ok, Theirs} when is_integer(Theirs) -> {error, {other_version, Theirs, Ours}};
        {ok, Other} -> {error, Other};
        {error, _} = Error -> Error
    end.

load(Call, Node) ->
    case try_call(Call, Node, code, ensure_loaded, [sderl_chaos_agent]) of
        {ok, {module, _}} -> ok;
        {ok, {error, _}} -> send_code(Call, Node);
        {error, _} = Error -> Error
    end.

send_code(Call, Node) ->
    {_, Code, _} = code:get_object_code(sderl_chaos_agent),
    maybe
        {ok, Release} ?= try_call(Call, Node, erlang, system_info, [otp_release]),
        {ok, Fitting} ?= code_for(is_older(Release), Call, Node, Code),
        {ok, {module, _}} ?= try_call(Call, Node, code, load_binary,
                                      [sderl_chaos_agent, sderl_chaos_agent:origin(), Fitting]),
        ok
    else
        {ok, {error, Why}} -> {error, {not_loaded, Why}};
        {error, _} = Error -> Error
    end.

is_older(Release) -> list_to_integer(Release) < list_to_integer(erlang:system_info(otp_release)).

%% An older OTP cannot load code that was compiled here, and logs an error when it tries; but the
%% node may have a compiler.
code_for(false, _, _, Code) ->
    {ok, Code};
code_for(true, Call, Node, Code) ->
    maybe
        {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} ?=
            beam_lib:chunks(Code, [abstract_code]),
        {ok, {ok, sderl_chaos_agent, Theirs}} ?= try_call(Call, Node, compile, forms, [Forms, []]),
        {ok, Theirs}
    else
        _ -> {error, {not_loaded, older_otp}}
    end.

-doc "Starts agents on all nodes, or on none.".
-spec install_all(call(), [node()], sderl_chaos_agent:conf()) ->
    {ok, #{node() => pid()}} | {error, {not_reached, [{node(), term()}]}}.
install_all(Call, Nodes, Conf) ->
    Answers = at_once(Nodes, fun(Node) -> install(Call, Node, Conf) end, {error, timeout}),
    Agents = #{Node => Agent || {Node, {ok, Agent}} <- Answers},
    case [{Node, Why} || {Node, {error, Why}} <- Answers] of
        [] ->
            {ok, Agents};
        Failed ->
            _ = at_once(maps:keys(Agents),
                        fun(Node) -> finish(Call, Node, maps:get(Node, Agents)) end, none),
            {error, {not_reached, Failed}}
    end.

-doc "As `sderl_chaos_agent:beat/3`. `gone`: there is no such agent (any more).".
-spec beat(call(), node(), pid(), {Had :: [pos_integer()], Lost :: [pos_integer()]}) ->
    {ok, [sderl_chaos_agent:report()], Watched :: [pos_integer()]} | {error, gone | term()}.
beat(Call, Node, Agent, {Had, Lost}) -> flat(try_call(Call, Node, beat, [Agent, Had, Lost])).

-doc "The clock of a node that answers quickly.".
-spec clock(call(), node()) -> {ok, Ms :: integer()} | {error, late}.
clock(Call, Node) ->
    Asked = erlang:monotonic_time(millisecond),
    Answer = try_call(Call, Node, clock, []),
    case {Answer, erlang:monotonic_time(millisecond) - Asked} of
        {{ok, Clock}, Took} when Took =< ?CLOCK_MS -> {ok, Clock};
        _ -> {error, late}
    end.

-doc "How many things of a target there are.".
-spec look(call(), node(), pid(), {Target :: term(), sderl_chaos_agent:spec()},
           sderl_chaos_agent:conf()) ->
    {ok, non_neg_integer()} | {error, term()}.
look(Call, Node, Agent, {Target, Spec}, Conf) ->
    flat(try_call(Call, Node, look, [Agent, Target, Spec, Conf])).

-doc "Kills one of them.".
-spec strike(call(), node(), pid(), {Target :: term(), sderl_chaos_agent:spec()},
             Nth :: pos_integer(), sderl_chaos_agent:order()) ->
    {ok, sderl_chaos_agent:struck()} | {error, missed | late | term()}.
strike(Call, Node, Agent, {Target, Spec}, Nth, Order) ->
    flat(try_call(Call, Node, strike, [Agent, Target, Spec, Nth, Order])).

-doc "Ends an agent, for its last reports.".
-spec finish(call(), node(), pid()) -> {ok, [sderl_chaos_agent:report()]} | {error, term()}.
finish(Call, Node, Agent) -> flat(try_call(Call, Node, finish, [Agent])).

flat({ok, Answer}) -> Answer;
%% Another agent has removed the code.
flat({error, {_, undef}}) -> {error, gone};
flat({error, {_, {exception, undef, _}}}) -> {error, gone};
flat({error, _} = Error) -> Error.

try_call(Call, Node, F, A) -> try_call(Call, Node, sderl_chaos_agent, F, A).

try_call(Call, Node, M, F, A) ->
    try
        {ok, Call(Node, M, F, A)}
    catch
        Class:Reason -> {error, {Class, Reason}}
    end.

-doc "Calls `Fun` with all keys at the same time; a call that takes too long gives `Late`.".
-spec at_once([Key], fun((Key) -> Result), Late :: Result) -> [{Key, Result}].
at_once(Keys, Fun, Late) ->
    Tasks = [{Key, sderl_fleet_task:start(fun() -> Fun(Key) end)} || Key <- Keys],
    Deadline = erlang:monotonic_time(millisecond) + ?ANSWER_MS,
    [{Key,
      result(sderl_fleet_task:result(Task, max(0, Deadline - erlang:monotonic_time(millisecond))),
             Late)}
     || {Key, Task} <- Tasks].

result({ok, Result}, _) -> Result;
result({error, _}, Late) -> Late.
