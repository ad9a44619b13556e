%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_pretender).

%% Plays a node of an earlier version from a recording. It runs on a node without the library, sends
%% what the recorded node sent, in the recorded order, and expects the answers that the recorded
%% node got.
%%
%% Recorded terms are replaced by terms of this run. Values that the other side chooses (its
%% processes, its epochs, its incarnation) are learned from the first message that has them, by
%% unifying the recorded and the real message, and are used from then on. All other values must be
%% equal.

-export([play/4]).

%% Integers over SMALL are times, or made of times, and differ between runs. PATIENCE is how long an
%% expected message may take, in ms.
-define(SMALL, 1_000_000).
-define(PATIENCE, 15_000).

%% `Script` is the recorded conversation of `Me` (a recorded node, played here) with `You`, a
%% recorded node for which `Node` stands in. `Cues` are pairs of funs: when the conversation comes
%% to a message that the first fun of the first pair accepts, its second fun runs in a process of
%% its own, and the next pair is the first. Returns the bindings, and the messages that the script
%% did not expect.
play(Script, {Me, You}, Node, Cues) ->
    true = register(sderl_node, self()),
    play(Script, {Me, You, Node}, Cues, #{Me => node(), You => Node}, []).

play([], _, _, Bound, Rest) -> {Bound, lists:reverse(Rest)};
play([{Me, To, Msg} | Script], {Me, _, _} = Who, Cues, Bound0, Rest) ->
    Bound1 = processes({To, Msg}, Me, Bound0),
    {Bound, Real} = real(Msg, Bound1),
    {_, Address} = real(To, Bound),
    _ = erlang:send(Address, Real),
    play(Script, Who, Cues, Bound, Rest);
play([{You, To, Msg} | Script], {Me, You, _} = Who, Cues0, Bound0, Rest0) ->
    Cues = cue(Msg, Cues0),
    Bound1 = processes(To, Me, Bound0),
    {Bound, Rest} = expect(Msg, Bound1, Rest0),
    play(Script, Who, Cues, Bound, Rest).

cue(Msg, [{Accepts, Do} | Cues]) ->
    case Accepts(Msg) of
        true -> spawn(Do), Cues;
        false -> [{Accepts, Do} | Cues]
    end;
cue(_, []) -> [].

%% Binds every process of the recorded node to this process, and each reference of a call to an
%% alias of it.
processes(T, Me, Bound) when is_pid(T), node(T) =:= Me -> Bound#{T => self()};
processes([alias | Ref], _, Bound) when is_reference(Ref), not is_map_key(Ref, Bound) ->
    Bound#{Ref => alias([reply])};
processes([H | T], Me, Bound) -> processes(T, Me, processes(H, Me, Bound));
processes(T, Me, Bound) when is_tuple(T) -> processes(tuple_to_list(T), Me, Bound);
processes(T, Me, Bound) when is_map(T) -> processes(maps:to_list(T), Me, Bound);
processes(_, _, Bound) -> Bound.

%% ---------------------------------------------------------------- what is sent

-define(INCARNATION(T),
    tuple_size(T) =:= 3, is_integer(element(1, T)), is_integer(element(2, T)),
    is_integer(element(3, T))
).

%% Times that the recorded node made itself are sent as recorded, and bound from then on.
real(T, Bound) when is_integer(T), abs(T) > ?SMALL ->
    case Bound of
        #{abs(T) := Real} -> {Bound, sign(T) * Real};
        _ -> {Bound#{abs(T) => abs(T)}, T}
    end;
real(T, Bound) when is_map_key(T, Bound) -> {Bound, map_get(T, Bound)};
real(T, Bound) when ?INCARNATION(T) -> {Bound, T};
real([H | T], Bound0) ->
    {Bound1, H1} = real(H, Bound0),
    {Bound, T1} = real(T, Bound1),
    {Bound, [H1 | T1]};
real(T, Bound0) when is_tuple(T) ->
    {Bound, L} = real(tuple_to_list(T), Bound0),
    {Bound, list_to_tuple(L)};
real(T, Bound0) when is_map(T) ->
    {Bound, L} = lists:foldl(fun({K, V}, {B0, Acc}) ->
        {B1, K1} = real(K, B0),
        {B, V1} = real(V, B1),
        {B, [{K1, V1} | Acc]}
    end, {Bound0, []}, maps:to_list(T)),
    {Bound, maps:from_list(L)};
real(T, Bound) -> {Bound, T}.

sign(T) when T < 0 -> -1;
sign(_) -> 1.

%% ---------------------------------------------------------------- what is expected

%% Other messages may come before the expected one, because ticks come at other times. They are
%% kept.
expect(Recorded, Bound, Rest) ->
    expect(Recorded, Bound, lists:reverse(Rest), [],
           erlang:monotonic_time(millisecond) + ?PATIENCE).

expect(Recorded, Bound0, [Msg | Left], Tried, Until) ->
    try unify(Recorded, Msg, Bound0) of
        Bound -> {Bound, lists:reverse(Left, Tried)}
    catch
        throw:different -> expect(Recorded, Bound0, Left, [Msg | Tried], Until)
    end;
expect(Recorded, Bound, [], Tried, Until) ->
    receive Msg -> expect(Recorded, Bound, [Msg], Tried, Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        error({not_said, Recorded, {bound, Bound}, lists:reverse(Tried)})
    end.

unify(R, T, Bound) when is_integer(R), abs(R) > ?SMALL, is_integer(T), R * T > 0 ->
    bind(abs(R), abs(T), Bound);
unify(R, T, Bound) when is_pid(R), is_pid(T); is_reference(R), is_reference(T) -> bind(R, T, Bound);
unify(R, T, Bound) when is_binary(R), byte_size(R) =:= 16, is_binary(T), byte_size(T) =:= 16 ->
    bind(R, T, Bound);
unify(R, T, Bound) when ?INCARNATION(R), ?INCARNATION(T) -> bind(R, T, Bound);
unify([R | Rs], [T | Ts], Bound) -> unify(Rs, Ts, unify(R, T, Bound));
unify(R, T, Bound) when is_tuple(R), is_tuple(T) ->
    unify(tuple_to_list(R), tuple_to_list(T), Bound);
unify(R, T, Bound0) when is_map(R), is_map(T), map_size(R) =:= map_size(T) ->
    maps:fold(fun(K, V, B) ->
        {_, Key} = real(K, B),
        case T of
            #{Key := Value} -> unify(V, Value, B);
            _ -> throw(different)
        end
    end, Bound0, R);
unify(R, T, Bound) ->
    case Bound of
        #{R := T} -> Bound;
        #{R := _} -> throw(different);
        _ when R =:= T -> Bound;
        _ -> throw(different)
    end.

bind(R, T, Bound) ->
    case Bound of
        #{R := T} -> Bound;
        #{R := _} -> throw(different);
        _ -> Bound#{R => T}
    end.
