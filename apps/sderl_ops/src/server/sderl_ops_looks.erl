%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_looks).
-moduledoc """
When the server looks at what: at each host and at the nodes every two seconds, and at once after a
step has ended. Looks that take long are made less often, so that the share of time spent looking
does not grow with the cluster. Pure; times are microseconds of one clock, because a step and a look
may be less than a millisecond apart.

A step that has ended counts as running until its effect has been seen, so that nothing is decided
from a look that began earlier.
""".

-export([new/0, again/1]).
-export([due/3, began/4, what/2, ended/4]).
-export([step_ended/4, forget/2, unseen/1]).
-export_type([looks/0]).

-type what() :: sderl_ops_look:what().
-type time() :: integer().

-record(looks, {
    %% Looks that are under way, and when they began.
    running = #{} :: #{reference() => {what(), Began :: time()}},
    %% When the last look began, and the last one that saw something.
    looked = #{} :: #{what() => Began :: time()},
    seen = #{} :: #{what() => Began :: time()},
    %% How long the last look took.
    took = #{} :: #{what() => Microseconds :: time()},
    %% Steps that have ended, and what has to be looked at to see their effect.
    unseen = #{} :: #{sderl_ops_step:step() => {Ended :: time(), [what()]}}
}).

-opaque looks() :: #looks{}.

-define(EACH_US, 2_000_000).
-define(EACH_US_AT_MOST, 10_000_000).
-define(TIMES_TOOK, 20).
%% A program may take long, and a cloud's interface may limit the number of requests.
-define(EACH_PROVIDER_US, 30_000_000).
%% Looks at a time: each runs a program of the operating system.
-define(MOST, 16).

-doc "Nothing has been looked at.".
-spec new() -> looks().
new() -> #looks{}.

-doc """
Everything has to be looked at again. Results of looks that are under way are dropped, because the
hosts may have changed.
""".
-spec again(looks()) -> looks().
again(#looks{unseen = Unseen}) -> #looks{unseen = Unseen}.

-doc """
The looks to begin now, at what is `Watched` and where steps have ended. What was not looked at for
longest comes first, so that hosts that hang do not keep others from being looked at.
""".
-spec due(Watched :: [what()], Now :: time(), looks()) -> [what()].
due(Watched, Now, #looks{running = Running, unseen = Unseen} = Looks) ->
    Changed = maps:from_list(lists:sort([{What, Ended} || _ := {Ended, Whats} <- Unseen,
                                                          What <- Whats])),
    Busy = [What || _ := {What, _} <- Running],
    Due = [{last_look(What, Looks), What}
           || What <- lists:usort(Watched ++ maps:keys(Changed)) -- Busy,
              is_due(last_look(What, Looks), maps:get(What, Changed, before),
                     each(What, Looks), Now)],
    [What || {_, What} <- lists:sublist(lists:sort(Due), max(0, ?MOST - length(Busy)))].

last_look(What, #looks{looked = Looked}) ->
    case Looked of
        #{What := Began} -> {at, Began};
        #{} -> before
    end.

is_due(before, _, _, _) -> true;
is_due({at, Began}, Changed, _, _) when is_integer(Changed), Changed > Began -> true;
is_due({at, Began}, _, Each, Now) -> Now - Began > Each.

each({provider, _}, _) -> ?EACH_PROVIDER_US;
each(What, #looks{took = Took}) ->
    min(?EACH_US_AT_MOST, max(?EACH_US, ?TIMES_TOOK * maps:get(What, Took, 0))).

-doc "A look has begun.".
-spec began(reference(), what(), Now :: time(), looks()) -> looks().
began(Ref, What, Now, #looks{running = Running} = Looks) ->
    Looks#looks{running = Running#{Ref => {What, Now}}}.

-doc "The target of a look that is under way, and when it began.".
-spec what(reference(), looks()) -> {ok, what(), Began :: time()} | error.
what(Ref, #looks{running = Running}) ->
    case Running of
        #{Ref := {What, Began}} -> {ok, What, Began};
        #{} -> error
    end.

-doc "A look has ended. If it saw something, it saw the steps that ended before it began.".
-spec ended(reference(), HasSeen :: boolean(), Now :: time(), looks()) -> looks().
ended(Ref, HasSeen, Now, #looks{running = Running, looked = Looked, seen = Seen} = Looks) ->
    #looks{took = Took} = Looks,
    {{What, Began}, Left} = maps:take(Ref, Running),
    Ended = Looks#looks{running = Left, looked = Looked#{What => Began},
                        took = Took#{What => Now - Began}},
    case HasSeen of
        true -> release(Ended#looks{seen = Seen#{What => Began}});
        false -> Ended
    end.

release(#looks{seen = Seen, unseen = Unseen} = Looks) ->
    Looks#looks{unseen = maps:filter(fun(_, {Ended, Whats}) ->
        not lists:all(fun(What) -> is_seen(What, Ended, Seen) end, Whats)
    end, Unseen)}.

%% Only a look that began after the end counts.
is_seen(What, Ended, Seen) ->
    case Seen of
        #{What := Began} -> Began > Ended;
        #{} -> false
    end.

-doc "Drops the result of a look that is under way, because it may be outdated.".
-spec forget(what(), looks()) -> looks().
forget(What, #looks{running = Running} = Looks) ->
    Looks#looks{running = #{Ref => Of || Ref := {At, _} = Of <- Running, At =/= What}}.

-doc "A step has ended; `Whats` have to be looked at to see its effect.".
-spec step_ended(sderl_ops_step:step(), [what()], Now :: time(), looks()) -> looks().
%% A list that was begun before the host was deleted may still have the host.
step_ended({delete, Id} = Step, Whats, Now, Looks) ->
    unseen(Step, Whats, Now, forget({provider, hd(binary:split(Id, ~"/"))}, Looks));
step_ended(Step, Whats, Now, Looks) ->
    unseen(Step, Whats, Now, Looks).

unseen(_, [], _, Looks) -> Looks;
unseen(Step, Whats, Now, #looks{unseen = Unseen} = Looks) ->
    Looks#looks{unseen = Unseen#{Step => {Now, Whats}}}.

-doc "Steps that have ended and whose effect has not been seen yet.".
-spec unseen(looks()) -> [sderl_ops_step:step()].
unseen(#looks{unseen = Unseen}) -> maps:keys(Unseen).
