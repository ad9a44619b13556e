%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ask).
-moduledoc false.
%% Questions from node to node: reads and deliveries for nodes that are not in a group, and whether
%% a pid is alive. A server on each node answers from the tables. A question to a node without a
%% link is asked in a helper process, with a time limit, because it has to connect first.

-behaviour(gen_server).

-export([start_link/0, ask/3, ask_first/3, namespace/2, connect_and_send/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-import(sderl_clock, [now_ms/0]).

%% The helper processes of these answer with their exit reason.
-dialyzer({nowarn_function, [connect_and_ask/3]}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

-doc """
Asks one node and waits at most `Timeout` ms. `unreachable`: no link, or no answer in time;
`not_running`: the node has no such library.
""".
-spec ask(node(), term(), timeout()) -> {ok, term()} | {error, unreachable | not_running}.
ask(Node, Question, _) when Node =:= node() -> {ok, answer(Question)};
ask(Node, Question, Timeout) ->
    case sderl_links:is_up(Node) of
        true ->
            ok = sderl_links:note(Node, {lookup, about(Question)}),
            %% A stopped node behind a full link must not block the caller beyond its time limit.
            Was = process_flag(async_dist, true),
            Answer = call(Node, Question, Timeout),
            _ = process_flag(async_dist, Was),
            Answer;
        false -> connect_and_ask(Node, Question, Timeout)
    end.

call(Node, Question, Timeout) ->
    try gen_server:call({?MODULE, Node}, Question, Timeout) of
        Answer -> {ok, Answer}
    catch
        exit:{noproc, _} -> {error, not_running};
        exit:_ -> {error, unreachable}
    end.

%% To connect may take longer than the caller waits: a helper does it.
connect_and_ask(Node, Question, Timeout) ->
    {Pid, Mon} = spawn_monitor(fun() ->
        exit({answer, case sderl_connector:connect(Node, {lookup, about(Question)}) of
            false -> {error, unreachable};
            true -> call(Node, Question, Timeout)
        end})
    end),
    receive
        {'DOWN', Mon, process, Pid, {answer, Result}} -> Result;
        {'DOWN', Mon, process, Pid, _} -> {error, unreachable}
    after Timeout ->
        true = demonitor(Mon, [flush]),
        exit(Pid, kill),
        {error, unreachable}
    end.

about({alive, _}) -> undefined;
about(Question) when is_tuple(Question) -> element(2, Question);
about(_) -> undefined.

-doc "Asks nodes in turn, at most `Timeout` ms in all, until one that can answer does.".
-spec ask_first([node()], term(), pos_integer()) -> {ok, term()} | {error, unreachable}.
ask_first(Nodes, Question, Timeout) ->
    ask_first(Nodes, Question, Timeout, now_ms() + Timeout).

ask_first([], _, _, _) -> {error, unreachable};
ask_first([N | Ns], Question, Timeout, Until) ->
    case max(0, Until - now_ms()) of
        0 -> {error, unreachable};
        Left ->
            %% Each node gets a share of the time, so that one that is down does not use up all of
            %% it.
            case ask(N, Question, max(1, Left div (1 + length(Ns)))) of
                {ok, {error, _}} -> ask_first(Ns, Question, Timeout, Until);
                {ok, Answer} -> {ok, Answer};
                {error, _} -> ask_first(Ns, Question, Timeout, Until)
            end
    end.

-spec init([]) -> {ok, undefined}.
init([]) ->
    _ = process_flag(async_dist, true),
    {ok, undefined}.

-spec handle_call(term(), gen_server:from(), undefined) ->
    {reply, term(), undefined} | {noreply, undefined}.
handle_call({reach, Group, Pid}, From, S) when is_pid(Pid) ->
    %% May connect: not here.
    _ = spawn(fun() ->
        Answer = case sderl_connector:connect(node(Pid), {monitor, Group}) of
            true -> ask(node(Pid), {alive, Pid}, 4000);
            false -> {error, unreachable}
        end,
        gen_server:reply(From, Answer)
    end),
    {noreply, S};
handle_call({read, Group, Name}, From, S) ->
    %% Waits for the group's coordinator.
    _ = spawn(fun() -> gen_server:reply(From, answer({read, Group, Name})) end),
    {noreply, S};
handle_call(Question, _, S) -> {reply, answer(Question), S}.

-spec handle_cast(term(), undefined) -> {noreply, undefined}.
handle_cast(_, S) ->
    sderl_refused:note_message(?MODULE),
    {noreply, S}.

-spec handle_info(term(), undefined) -> {noreply, undefined}.
handle_info(_, S) ->
    sderl_refused:note_message(?MODULE),
    {noreply, S}.

%% Whether this library runs here: any answer says so.
answer(hello) -> hello;
answer({alive, Pid}) when is_pid(Pid), node(Pid) =:= node() -> is_process_alive(Pid);
answer({reach, _, Pid}) when is_pid(Pid), node(Pid) =:= node() -> {ok, is_process_alive(Pid)};
answer({reach, Group, Pid}) when is_pid(Pid) ->
    case sderl_connector:connect(node(Pid), {monitor, Group}) of
        true -> ask(node(Pid), {alive, Pid}, 4000);
        false -> {error, unreachable}
    end;
%% Asked of a member of the group.
answer({whereis, Group, Name}) ->
    case sderl_names:is_member(Group) of
        true -> {found, sderl_names:whereis(Group, Name)};
        false -> {error, not_member}
    end;
answer({read, Group, Name}) ->
    case sderl_client:read(Group, Name) of
        {ok, Found} -> {found, Found};
        {error, Why} -> {error, Why}
    end;
answer({send, Group, Name, Msg}) ->
    case sderl_names:is_member(Group) of
        true -> {found, deliver(sderl_names:whereis(Group, Name), Group, Msg)};
        false -> {error, not_member}
    end;
%% Asked of a certain node: rule 23. A free node answers from its own names, whatever the group.
answer({whereis_at, Group, Name}) -> {found, at(Group, Name), class()};
answer({send_at, Group, Name, Msg}) -> {found, deliver(at(Group, Name), Group, Msg), class()};
answer(names) -> [{G, [N || {N, _} <- sderl_names:names(G)]} || G <- sderl_dir:groups()];
answer({names, Group}) ->
    case sderl_names:is_member(Group) of
        true -> {names, [N || {N, _} <- sderl_names:names(Group)]};
        false -> {error, not_member}
    end;
answer(_Unknown) ->
    sderl_refused:note_message(?MODULE),
    {error, unknown_question}.

at(Group, Name) ->
    case namespace(sderl_dir:is_free(), Group) of
        none -> undefined;
        {names, In} -> sderl_names:whereis(In, Name)
    end.

-doc """
Where a node looks for a name if the caller named the node: a free one looks among its own names,
whatever the group.
""".
-spec namespace(Free :: boolean(), Group :: term()) -> {names, Group :: term()} | none.
namespace(true, _) -> {names, undefined};
namespace(false, undefined) -> none;
namespace(false, Group) -> {names, Group}.

class() ->
    case {sderl_dir:is_free(), sderl_vm:is_hidden()} of
        {true, true} -> free_hidden;
        {true, false} -> free_normal;
        {false, _} -> s_group
    end.

%% Delivered here, because a send from the asking node would link it to the pid's node (rule 21).
deliver(undefined, _, _) -> undefined;
deliver(Pid, Group, Msg) ->
    _ = case erlang:send(Pid, Msg, [noconnect]) of
        ok -> ok;
        noconnect -> spawn(fun() -> connect_and_send(Pid, Group, Msg) end)
    end,
    Pid.

-doc "Sends to a process on a node without a link: opens it, and notes that this send did.".
-spec connect_and_send(pid(), term(), term()) -> ok.
connect_and_send(Pid, Group, Msg) ->
    _ = sderl_connector:connect(node(Pid), {lookup, Group})
        andalso erlang:send(Pid, Msg, [noconnect]),
    ok.
