%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plugin).
-moduledoc """
The behaviour of a plugin, which reads numbers of an application that the monitoring does not know.

A plugin is started on the watched nodes on which its application runs in one of its versions, and
returns whole numbers once a second. They become metrics of the nodes, like the application's own
([Metrics](metrics.md)): in charts, alarms and exports. The module may call only its application and
plain OTP, because it alone is loaded into nodes.

```erlang
-module(shop_plugin).
-behaviour(sderl_plugin).
-export([about/0, start/0, read/1]).

about() ->
    #{application => shop, versions => [~"2."],
      numbers => [#{name => ~"shop_baskets", kind => gauge, unit => ~"baskets",
                    total => sum, about => ~"baskets that are open"}]}.

start() -> {ok, none}.
read(State) -> {[ets:info(baskets, size)], State}.
```
""".

-export([start_info/1]).
-export_type([about/0, measured/0]).

-doc """
`versions`: beginnings of the application's versions; `~""` matches all. `numbers` are in the order
in which `read` returns them.
""".
-type about() :: #{application := atom(), versions := [binary(), ...],
                   numbers := [measured(), ...]}.

-doc "`counter` only grows, `gauge` rises and falls; the rest is as for a metric.".
-type measured() :: #{name := binary(), kind := counter | gauge, unit := binary(),
                      total := sum | mean | max, about := binary(), for => [atom()]}.

-doc "The application of the plugin, and its numbers.".
-callback about() -> about().

-doc "Starts the plugin on a node. An error is a sentence.".
-callback start() -> {ok, State :: term()} | {error, unicode:chardata()}.

-doc "Reads the numbers.".
-callback read(State :: term()) -> {[integer()], State :: term()}.

-doc "Whether the plugin is for this node: its application runs, in one of its versions.".
-spec start_info(module()) -> {ok, Version :: binary()} | {error, binary()}.
start_info(Module) ->
    #{application := App, versions := Versions} = Module:about(),
    case lists:keyfind(App, 1, application:which_applications(5000)) of
        {App, _, Text} ->
            Version = unicode:characters_to_binary(Text),
            case lists:any(fun(Begin) -> begins(Version, Begin) end, Versions) of
                true -> {ok, Version};
                false -> {error, <<"it is not for version ", Version/binary>>}
            end;
        false -> {error, <<(atom_to_binary(App))/binary, " does not run">>}
    end.

begins(Version, Begin) ->
    Size = byte_size(Begin),
    case Version of
        <<Begin:Size/binary, _/binary>> -> true;
        _ -> false
    end.
