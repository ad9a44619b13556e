%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_call).
-moduledoc false.
%% Calls over gateways: the caller's side, and the side of the process that is called.
%%
%% The caller makes an alias, which names the call and takes its answers. On the node of the process that is
%% called a process of its own asks it, with a monitor, as `gen_server:call/3` would there, and sends back
%% what came of it. Neither end gets a link to the other.
%%
%% A frame may be lost with a gateway, so the caller sends again until it hears something, for at most
%% `?AGAIN_MS`. The other node remembers calls and their answers for longer than that: a call that comes
%% twice is asked once, and its answer is sent again. When the answer takes time that side says `accepted`,
%% and from then on the caller only asks now and then whether the call is still known there.
%%
%% What the caller learns, apart from the answer:
%%
%% | error | |
%% |---|---|
%% | `no_name`, `no_route`, `unreachable`, `busy`, `hop_limit` | it was not asked (`t:sderl_route_send:failure/0`) |
%% | `{down, Reason}` | the process that was asked ended |
%% | `lost_route` | the way to it was lost, and whether it was asked, or answers, is not known |
%% | `timeout` | it is still at it |

-export([call/4, serve/3, found/2, probe/1, failed/2, new/0, prune/0]).
-export_type([error/0]).

-type error() :: sderl_route_send:failure() | {down, term()} | lost_route | timeout.

-define(TABLE, sderl_route_calls).
%% The first wait for a sign, doubled each time.
-define(FIRST_MS, 150).
%% For how long a call is sent again, and how long the other side remembers an answer.
-define(AGAIN_MS, 3000).
-define(KEEP_MS, 10_000).
%% How long a way may be missing before that is an error: gateways die and others take over.
-define(PATIENCE_MS, 1000).
%% When the answering side says that it takes longer.
-define(LONG_MS, 100).
-define(PROBE_MS, 1000).
%% An accepted call that nobody asks after is over.
-define(ORPHAN_MS, 60_000).

-record(c, {alias, group, what, request, deadline, began,
            wait = ?FIRST_MS, sent = 0, node :: node() | undefined, asked = 0, heard = 0, missing}).

-spec new() -> ets:table().
new() -> ets:new(?TABLE, [named_table, public, {write_concurrency, true}]).

%% ---------------------------------------------------------------- the caller

-doc "`{at, Node, Process}`: calls the process registered as that on a node; the group says nothing then.".
-spec call(term(), sderl_route_send:what() | {at, node(), atom()}, term(), timeout()) -> {ok, term()} | {error, error()}.
call(Group, What, Request, Timeout) ->
    Now = now_ms(),
    Alias = alias(),
    C = #c{alias = Alias, group = Group, what = What, request = Request, began = Now, heard = Now,
           deadline = case Timeout of infinity -> infinity; _ -> Now + Timeout end},
    try send(C)
    after
        _ = unalias(Alias),
        flush(Alias)
    end.

