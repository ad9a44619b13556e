%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_dashboard).
-moduledoc """
Opens the dashboard on the demo's nodes: two hidden monitoring nodes beside them, each with a hub
and a listener, so that one can be killed and the other goes on.

A failure is reported in words, and the demo goes on without the dashboard.
""".

-export([start/3, nodes/2, text/1]).
-export_type([dashboard/0, options/0]).

-doc """
`port` of the first monitoring node's dashboard; `any`: the default port, or a free one. `cluster`:
the cluster's name on the pages. `writable`: browsers may switch tracing and recording on and off.
`record`: the folder of recordings, into which the first one records.
""".
-type options() :: #{
    port := inet:port_number() | any,
    cluster := binary(),
    writable := boolean(),
    record := file:filename() | none
}.

-doc """
`links`: the addresses with the token, that of the first monitoring node first; `pages`: a remark on
the pages; `recording`: the file that is recorded into; `nodes`: the settings of each node's
dashboard.
""".
-type dashboard() :: #{
    links := [binary(), ...],
    pages := unicode:chardata(),
    recording := none | {ok, file:filename_all()} | {error, unicode:chardata()},
    nodes := #{node() => map()}
}.

-define(FAMILY, monitor).
-define(COUNT, 2).
-define(TIMEOUT_MS, 30_000).

-doc "Starts the monitoring nodes and the dashboard on them.".
-spec start(Fleet :: pid(), Seed :: node(), options()) ->
    {ok, dashboard()} | {error, unicode:chardata()}.
start(Fleet, Seed, #{port := Port, cluster := Cluster, writable := Writable, record := Record}) ->
    Common = #{cluster => Cluster, writable => Writable, recordings => Record},
    maybe
        {ok, [First | Others]} ?= monitors(Fleet, Seed),
        {ok, #{token := Token} = Address} ?= first(Fleet, First, Port, Common),
        Web = Common#{token => Token},
        More = [{Node, Other}
                || Node <- Others, {ok, Other} <- [serve(Fleet, Node, Web#{port => 0})]],
        Nodes = #{Node => Web#{port => At} || {Node, #{port := At}} <- [{First, Address} | More]},
        {ok, #{
            links => [Link || {_, #{link := Link}} <- [{First, Address} | More]],
            pages => sderl_fleet:call(Fleet, First, sderl_web_start, pages, [], ?TIMEOUT_MS),
            recording => record(Fleet, First, Record),
            nodes => Nodes#{First := (maps:get(First, Nodes))#{records => Record}}
        }}
    else
        {error, Reason} when is_tuple(Reason); is_atom(Reason) ->
            {error, sderl_bench_reason:text(Reason)};
        {error, Text} -> {error, Text}
    end.

monitors(Fleet, Seed) ->
    #{host := Host, tag := Tag} = sderl_fleet:connection_info(Fleet),
    Names = [name(I, Tag, Host) || I <- lists:seq(1, ?COUNT)],
    Config = #{seeds => [Seed], monitors => Names},
    case sderl_fleet:start_nodes(Fleet,
                                 [#{name => ?FAMILY, count => ?COUNT, hidden => true,
                                    apps => [sderl_mon], env => [{sderl_mon, config, Config}]}]) of
        {ok, Names} -> {ok, Names};
        {error, _} = Error -> Error
    end.

%% As the fleet names them.
name(I, "", Host) -> list_to_atom(lists:concat([?FAMILY, I, "@", Host]));
name(I, Tag, Host) -> list_to_atom(lists:concat([?FAMILY, I, "-", Tag, "@", Host])).

first(Fleet, Node, any, Web) ->
    case first(Fleet, Node, sderl_web_start:default_port(), Web) of
        {ok, _} = Ok -> Ok;
        {error, _} -> first(Fleet, Node, 0, Web)
    end;
first(Fleet, Node, Port, Web) ->
    serve(Fleet, Node, Web#{port => Port}).

record(_Fleet, _Node, none) ->
    none;
record(Fleet, Node, Folder) ->
    Result = sderl_fleet_task:attempt(fun() ->
        sderl_fleet:call(Fleet, Node, sderl_web_ask, record, [Folder], ?TIMEOUT_MS)
    end),
    case Result of
        {ok, File} -> {ok, File};
        {error, Reason} when is_tuple(Reason); is_atom(Reason) ->
            {error, sderl_bench_reason:text(Reason)};
        {error, Text} -> {error, Text}
    end.

serve(Fleet, Node, Web) ->
    #{home := Home} = sderl_fleet:connection_info(Fleet),
    Alarms = filename:join([Home, "alarms", atom_to_list(Node)]),
    Result = sderl_fleet_task:attempt(fun() ->
        ok = sderl_fleet:call(Fleet, Node, application, set_env,
                              [sderl_alarms, state_dir, Alarms], ?TIMEOUT_MS),
        ok = sderl_fleet:call(Fleet, Node, application, set_env,
                              [sderl_actions, state_dir, Alarms], ?TIMEOUT_MS),
        case sderl_fleet:call(Fleet, Node, sderl_web_start, start, [Web], ?TIMEOUT_MS) of
            ok -> sderl_fleet:call(Fleet, Node, sderl_web, address, [], ?TIMEOUT_MS);
            {error, Text} -> {refused, Text}
        end
    end),
    case Result of
        {refused, Text} -> {error, Text};
        Other -> Other
    end.

-doc "The monitoring nodes; when one is back its dashboard has the same address again.".
-spec nodes(Fleet :: pid(), {ok, dashboard()} | {error, unicode:chardata()}) ->
    sderl_demo_live:nodes().
nodes(Fleet, {ok, #{nodes := Nodes}}) ->
    #{
        Node => fun() ->
            {ok, _} = serve(Fleet, Node, maps:remove(records, Web)),
            _ = record(Fleet, Node, maps:get(records, Web, none)),
            ok
        end
     || Node := Web <- Nodes
    };
nodes(_, {error, _}) ->
    #{}.

-doc "The dashboard's addresses, or why there is none, for the terminal.".
-spec text({ok, dashboard()} | {error, unicode:chardata()}) -> unicode:chardata().
text({ok, #{links := [Link | Others], pages := Pages, recording := Recording}}) ->
    [
        "\nThe dashboard:  ", Link, "\n",
        [["and on a second monitoring node, which goes on when the first is killed:\n"
          "                ", Other, "\n"]
         || Other <- Others],
        Pages,
        recording(Recording)
    ];
text({error, Why}) ->
    ["\nThere is no dashboard: ", Why, "\n"].

recording(none) ->
    "";
recording({ok, File}) ->
    [
        "It is recorded into ", File, "; to look at that later:\n",
        "                bin/sderl mon --replay ", File, "\n"
    ];
recording({error, Why}) ->
    ["Nothing is recorded: ", Why, "\n"].
