%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_request).
-moduledoc """
One request: an action on some nodes, the answers of each, and its state. Pure.
""".

-export([new/2, told/5, ended/3, is_running/1, summary/1, shown/1, listed/1]).
-export([bytes/1, needed/2, let_go/1]).
-export_type([request/0, asked/0, told/0]).

-type state() :: running | done | stopped | unattended.

-doc "What a request asks for, and who asks. `on` is as it was given.".
-type asked() :: #{
    id := binary(),
    action := sderl_actions_catalogue:action(),
    args := #{binary() => term()},
    on := #{binary() => binary() | [binary()]},
    who := sderl_actions:who(),
    nodes := [sderl_mon_types:id()]
}.

-doc "A message about a node: it begins, shows something meanwhile, or answers; encoded as JSON.".
-type told() :: begun | {said | ok, binary()} | {error, binary()}.

-record(node, {
    state = waiting :: waiting | running | ok | failed | stopped,
    began = 0 :: integer(),
    ms = null :: null | non_neg_integer(),
    result = ~"null" :: binary(),
    error = null :: null | binary(),
    %% The latest first; beyond the bound they are only counted.
    said = [] :: [binary()],
    said_count = 0 :: non_neg_integer(),
    %% Whether something was not kept, or dropped later.
    cut = false :: boolean()
}).

-record(request, {
    asked :: asked(),
    at :: integer(),
    ms = null :: null | non_neg_integer(),
    state = running :: state(),
    %% The size of all kept answers.
    bytes = 0 :: non_neg_integer(),
    nodes :: #{sderl_mon_types:id() => #node{}}
}).
-opaque request() :: #request{}.

-define(MOST_SAID, 400).
-define(MOST_BYTES, 16_000_000).
-define(CUT, ~"left out: of the answers of a request 16 MB are kept, and of all requests 64 MB").

