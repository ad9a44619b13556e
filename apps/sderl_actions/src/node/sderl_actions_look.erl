%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_look).
-moduledoc "Actions that show the tables, applications and ports of this node.".

-export([tables/1, rows/1, applications/1, environment/1, ports/1]).

-define(ROW_BYTES, 500).
-define(VALUE_BYTES, 1000).

-doc "A page of the greatest ETS tables.".
-spec tables(map()) -> {ok, map()}.
tables(#{sort := Sort, limit := Limit, offset := Offset, filter := Filter}) ->
    Wanted = string:casefold(Filter),
    All = [{Key, Table, Info} || Table <- ets:all(), Info <- [ets:info(Table)], is_list(Info),
                                 is_wanted(proplists:get_value(name, Info), Wanted),
                                 Key <- [proplists:get_value(Sort, Info)]],
    Page = lists:sublist(lists:reverse(lists:sort(All)), Offset + 1, Limit),
    {ok, #{tables => [table(Table, Info) || {_, Table, Info} <- Page], found => length(All)}}.

is_wanted(_, <<>>) -> true;
is_wanted(Name, Wanted) -> string:find(string:casefold(atom_to_binary(Name)), Wanted) =/= nomatch.

table(Table, Info) ->
    Get = fun(Key) -> proplists:get_value(Key, Info) end,
    #{table => table_text(Table), name => atom_to_binary(Get(name)),
      memory => Get(memory) * erlang:system_info(wordsize), size => Get(size),
      type => atom_to_binary(Get(type)), protection => atom_to_binary(Get(protection)),
      owner => sderl_actions_show:own_pid(Get(owner)),
      owner_name => sderl_actions_processes:name(Get(owner))}.

table_text(Table) when is_atom(Table) -> atom_to_binary(Table);
table_text(Table) -> list_to_binary(ref_to_list(Table)).

-doc "The first rows of a table that is not private.".
-spec rows(map()) -> sderl_actions_node:result().
rows(#{table := Text, limit := Limit}) ->
    case [Table || Table <- ets:all(), table_text(Table) =:= Text] of
        [Table | _] ->
            try ets:select(Table, [{'$1', [], ['$1']}], Limit) of
                {Rows, _} -> {ok, shown(Table, Rows)};
                '$end_of_table' -> {ok, shown(Table, [])}
            catch
                error:badarg -> {error, <<"the table is private: its owner alone can read it">>}
            end;
        [] -> {error, <<"there is no table ", Text/binary, " (any more)">>}
    end.

shown(Table, Rows) ->
    (table(Table, ets:info(Table)))
        #{rows => [sderl_actions_show:line(Row, ?ROW_BYTES) || Row <- Rows]}.

-doc "The applications that are loaded.".
-spec applications(map()) -> {ok, map()}.
applications(_) ->
    Running = [Name || {Name, _, _} <- application:which_applications(5000)],
    {ok, #{applications => [
        #{application => atom_to_binary(Name), version => sderl_actions_show:cut(Version, 50),
          description => sderl_actions_show:cut(About, 255),
          running => lists:member(Name, Running)}
        || {Name, About, Version} <- lists:sort(application:loaded_applications())]}}.

-doc "The environment of an application; values whose keys name a secret are hidden.".
-spec environment(map()) -> sderl_actions_node:result().
environment(#{application := Text}) ->
    maybe
        {ok, Name} ?= sderl_actions_show:atom(Text),
        true ?= lists:keymember(Name, 1, application:loaded_applications()),
        {ok, #{application => Text,
               environment => [entry(Key, Value)
                               || {Key, Value} <- lists:sort(application:get_all_env(Name))],
               changes => sderl_actions_env:changes(Name)}}
    else
        false -> {error, <<"the application ", Text/binary, " is not loaded">>};
        Error -> Error
    end.

entry(Key, Value) ->
    Shown = case sderl_actions_secret:is_secret(Key) of
        true -> sderl_actions_secret:mask();
        false -> sderl_actions_show:line(Value, ?VALUE_BYTES)
    end,
    #{parameter => sderl_actions_show:text(Key), value => Shown}.

-doc "A page of the ports that have the most of something, with their addresses.".
-spec ports(map()) -> {ok, map()}.
ports(#{sort := Sort, limit := Limit, offset := Offset}) ->
    All = [{Value, Port} || Port <- erlang:ports(),
                            {_, Value} <- [erlang:port_info(Port, Sort)]],
    Page = lists:sublist(lists:reverse(lists:sort(All)), Offset + 1, Limit),
    {ok, #{ports => [Row || {_, Port} <- Page, #{} = Row <- [port(Port)]],
           found => length(All)}}.

port(Port) ->
    Get = fun(Key) ->
        case erlang:port_info(Port, Key) of
            {_, Value} -> Value;
            undefined -> gone
        end
    end,
    case [Get(Key) || Key <- [name, connected, input, output, memory, queue_size]] of
        [Name, Owner, In, Out, Memory, Queue] when is_pid(Owner) ->
            #{port => list_to_binary(port_to_list(Port)), name => sderl_actions_show:cut(Name, 255),
              owner => sderl_actions_show:own_pid(Owner),
              owner_name => sderl_actions_processes:name(Owner), input => In, output => Out,
              memory => Memory, queue => Queue, 'local' => address(inet:sockname(Port)),
              remote => address(inet:peername(Port))};
        _ -> gone
    end.

address({ok, {Ip, Port}}) when is_tuple(Ip) ->
    sderl_actions_show:cut([inet:ntoa(Ip), $:, integer_to_list(Port)], 100);
address({ok, {'local', Path}}) -> sderl_actions_show:cut(Path, 255);
address(_) -> <<>>.
