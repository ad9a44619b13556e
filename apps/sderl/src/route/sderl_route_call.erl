%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_call).
-moduledoc false.
%% Calls over gateways: the caller's side, and the side of the process that is called.
%%
%% The caller makes an alias, which names the call and takes its answers. On the node of the called
%% process a helper process asks it, with a monitor, as `gen_server:call/3` would there, and sends
%% the result back. Neither end gets a link to the other.
%%
%% A frame may be lost with a gateway, so the caller sends again until it hears something, for at
%% most `?AGAIN_MS`. The other node remembers calls and their answers for longer than that: a call
%% that comes twice is asked once, and its answer is sent again. When the answer takes time that
%% node says `accepted`, and from then on the caller only asks now and then whether the call is
%% still known there.
%%
%% A frame may also be held in a gateway that was stopped until long after its call was answered and
%% forgotten. So each call says when it began, by its node's clock. When the other node forgets
%% calls it keeps, for each node, the latest beginning of these; a call that began before that is
%% too old, and the process is not asked.
%%
%% What the caller learns, apart from the answer:
%%
%% | error | |
%% |---|---|
%% | `no_name`, `no_route`, `unreachable`, `busy`, `hop_limit` | it was not asked (`t:sderl_route_send:failure/0`) |
%% | `{down, Reason}` | the process that was asked ended |
%% | `lost_route` | the way to it was lost, and whether it was asked, or answers, is not known |
%% | `timeout` | it has not answered yet |

-export([call/4, given_up/3, serve/3, found/2, probe/1, failed/2, new/0, prune/0]).
-import(sderl_clock, [now_ms/0]).
-export_type([error/0]).

-type error() :: sderl_route_send:failure() | {down, term()} | lost_route | timeout.

%% The tag of a request that is answered to an alias, as OTP makes it.
-dialyzer({no_improper_lists, [ask/4]}).

-define(TABLE, sderl_route_calls).
%% The first wait for any answer, doubled each time.
-define(FIRST_MS, 150).
%% For how long a call is sent again: longer than routes lead through a gateway that was stopped;
%% and for how long the other node remembers an answer.
-define(AGAIN_MS, 6000).
-define(KEEP_MS, 10_000).
%% After so long without any answer the way is lost. Less than an answer is kept.
-define(SILENCE_MS, 8000).
%% How long it is remembered which calls of a node are too old.
-define(FLOOR_MS, 86_400_000).
%% How long there may be no way before that is an error: other gateways take over from dead ones.
-define(PATIENCE_MS, 1000).
%% After so long the answering node says that it takes longer.
-define(LONG_MS, 100).
-define(PROBE_MS, 1000).
%% An accepted call is forgotten if its caller has not asked about it for so long.
-define(ORPHAN_MS, 20_000).

%% `tries`: all tries; `sent`: those that were sent; `failed`: those of the sent ones that are known
%% not to have arrived.
-record(c, {
    alias :: reference(), group :: term(), what :: sderl_route_send:what() | {at, node(), atom()},
    message :: {Creation :: integer(), Began :: integer(), Request :: term()},
    deadline :: integer() | infinity, began :: integer(), heard :: integer(),
    wait = ?FIRST_MS :: pos_integer(), tries = 0, sent = 0, failed = 0, asked = 0,
    why = no_route :: sderl_route_send:failure(), missing :: integer() | undefined,
    %% The node that accepted the call.
    node :: node() | undefined
}).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public, {write_concurrency, true}]).

%% ---------------------------------------------------------------- the caller

-doc """
`{at, Node, Process}`: calls the process registered locally on a node; the group is ignored then.
""".
-spec call(term(), sderl_route_send:what() | {at, node(), atom()}, term(), timeout()) ->
    {ok, term()} | {error, error()}.
call(Group, What, Request, Timeout) ->
    Now = now_ms(),
    Alias = alias(),
    C = #c{alias = Alias, group = Group, what = What, began = Now, heard = Now,
           message = {erlang:system_info(creation), Now, Request},
           deadline = case Timeout of infinity -> infinity; _ -> Now + Timeout end},
    try send(C)
    after
        _ = unalias(Alias),
        flush(Alias)
    end.

