%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_plugin).
-moduledoc """
The process that runs the plugins of this node: starts those whose application runs, switches them
on and off, and restarts a failed one after a minute.

The numbers of a plugin are in an array of `counters` that the persistent term `{sderl_plugin,
Module}` holds, where the probe reads them. When no monitoring node has renewed its wish for 30 s,
the plugins end, and loaded ones are deleted.
""".

-export([renew/1, switch_on/1, switch_off/1, list/1]).
-export([init/0, reader/3]).

-import(sderl_actions_node, [now_ms/0]).

-define(LEASE_MS, 30_000).
-define(LOOK_MS, 1000).
-define(AGAIN_MS, 60_000).
%% Of the process of one plugin, in words.
-define(MOST_WORDS, 4_000_000).
-define(OFF, sderl_actions_switched_off).

-record(plugin, {
    state = waits :: waits | runs | failed | off,
    why = <<>> :: binary(),
    pid = none :: none | pid(),
    %% The MD5 of the code that it runs.
    code = <<>> :: binary(),
    %% Monotonic time may be below 0.
    again = now :: now | integer()
}).
-record(s, {until :: integer(), plugins = #{} :: #{module() => #plugin{}}}).

-type shown() :: #{plugin := binary(), state := binary(), why := binary(), numbers := [binary()]}.

-doc "Runs the plugins that a monitoring node wants for 30 s. Starts the process if need be.".
-spec renew([module()]) -> ok.
renew(Modules) ->
    case whereis(?MODULE) of
        undefined ->
            _ = proc_lib:start(?MODULE, init, []),
            ok;
        _ -> ok
    end,
    _ = try ?MODULE ! {wanted, Modules} catch error:badarg -> none end,
    ok = sderl_actions_code:used().

-doc "Plugins of this node with their states.".
-spec list(map()) -> {ok, #{plugins := [shown()]}}.
list(_) ->
    {ok, #{plugins => case whereis(?MODULE) of
        undefined -> [];
        Pid ->
            Ref = make_ref(),
            Pid ! {list, self(), Ref},
            receive {Ref, Plugins} -> Plugins after 5000 -> [] end
    end}}.

-doc "Lets a plugin run on this node again.".
-spec switch_on(map()) -> sderl_actions_node:result().
switch_on(Args) -> switch(Args, fun(Name, Off) -> lists:delete(Name, Off) end).

-doc "Ends a plugin on this node, until it is switched on or the node ends.".
-spec switch_off(map()) -> sderl_actions_node:result().
switch_off(Args) -> switch(Args, fun(Name, Off) -> lists:usort([Name | Off]) end).

switch(#{plugin := Name} = Args, Change) ->
    {ok, #{plugins := Plugins}} = list(Args),
    case [Name || #{plugin := Its} <- Plugins, Its =:= Name] of
        [] ->
            {error, ["no monitoring node wants a plugin ", Name, " here; there are ",
                     lists:join(", ", [Its || #{plugin := Its} <- Plugins])]};
        _ ->
            ok = application:set_env(?OFF, off, Change(Name, off())),
            _ = try ?MODULE ! look catch error:badarg -> none end,
            list(Args)
    end.

%% Kept on the node itself, in an environment, so it does not matter which monitoring node leads.
off() -> application:get_env(?OFF, off, []).

%% ---------------------------------------------------------------- the process

-doc false.
-spec init() -> ok.
init() ->
    try register(?MODULE, self()) of
        true ->
            ok = proc_lib:init_ack(ok),
            true = group_leader(whereis(init), self()),
            _ = process_flag(trap_exit, true),
            loop(#s{until = now_ms() + ?LEASE_MS})
    catch
        error:badarg -> proc_lib:init_ack(ok)
    end.

loop(#s{until = Until} = S) ->
    receive
        {wanted, Modules} -> loop(looked(wanted(Modules, S#s{until = now_ms() + ?LEASE_MS})));
        {list, From, Ref} ->
            _ = From ! {Ref, shown(S)},
            loop(S);
        look -> loop(looked(S));
        {'EXIT', Pid, Why} -> loop(ended(Pid, Why, S));
        {stop, From, Ref} ->
            ok = over(S),
            _ = From ! Ref,
            ok;
        _ -> loop(S)
    after ?LOOK_MS ->
        case now_ms() > Until of
            true -> over(S);
            false ->
                ok = sderl_actions_code:used(),
                loop(looked(S))
        end
    end.

wanted(Modules, #s{plugins = Plugins} = S) ->
    maps:foreach(fun stop/2, maps:without(Modules, Plugins)),
    New = #{Module => #plugin{} || Module <- Modules},
    S#s{plugins = maps:merge(New, maps:with(Modules, Plugins))}.

looked(#s{plugins = Plugins} = S) ->
    Off = off(),
    S#s{plugins = maps:map(fun(Module, Plugin) ->
        look(Module, lists:member(atom_to_binary(Module), Off), now_ms(), Plugin)
    end, Plugins)}.

look(Module, true, _, Plugin) ->
    ok = stop(Module, Plugin),
    #plugin{state = off};
look(Module, false, Now, #plugin{pid = none, again = Again} = Plugin)
  when Again =:= now; Now >= Again ->
    try sderl_plugin:start_info(Module) of
        {ok, Version} ->
            Pid = spawn_opt(?MODULE, reader, [self(), Module, numbers(Module)],
                            [link, {priority, low},
                             {max_heap_size, #{size => ?MOST_WORDS, kill => true,
                                               error_logger => false}}]),
            #plugin{state = runs, why = Version, pid = Pid, code = Module:module_info(md5)};
        {error, Why} -> Plugin#plugin{state = waits, why = Why, again = Now + 5 * ?LOOK_MS}
    catch
        Class:Reason -> failed({Class, Reason}, Now)
    end;
look(Module, false, Now, #plugin{code = Code} = Plugin) when Code =/= <<>> ->
    %% A new version of the plugin is started again, because its state and its numbers may differ,
    %% and it may no longer fail.
    case erlang:module_loaded(Module) andalso Module:module_info(md5) =/= Code of
        true ->
            ok = stop(Module, Plugin),
            look(Module, false, Now, #plugin{});
        false -> Plugin
    end;
look(_, false, _, Plugin) -> Plugin.

failed(Why, Now) ->
    #plugin{state = failed, why = sderl_actions_show:line(Why, 300), again = Now + ?AGAIN_MS}.

numbers(Module) ->
    #{numbers := Numbers} = Module:about(),
    length(Numbers).

stop(_, #plugin{pid = none}) -> ok;
stop(Module, #plugin{pid = Pid}) ->
    true = unlink(Pid),
    Monitor = monitor(process, Pid),
    true = exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    erase_numbers(Module).

erase_numbers(Module) ->
    _ = persistent_term:erase({sderl_plugin, Module}),
    ok.

ended(Pid, Why, #s{plugins = Plugins} = S) ->
    case [{Module, Code} || Module := #plugin{pid = Its, code = Code} <- Plugins, Its =:= Pid] of
        [{Module, Code}] ->
            ok = erase_numbers(Module),
            Failed = failed(Why, now_ms()),
            S#s{plugins = Plugins#{Module := Failed#plugin{code = Code}}};
        [] -> S
    end.

over(#s{plugins = Plugins}) ->
    true = unregister(?MODULE),
    maps:foreach(fun stop/2, Plugins),
    %% Deletes plugins from elsewhere; ours are deleted with the other modules.
    lists:foreach(fun(Module) ->
        case code:which(Module) =/= non_existing
             andalso code:where_is_file(atom_to_list(Module) ++ ".beam") =:= non_existing
             andalso not lists:member(Module, sderl_actions_code:modules()) of
            true ->
                _ = code:purge(Module),
                _ = code:delete(Module),
                _ = code:purge(Module);
            false -> ok
        end
    end, maps:keys(Plugins)).

shown(#s{plugins = Plugins}) ->
    [#{plugin => atom_to_binary(Module), state => atom_to_binary(State), why => Why,
       numbers => case State of runs -> values(Module); _ -> [] end}
     || {Module, #plugin{state = State, why = Why}} <- lists:sort(maps:to_list(Plugins))].

values(Module) ->
    case persistent_term:get({sderl_plugin, Module}, none) of
        none -> [];
        Array ->
            #{numbers := Numbers} = Module:about(),
            [<<Name/binary, "=", (integer_to_binary(counters:get(Array, I)))/binary>>
             || {I, #{name := Name}} <- lists:enumerate(Numbers)]
    end.

%% ---------------------------------------------------------------- one plugin

-doc false.
-spec reader(pid(), module(), pos_integer()) -> no_return().
reader(Parent, Module, Count) ->
    true = group_leader(whereis(init), self()),
    case Module:start() of
        {ok, State} ->
            Array = counters:new(Count, []),
            Next = put_numbers(Module, Array, State),
            ok = persistent_term:put({sderl_plugin, Module}, Array),
            read(Parent, Module, Array, Next);
        {error, Why} -> exit(sderl_actions_show:cut(Why, 300))
    end.

put_numbers(Module, Array, State) ->
    {Values, Next} = try Module:read(State) catch Class:Why -> exit({Class, Why}) end,
    lists:foreach(fun({I, Value}) -> counters:put(Array, I, Value) end, lists:enumerate(Values)),
    Next.

read(Parent, Module, Array, State) ->
    receive after ?LOOK_MS -> ok end,
    read(Parent, Module, Array, put_numbers(Module, Array, State)).