-doc "A request that has just begun, at a wall-clock time.".
-spec new(asked(), integer()) -> request().
new(#{nodes := Ids} = Asked, At) ->
    #request{asked = Asked, at = At, nodes = #{Id => #node{} || Id <- Ids}}.

-doc """
Handles a message about a node, `Ms` milliseconds after the request began. At most `Room` bytes may
be added; an answer that does not fit is left out, and says so.
""".
-spec told(sderl_mon_types:id(), told(), Ms :: non_neg_integer(), Room :: integer(), request()) ->
    request().
told(Id, Told, Ms, Room, #request{nodes = Nodes, bytes = Bytes, state = running} = Request)
  when is_map_key(Id, Nodes) ->
    Size = size_of(Told),
    {More, Node} = case Size =:= 0 orelse Size =< min(Room, ?MOST_BYTES - Bytes) of
        true -> node_told(Told, Ms, Size, map_get(Id, Nodes));
        false -> {0, node_cut(Told, Ms, map_get(Id, Nodes))}
    end,
    Request#request{nodes = Nodes#{Id := Node}, bytes = Bytes + More};
told(_, _, _, _, Request) -> Request.

-doc "The bytes for which there must be room among all requests to keep a message.".
-spec needed(told(), request()) -> non_neg_integer().
needed(Told, #request{bytes = Bytes}) ->
    case size_of(Told) of
        Size when Size =< ?MOST_BYTES - Bytes -> Size;
        %% The request itself has no room for it.
        _ -> 0
    end.

size_of(begun) -> 0;
size_of({_, Text}) -> byte_size(Text).

node_told(begun, Ms, _, Node) -> {0, Node#node{state = running, began = Ms}};
node_told({said, Json}, _, Size, #node{said = Said, said_count = N} = Node) when N < ?MOST_SAID ->
    {Size, Node#node{said = [Json | Said], said_count = N + 1}};
node_told({said, _}, _, _, #node{said_count = N} = Node) -> {0, Node#node{said_count = N + 1}};
node_told({ok, Json}, Ms, Size, Node) -> {Size, answered(Ms, Node#node{state = ok, result = Json})};
node_told({error, Why}, Ms, Size, Node) ->
    {Size, answered(Ms, Node#node{state = failed, error = Why})}.

node_cut({said, _}, _, #node{said_count = N} = Node) -> Node#node{said_count = N + 1, cut = true};
node_cut({ok, _}, Ms, Node) -> answered(Ms, no_answer(Node#node{state = ok, cut = true}));
node_cut({error, _}, Ms, Node) -> answered(Ms, no_answer(Node#node{state = failed, cut = true})).

answered(Ms, #node{began = Began} = Node) -> Node#node{ms = Ms - Began}.

no_answer(#node{state = ok} = Node) -> Node#node{result = cut_json()};
no_answer(#node{state = failed} = Node) -> Node#node{error = ?CUT};
no_answer(Node) -> Node.

cut_json() -> <<"{\"cut\":\"", ?CUT/binary, "\"}">>.

-doc "The size of its kept answers.".
-spec bytes(request()) -> non_neg_integer().
bytes(#request{bytes = Bytes}) -> Bytes.

-doc "Drops the answers of a request; it says so.".
-spec let_go(request()) -> request().
let_go(#request{nodes = Nodes} = Request) ->
    Request#request{bytes = 0, nodes = maps:map(fun(_, Node) ->
        no_answer(Node#node{said = [], cut = true})
    end, Nodes)}.

-doc "The request ends; nodes that have not answered are stopped.".
-spec ended(done | stopped | unattended, Ms :: non_neg_integer(), request()) -> request().
ended(State, Ms, #request{nodes = Nodes} = Request) ->
    Request#request{state = State, ms = Ms, nodes = maps:map(fun(_, Node) -> cut(Node) end, Nodes)}.

cut(#node{state = State} = Node) when State =:= waiting; State =:= running ->
    Node#node{state = stopped, error = ~"it was stopped before it had answered"};
cut(Node) -> Node.

-doc "Whether nodes may still answer.".
-spec is_running(request()) -> boolean().
is_running(#request{state = State}) -> State =:= running.

-doc "The part of its audit entry: the result, a sentence, and how long it took.".
-spec summary(request()) -> #{result := sderl_actions_audit_record:result(), detail := binary(),
                              ms => non_neg_integer()}.
summary(#request{state = State, ms = Ms, nodes = Nodes}) ->
    Failed = [{Id, Why}
              || Id := #node{state = failed, error = Why} <- maps:iterator(Nodes, ordered)],
    Ok = length([Id || Id := #node{state = ok} <- Nodes]),
    Result = case State of
        done when Failed =:= [] -> ok;
        done when Ok =:= 0 -> failed;
        done -> partly;
        _ -> stopped
    end,
    #{result => Result, ms => Ms,
      detail => sderl_mon_text:text("~b of ~b nodes done~ts~ts", [
          Ok, map_size(Nodes), [" (nobody attended it)" || State =:= unattended],
          [["; ", Id, ": ", Why] || {Id, Why} <- lists:sublist(Failed, 3)]])}.

-doc "The request with all answers, as JSON.".
-spec shown(request()) -> iodata().
shown(#request{nodes = Nodes} = Request) ->
    [$\{, head(Request), ~",\"nodes\":{",
     lists:join($,, [[json:encode(Id), $:, shown_node(Node)]
                     || Id := Node <- maps:iterator(Nodes, ordered)]), ~"}}"].

shown_node(#node{state = State, ms = Ms, result = Result, error = Error, said = Said,
                 said_count = Count, cut = Cut}) ->
    [~"{\"state\":", json:encode(State), ~",\"ms\":", json:encode(Ms), ~",\"error\":",
     json:encode(Error), ~",\"cut\":", json:encode(case Cut of true -> ?CUT; false -> null end),
     ~",\"result\":", Result, ~",\"said_total\":", integer_to_binary(Count),
     ~",\"said\":[", lists:join($,, lists:reverse(Said)), ~"]}"].

-doc "The request in a list, as JSON: with the number of nodes in each state.".
-spec listed(request()) -> iodata().
listed(#request{nodes = Nodes} = Request) ->
    States = maps:groups_from_list(fun(#node{state = State}) -> State end, maps:values(Nodes)),
    [$\{, head(Request), ~",\"nodes\":", json:encode(maps:map(fun(_, All) -> length(All) end,
                                                              States)), $}].

head(#request{asked = #{id := Id, action := #{name := Name, kind := Kind}, args := Args, on := On,
                        who := Who}, at = At, ms = Ms, state = State}) ->
    Fields = [{id, Id}, {action, Name}, {kind, Kind}, {args, Args}, {on, On}, {who, Who}, {at, At},
              {ms, Ms}, {state, State}],
    lists:join($,, [[json:encode(Key), $:, json:encode(Value)] || {Key, Value} <- Fields]).
