%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_answers).
-moduledoc """
Answers that are kept by idempotency keys, so that a request which comes again is not done again.
Pure.

There is room for a number of them. The oldest that has its answer makes room for a new one; while
all are still being answered there is none.
""".

-export([new/2, start/4, finish/3, forget/2, sweep/2, size/1]).
-export_type([answers/0, answer/0, key/0]).

-doc "Whose key it is, and the key.".
-type key() :: {Token :: binary(), Key :: binary()}.
-type answer() :: {Status :: 200..599, Headers :: #{binary() => iodata()}, Body :: iodata()}.

-record(kept, {
    %% Tells whether a request that comes again is the same.
    digest :: binary(),
    at :: integer(),
    answer = none :: none | answer()
}).
-record(answers, {
    most :: pos_integer(),
    ms :: pos_integer(),
    kept = #{} :: #{key() => #kept{}}
}).
-opaque answers() :: #answers{}.

-doc "Keeps at most so many, for so long.".
-spec new(Most :: pos_integer(), Ms :: pos_integer()) -> answers().
new(Most, Ms) -> #answers{most = Most, ms = Ms}.

-doc "How many there are.".
-spec size(answers()) -> non_neg_integer().
size(#answers{kept = Kept}) -> map_size(Kept).

-doc """
A request begins: `new`, it is to be done; `again`, it was, with this answer; `busy`, it is being
done; `other`, the key came with another request; `full`.
""".
-spec start(key(), Digest :: binary(), Now :: integer(), answers()) ->
    {new, answers()} | {again, answer()} | busy | other | full.
start(Key, Digest, Now, #answers{kept = Kept0, most = Most, ms = Ms} = Answers) ->
    case Kept0 of
        #{Key := #kept{at = At, answer = Answer} = Known} when Answer =:= none; Now - At < Ms ->
            again(Known, Digest);
        #{} ->
            case room(maps:remove(Key, Kept0), Most) of
                {ok, Kept} ->
                    Begun = #kept{digest = Digest, at = Now},
                    {new, Answers#answers{kept = Kept#{Key => Begun}}};
                full -> full
            end
    end.

again(#kept{digest = Digest, answer = none}, Digest) -> busy;
again(#kept{digest = Digest, answer = Answer}, Digest) -> {again, Answer};
again(_, _) -> other.

room(Kept, Most) when map_size(Kept) < Most -> {ok, Kept};
room(Kept, _) ->
    case lists:sort([{At, Key} || Key := #kept{at = At, answer = Answer} <- Kept,
                                  Answer =/= none]) of
        [{_, Oldest} | _] -> {ok, maps:remove(Oldest, Kept)};
        [] -> full
    end.

-doc "Keeps the answer to a request; a second one is ignored.".
-spec finish(key(), answer(), answers()) -> answers().
finish(Key, Answer, #answers{kept = Kept} = Answers) ->
    case Kept of
        #{Key := #kept{answer = none} = Known} ->
            Answers#answers{kept = Kept#{Key := Known#kept{answer = Answer}}};
        #{} -> Answers
    end.

-doc "Forgets a request that was not done, so that it may come again.".
-spec forget(key(), answers()) -> answers().
forget(Key, #answers{kept = Kept} = Answers) ->
    case Kept of
        #{Key := #kept{answer = none}} -> Answers#answers{kept = maps:remove(Key, Kept)};
        #{} -> Answers
    end.

-doc "Without the answers that have been kept for long enough.".
-spec sweep(Now :: integer(), answers()) -> answers().
sweep(Now, #answers{kept = Kept, ms = Ms} = Answers) ->
    Answers#answers{kept = maps:filter(fun(_, #kept{at = At, answer = Answer}) ->
        Answer =:= none orelse Now - At < Ms
    end, Kept)}.