send(#c{group = Group, what = What, alias = Alias, request = Request, sent = Sent} = C) ->
    Hash = sderl_route_send:hash(Group, Sent + 1),
    Result = case What of
        {at, Node, Process} -> sderl_route_send:node(Node, {call, Process}, Alias, Request, Hash, [noconnect]);
        _ -> sderl_route_send:group(Group, What, Alias, Request, Hash, [noconnect])
    end,
    case Result of
        ok -> wait(C#c{sent = Sent + 1});
        {error, Why} -> missing(Why, C)
    end.

wait(#c{alias = Alias, wait = Wait, deadline = Deadline} = C) ->
    receive
        {Alias, reply, Reply} -> {ok, Reply};
        {Alias, down, Reason} -> {error, {down, Reason}};
        {Alias, accepted, Node} -> wait(C#c{node = Node, wait = ?PROBE_MS, asked = 0, heard = now_ms(), missing = undefined});
        {Alias, unknown, Node} -> unknown(Node, C);
        {Alias, failed, Why} -> failure(Why, C)
    after min(Wait, left(Deadline)) ->
        case left(Deadline) of
            0 -> {error, late(C)};
            _ -> again(C)
        end
    end.

%% The node that had accepted it knows of it no more: it was started anew.
unknown(Node, #c{node = Node}) -> {error, {down, noconnection}};
unknown(_, C) -> wait(C).

again(#c{node = undefined, began = Began, wait = Wait} = C) ->
    case now_ms() - Began < ?AGAIN_MS of
        true -> send(C#c{wait = min(2 * Wait, ?PROBE_MS)});
        false -> wait(C#c{wait = ?PROBE_MS})
    end;
again(#c{node = Node, alias = Alias, asked = Asked} = C) ->
    _ = sderl_route_send:node(Node, probe, Alias, none, [noconnect]),
    wait(C#c{asked = Asked + 1}).

%% Said on the way. With a first try somewhere else it says nothing of that one.
failure(no_name, #c{sent = 1, node = undefined}) -> {error, no_name};
%% A question harms nobody when it is asked twice.
failure(no_name, #c{what = {whois, _}}) -> {error, no_name};
failure(Why, #c{node = undefined} = C) when Why =/= no_name -> missing(Why, C);
failure(_, C) -> wait(C).

%% No way at the moment. A gateway that died is out of the tables in a moment.
missing(Why, #c{missing = Since0, deadline = Deadline, sent = Sent} = C) ->
    Now = now_ms(),
    Since = case Since0 of undefined -> Now; _ -> Since0 end,
    case Why =:= hop_limit orelse Now - Since >= ?PATIENCE_MS orelse left(Deadline) =:= 0 of
        true when Sent > 1 -> {error, lost_route};
        true -> {error, Why};
        false -> wait(C#c{missing = Since, wait = 50})
    end.

%% Out of time: if nothing was heard of it lately, the way is what is lost.
late(#c{sent = 0}) -> no_route;
late(#c{node = undefined}) -> lost_route;
late(#c{asked = Asked}) when Asked > 2 -> lost_route;
late(_) -> timeout.

flush(Alias) ->
    receive
        {Alias, _, _} -> flush(Alias)
    after 0 -> ok
    end.

now_ms() -> erlang:monotonic_time(millisecond).

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - now_ms()).

%% ---------------------------------------------------------------- the called

-doc "Asks a process of this node for a caller elsewhere, unless it has been asked already.".
-spec serve(reference(), pid() | atom(), term()) -> ok.
serve(Alias, Target, Request) ->
    case ets:insert_new(?TABLE, {Alias, asked, self(), 0}) of
        true -> _ = spawn(fun() -> ask(Alias, Target, Request) end), ok;
        false -> probe(Alias)
    end.

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
found(_, _) -> sderl_dir:unknown(?MODULE).

-doc "What has become of a call, to its caller.".
-spec probe(reference()) -> ok.
probe(Alias) ->
    case ets:lookup(?TABLE, Alias) of
        [{_, asked, Pid, _}] ->
            case is_process_alive(Pid) of
                true -> Pid ! {probe, Alias}, answer(Alias, accepted, node());
                %% Killed, so nobody knows what became of it.
                false -> ets:delete(?TABLE, Alias), answer(Alias, unknown, node())
            end;
        [{_, Kind, Value, _}] -> answer(Alias, Kind, Value);
        [] -> answer(Alias, unknown, node())
    end.

ask(Alias, Target, Request) ->
    true = ets:update_element(?TABLE, Alias, {3, self()}),
    Mon = monitor(process, Target, [{alias, reply_demonitor}]),
    To = case is_atom(Target) of true -> {Target, node()}; false -> Target end,
    _ = To ! {'$gen_call', {self(), [alias | Mon]}, Request},
    asked(Alias, Mon, ?LONG_MS).

asked(Alias, Mon, Wait) ->
    receive
        {[alias | Mon], Reply} -> done(Alias, reply, Reply);
        {'DOWN', Mon, process, _, Reason} -> done(Alias, down, Reason);
        {probe, Alias} -> asked(Alias, Mon, ?ORPHAN_MS)
    after Wait ->
        case Wait of
            ?LONG_MS -> answer(Alias, accepted, node()), asked(Alias, Mon, ?ORPHAN_MS);
            ?ORPHAN_MS -> ets:delete(?TABLE, Alias)
        end
    end.

done(Alias, Kind, Value) ->
    true = ets:insert(?TABLE, {Alias, Kind, Value, now_ms()}),
    answer(Alias, Kind, Value).

-doc "To the caller: it went no further.".
-spec failed(reference(), sderl_route_send:failure()) -> ok.
failed(Alias, Reason) -> answer(Alias, failed, Reason).

%% Not delivered, it is asked for again.
answer(Alias, Kind, Value) ->
    _ = sderl_route_send:node(node(Alias), {to, Alias}, none, {Alias, Kind, Value}, [noconnect, nosuspend]),
    ok.

-doc "Forgets answers that nobody asks for again.".
-spec prune() -> ok.
prune() ->
    Before = now_ms() - ?KEEP_MS,
    _ = ets:select_delete(?TABLE, [{{'_', '$1', '_', '$2'}, [{'=/=', '$1', asked}, {'<', '$2', Before}], [true]}]),
    ok.