%% A caller is not suspended: its time is limited, and there may be another way. If the first try
%% gets no answer all ways are tried at once; the process is asked only once.
send(
    #c{group = Group, what = What, alias = Alias, message = Message, tries = Tries, sent = Sent} = C
) ->
    Options = [noconnect, nosuspend],
    Result = case {What, Tries} of
        {{at, Node, Process}, 0} ->
            one(sderl_route_send:node(Node, {call, Process}, Alias, Message,
                                      sderl_route_send:hash(Group), Options));
        {{at, Node, Process}, _} ->
            sderl_route_send:node_each_way(Node, {call, Process}, Alias, Message, Options);
        {_, 0} ->
            one(sderl_route_send:group(Group, What, Alias, Message, sderl_route_send:hash(Group),
                                       Options));
        {_, _} -> sderl_route_send:group_each_way(Group, What, Alias, Message, Options)
    end,
    case Result of
        {ok, N} -> wait(C#c{tries = Tries + 1, sent = Sent + N});
        {error, Why} -> missing(Why, C#c{tries = Tries + 1})
    end.

one(ok) -> {ok, 1};
one(Error) -> Error.

wait(#c{alias = Alias, wait = Wait, deadline = Deadline, heard = Heard} = C) ->
    receive
        {Alias, reply, Reply} -> {ok, Reply};
        {Alias, down, Reason} -> {error, {down, Reason}};
        {Alias, accepted, Node} ->
            wait(C#c{node = Node, wait = ?PROBE_MS, asked = 0, heard = now_ms(),
                     missing = undefined});
        {Alias, lost, _} -> {error, lost_route};
        {Alias, unknown, Node} -> unknown(Node, C);
        {Alias, failed, Why} -> failure(Why, C)
    after min(Wait, left(Deadline)) ->
        case left(Deadline) of
            0 -> {error, late(C)};
            _ ->
                case now_ms() - Heard < ?SILENCE_MS of
                    true -> again(C);
                    false -> {error, case late(C) of timeout -> lost_route; Why -> Why end}
                end
        end
    end.

%% The node that had accepted the call does not know it any more: it was restarted.
unknown(Node, #c{node = Node}) -> {error, {down, noconnection}};
unknown(_, C) -> wait(C).

again(#c{node = undefined, began = Began, wait = Wait} = C) ->
    case now_ms() - Began < ?AGAIN_MS of
        true -> send(C#c{wait = min(2 * Wait, ?PROBE_MS)});
        false -> wait(C#c{wait = ?PROBE_MS})
    end;
again(#c{node = Node, alias = Alias, asked = Asked} = C) ->
    case sderl_route_send:node_each_way(Node, probe, Alias, none, [noconnect, nosuspend]) of
        {ok, _} -> wait(C#c{asked = Asked + 1, wait = ?PROBE_MS});
        {error, Why} -> failure(Why, C#c{asked = Asked + 1})
    end.

%% A failure reported from the way: once for each try. It says nothing about a try that may have
%% gone another way.
failure(no_name, #c{node = undefined, failed = Failed, sent = Sent}) when Failed + 1 =:= Sent ->
    {error, no_name};
%% This question may be asked twice.
failure(no_name, #c{what = {whois, _}}) -> {error, no_name};
failure(no_name, #c{failed = Failed} = C) -> wait(C#c{failed = Failed + 1});
failure(Why, #c{failed = Failed} = C) -> missing(Why, C#c{failed = Failed + 1}).

%% No way at the moment. A dead gateway will be out of the tables in a moment.
missing(Why,
        #c{missing = Since0, deadline = Deadline, sent = Sent, failed = Failed, node = Node} = C) ->
    Now = now_ms(),
    Since = case Since0 of undefined -> Now; _ -> Since0 end,
    Over = Now - Since >= ?PATIENCE_MS orelse left(Deadline) =:= 0,
    case given_up(Why, Over, Node =:= undefined andalso Sent =:= Failed) of
        wait -> wait(C#c{missing = Since, why = Why, wait = 50});
        Reason -> {error, Reason}
    end.

-doc """
The error with which a call ends when one of its tries failed, or `wait`. The booleans say whether
the call has waited long enough for a way, and whether no try can have arrived.

Ways that go in circles end a call at once, unless another try may have arrived: if a group was
deleted just after the process was asked, the next try goes in circles, but the answer comes.
""".
-spec given_up(sderl_route_send:failure(), boolean(), boolean()) ->
    wait | lost_route | sderl_route_send:failure().
given_up(hop_limit, _, true) -> hop_limit;
given_up(_, false, _) -> wait;
given_up(Why, true, true) -> Why;
given_up(_, true, false) -> lost_route.

%% Out of time: if no message about the call came lately, the way is lost.
late(#c{node = undefined, sent = N, failed = N, why = Why}) -> Why;
late(#c{node = undefined}) -> lost_route;
late(#c{asked = Asked}) when Asked > 2 -> lost_route;
late(_) -> timeout.

flush(Alias) ->
    receive
        {Alias, _, _} -> flush(Alias)
    after 0 -> ok
    end.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - now_ms()).

%% ---------------------------------------------------------------- the called

%% Rows: `{Alias, asked, Pid, 0, Stamp}` and the results,
%% `{Alias, reply | down | lost, Value, At, Stamp}`; `{{floor, Node, Creation}, Began, At}`: no call
%% of that node that began then or earlier is wanted any more.

-doc "Asks a process of this node for a caller elsewhere, unless it has been asked already.".
-spec serve(reference(), pid() | atom(), term()) -> ok.
serve(Alias, Target, {Creation, Began, Request}) when is_integer(Creation), is_integer(Began) ->
    case ets:member(?TABLE, Alias) of
        true -> probe(Alias);
        false ->
            case ets:lookup_element(?TABLE, {floor, node(Alias), Creation}, 2, none) of
                Floor when is_integer(Floor), Began =< Floor -> answer(Alias, unknown, node());
                _ -> _ = spawn(fun() -> ask(Alias, Target, {Creation, Began}, Request) end), ok
            end
    end;
serve(_, _, _) -> sderl_refused:note_message(?MODULE).

-doc "The process that has a name, if it lives: an answer to `whois`.".
-spec found(reference(), pid()) -> ok.
found(Alias, Pid) when node(Pid) =:= node(), is_reference(Alias) ->
    %% A pid of a former life of this node is not a process of this one.
    try is_process_alive(Pid) of
        true -> answer(Alias, reply, Pid);
        false -> failed(Alias, no_name)
    catch
        error:badarg -> failed(Alias, no_name)
    end;
found(_, _) -> sderl_refused:note_message(?MODULE).

-doc "Sends the result of a call to its caller, which asks for it.".
-spec probe(reference()) -> ok.
probe(Alias) ->
    case ets:lookup(?TABLE, Alias) of
        [{_, asked, Pid, _, _}] ->
            case is_process_alive(Pid) of
                true -> Pid ! {probe, Alias}, answer_again(Alias, accepted, node());
                false -> lost(Alias, Pid), probe(Alias)
            end;
        [{_, Kind, Value, _, _}] -> answer_again(Alias, Kind, Value);
        [] -> answer_again(Alias, unknown, node())
    end.

%% The outcome is not known, unless the helper noted it just before it ended.
lost(Alias, Pid) ->
    _ = ets:select_replace(?TABLE, [{{'$1', asked, Pid, '_', '$2'}, [{'=:=', '$1', Alias}],
                                     [{{'$1', lost, {const, node()}, now_ms(), '$2'}}]}]),
    ok.

%% Two frames of one call may come to two forwarding processes at the same time.
ask(Alias, Target, Stamp, Request) ->
    case ets:insert_new(?TABLE, {Alias, asked, self(), 0, Stamp}) of
        true ->
            Mon = monitor(process, Target, [{alias, reply_demonitor}]),
            To = case is_atom(Target) of true -> {Target, node()}; false -> Target end,
            _ = To ! {'$gen_call', {self(), [alias | Mon]}, Request},
            asked(Alias, Stamp, Mon, ?LONG_MS);
        false -> probe(Alias)
    end.

asked(Alias, Stamp, Mon, Wait) ->
    receive
        {[alias | Mon], Reply} -> done(Alias, Stamp, reply, Reply);
        {'DOWN', Mon, process, _, Reason} -> done(Alias, Stamp, down, Reason);
        {probe, Alias} -> asked(Alias, Stamp, Mon, ?ORPHAN_MS)
    after Wait ->
        case Wait of
            ?LONG_MS -> answer(Alias, accepted, node()), asked(Alias, Stamp, Mon, ?ORPHAN_MS);
            ?ORPHAN_MS -> lost(Alias, self())
        end
    end.

done(Alias, Stamp, Kind, Value) ->
    true = ets:insert(?TABLE, {Alias, Kind, Value, now_ms(), Stamp}),
    answer(Alias, Kind, Value).

-doc "Tells the caller that a frame went no further.".
-spec failed(reference(), sderl_route_send:failure()) -> ok.
failed(Alias, Reason) -> answer(Alias, failed, Reason).

%% An answer that is not delivered will be asked for again.
answer(Alias, Kind, Value) ->
    _ = sderl_route_send:node(node(Alias), {to, Alias}, none, {Alias, Kind, Value},
                              [noconnect, nosuspend]),
    ok.

%% A caller that asks again may have missed the first answer: it goes by every way.
answer_again(Alias, Kind, Value) ->
    _ = sderl_route_send:node_each_way(node(Alias), {to, Alias}, none, {Alias, Kind, Value},
                                       [noconnect, nosuspend]),
    ok.

-doc "Forgets answers that no caller asks for any more.".
-spec prune() -> ok.
prune() ->
    Now = now_ms(),
    lists:foreach(fun({Alias, Pid}) -> is_process_alive(Pid) orelse lost(Alias, Pid) end,
                  ets:select(?TABLE, [{{'$1', asked, '$2', '_', '_'}, [], [{{'$1', '$2'}}]}])),
    Head = {'$1', '$2', '_', '$3', '$4'},
    Guards = [{'=/=', '$2', asked}, {'<', '$3', Now - ?KEEP_MS}],
    Latest = lists:foldl(fun({Node, {Creation, Began}}, Acc) ->
        Key = {floor, Node, Creation},
        Acc#{Key => max(Began, maps:get(Key, Acc, Began))}
    end, #{}, ets:select(?TABLE, [{Head, Guards, [{{{node, '$1'}, '$4'}}]}])),
    maps:foreach(fun(Key, Began) ->
        ets:insert(?TABLE, {Key, max(Began, ets:lookup_element(?TABLE, Key, 2, Began)), Now})
    end, Latest),
    _ = ets:select_delete(?TABLE, [{Head, Guards, [true]}]),
    _ = ets:select_delete(?TABLE, [{{'_', '_', '$1'}, [{'<', '$1', Now - ?FLOOR_MS}], [true]}]),
    ok.
