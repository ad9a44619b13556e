%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_dashboard).
-moduledoc """
Opens the dashboard on the demo's nodes: two hidden monitoring nodes beside them, each with a hub and a listener, so that one can
be killed and the other goes on.

Whatever fails is told in words, and the demo goes on without.
""".

-export([start/4, nodes/2, text/1]).
-export_type([dashboard/0]).

-doc """
The addresses with the token, that of the first monitoring node first; what there is to say of the pages; the nodes, each with what
its dashboard was started with.
""".
-type dashboard() :: #{links := [binary(), ...], pages := unicode:chardata(), nodes := #{node() => map()}}.

-define(FAMILY, monitor).
-define(COUNT, 2).
-define(PORT, 8090).
-define(TIMEOUT_MS, 30_000).

-doc "Starts the monitoring nodes and the dashboard on them. `Port`: of the first one's; `any`: 8090, or one that is free.".
-spec start(Fleet :: pid(), Seed :: node(), inet:port_number() | any, Cluster :: binary()) ->
    {ok, dashboard()} | {error, unicode:chardata()}.
start(Fleet, Seed, Port, Cluster) ->
    maybe
        {ok, [First | Others]} ?= monitors(Fleet, Seed),
        {ok, #{token := Token} = Address} ?= first(Fleet, First, Port, Cluster),
        Web = #{token => Token, cluster => Cluster},
        More = [{Node, Other} || Node <- Others, {ok, Other} <- [serve(Fleet, Node, Web#{port => 0})]],
        {ok, #{
            links => [Link || {_, #{link := Link}} <- [{First, Address} | More]],
            pages => sderl_fleet:call(Fleet, First, sderl_web_start, pages, [], ?TIMEOUT_MS),
            nodes => #{Node => Web#{port => At} || {Node, #{port := At}} <- [{First, Address} | More]}
        }}
    else
        {error, Reason} when is_tuple(Reason); is_atom(Reason) -> {error, sderl_bench_reason:text(Reason)};
        {error, Text} -> {error, Text}
    end.

monitors(Fleet, Seed) ->
    #{host := Host, tag := Tag} = sderl_fleet:connection_info(Fleet),
    Names = [name(I, Tag, Host) || I <- lists:seq(1, ?COUNT)],
    Config = #{seeds => [Seed], monitors => Names},
    case sderl_fleet:start_nodes(Fleet, [#{name => ?FAMILY, count => ?COUNT, hidden => true, apps => [sderl_mon], env => [{sderl_mon, config, Config}]}]) of
        {ok, Names} -> {ok, Names};
        {error, _} = Error -> Error
    end.

%% As the fleet names them.
name(I, "", Host) -> list_to_atom(lists:concat([?FAMILY, I, "@", Host]));
name(I, Tag, Host) -> list_to_atom(lists:concat([?FAMILY, I, "-", Tag, "@", Host])).

first(Fleet, Node, any, Cluster) ->
    case first(Fleet, Node, ?PORT, Cluster) of
        {ok, _} = Ok -> Ok;
        {error, _} -> first(Fleet, Node, 0, Cluster)
    end;
first(Fleet, Node, Port, Cluster) ->
    serve(Fleet, Node, #{port => Port, cluster => Cluster}).

serve(Fleet, Node, Web) ->
    Result = sderl_fleet_task:attempt(fun() ->
        case sderl_fleet:call(Fleet, Node, sderl_web_start, start, [Web], ?TIMEOUT_MS) of
            ok -> sderl_fleet:call(Fleet, Node, sderl_web, address, [], ?TIMEOUT_MS);
            {error, Text} -> {refused, Text}
        end
    end),
    case Result of
        {refused, Text} -> {error, Text};
        Other -> Other
    end.

-doc "The monitoring nodes: their dashboards are at the same addresses again.".
-spec nodes(Fleet :: pid(), {ok, dashboard()} | {error, unicode:chardata()}) -> sderl_demo_live:nodes().
nodes(Fleet, {ok, #{nodes := Nodes}}) ->
    #{
        Node => fun() ->
            {ok, _} = serve(Fleet, Node, Web),
            ok
        end
     || Node := Web <- Nodes
    };
nodes(_, {error, _}) ->
    #{}.

-doc "What to say of it.".
-spec text({ok, dashboard()} | {error, unicode:chardata()}) -> unicode:chardata().
text({ok, #{links := [Link | Others], pages := Pages}}) ->
    [
        "\nThe dashboard:  ", Link, "\n",
        [["and on a second monitoring node, which goes on when the first is killed:\n                ", Other, "\n"] || Other <- Others],
        Pages
    ];
text({error, Why}) ->
    ["\nThere is no dashboard: ", Why, "\n"].
