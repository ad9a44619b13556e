%% SPDX-License-Identifier: Apache-2.0
-module(sderl_soak).

%% The load of a soak test, and counts of everything on a node that could leak. Runs on the nodes.

-export([prepare/1, work/2, rest/1, count/0]).
-export([worker/2, far/1]).

%% ---------------------------------------------------------------- load

%% Loads all code that may be used, and makes the one scope for each name of a group: what is loaded
%% later would count as growth.
prepare(Groups) ->
    Mods = lists:append([ms(App) || App <- [kernel, stdlib, sderl]]) ++
        [?MODULE, sderl_ct, sderl_fleet_call],
    _ = code:ensure_modules_loaded(Mods),
    _ = [sderl_pg:scope(G) || G <- Groups],
    %% OTP starts a process for such lookups at the first one.
    _ = inet_gethost_native:gethostbyname("localhost"),
    _ = {erlang:memory(), persistent_term:info(), tables(), kinds(processes())},
    ok.

ms(App) ->
    Ebin = filename:join(code:lib_dir(App), "ebin"),
    [list_to_atom(filename:basename(F, ".beam"))
     || F <- filelib:wildcard(filename:join(Ebin, "*.beam"))].

%% Starts workers, which run until `rest/1`: writers of names, users of process groups, subscribers
%% and strangers.
work(Seed, Opts) ->
    [spawn(?MODULE, worker, [{Kind, Seed + I}, Opts])
     || {I, Kind} <- lists:enumerate([names, names, pg, others])].

%% Ends the workers and all that they made. Returns how often each kind did something.
rest(Workers) ->
    Refs = [{W, monitor(process, W)} || W <- Workers],
    [W ! rest || W <- Workers],
    Did = [receive
               {'DOWN', Ref, process, W, {did, Kind, Times}} -> {Kind, Times};
               {'DOWN', Ref, process, W, Why} -> error({worker, Why})
           end || {W, Ref} <- Refs],
    maps:map(fun(_, Times) -> lists:sum(Times) end,
             maps:groups_from_list(fun({K, _}) -> K end, fun({_, T}) -> T end, Did)).

worker({Kind, Seed}, #{pace_ms := Pace} = Opts) ->
    _ = rand:seed(exsss, Seed),
    _ = process_flag(trap_exit, true),
    loop(Kind, Pace, Opts, [], 0).

%% `Pids`: processes that the worker made, linked to it, a bounded number.
loop(Kind, Pace, Opts, Pids0, Times) ->
    receive
        rest -> lists:foreach(fun ended/1, Pids0), exit({did, Kind, Times})
    after rand:uniform(2 * Pace) - 1 ->
        flush(),
        {Old, Pids} = case length(Pids0) >= 20 of
            true -> {[lists:last(Pids0)], lists:droplast(Pids0)};
            false -> {[], Pids0}
        end,
        lists:foreach(fun ended/1, Old),
        New = try step(Kind, Opts, Pids)
        catch
            %% The node is no member, the application is stopped, or no answer came in time.
            exit:_ -> Pids;
            error:{erpc, _} -> Pids
        end,
        loop(Kind, Pace, Opts, New, Times + 1)
    end.

flush() -> receive M when M =/= rest -> flush() after 0 -> ok end.

ended(Pid) ->
    Ref = monitor(process, Pid),
    unlink(Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

process() -> spawn_link(fun idle/0).

idle() -> receive _ -> idle() end.

%% A process for a worker on another node. It ends with the worker at the latest.
far(Worker) ->
    spawn(fun() ->
        Ref = monitor(process, Worker),
        receive stop -> ok; {'DOWN', Ref, process, Worker, _} -> ok end
    end).

own() ->
    case s_group:own_s_groups() of
        [_ | _] = Gs -> element(1, lists:nth(rand:uniform(length(Gs)), Gs));
        _ -> undefined
    end.

%% Names that are used again and again, and names that are used once.
name() ->
    case rand:uniform(2) of
        1 -> {node(), rand:uniform(50)};
        2 -> {node(), erlang:unique_integer(), erlang:system_time()}
    end.

one_of(L) -> lists:nth(rand:uniform(length(L)), L).

step(names, #{nodes := Nodes}, Pids) ->
    G = own(),
    Name = name(),
    case rand:uniform(8) of
        1 -> _ = s_group:unregister_name(G, {node(), rand:uniform(50)}), Pids;
        2 ->
            P = process(),
            _ = s_group:re_register_name(G, {node(), rand:uniform(50)}, P),
            [P | Pids];
        3 ->
            P = process(),
            _ = s_group:register_name(G, Name, P, #{meta => {lists:seq(1, 20), node()}}),
            [P | Pids];
        4 ->
            %% The process of the name dies at once.
            P = process(), _ = s_group:register_name(G, Name, P), ended(P), Pids;
        5 ->
            %% A process of another node.
            P = erpc:call(one_of(Nodes), ?MODULE, far, [self()], 2000),
            _ = s_group:register_name(G, Name, P),
            _ = one_of([s_group, P]) =:= P orelse s_group:unregister_name(G, Name),
            P ! stop,
            Pids;
        6 -> _ = s_group:whereis_name(G, Name), _ = s_group:send(G, Name, hello), Pids;
        _ ->
            P = process(),
            _ = s_group:register_name(G, Name, P),
            _ = s_group:unregister_name(G, Name),
            [P | Pids]
    end;
step(pg, _, Pids) ->
    G = own(),
    Group = {workers, rand:uniform(5),
             case rand:uniform(3) of 1 -> erlang:unique_integer(); _ -> same end},
    case rand:uniform(4) of
        1 -> P = process(), _ = s_group:join(G, Group, P), ended(P), Pids;
        2 ->
            P = process(),
            _ = s_group:join(G, Group, [P, P]),
            _ = s_group:leave(G, Group, P),
            [P | Pids];
        3 -> P = process(), _ = s_group:join(G, Group, P), [P | Pids];
        4 -> _ = s_group:members(G, Group), Pids
    end;
step(others, #{nodes := Nodes, groups := Groups}, Pids) ->
    G = one_of(Groups),
    N = one_of(Nodes),
    case rand:uniform(6) of
        1 ->
            %% A subscriber that dies.
            P = spawn_link(fun() -> _ = s_group:subscribe(G), idle() end), [P | Pids];
        2 ->
            case s_group:subscribe(G, [name]) of
                {ok, Ref} -> _ = s_group:unsubscribe(Ref), Pids;
                _ -> Pids
            end;
        3 -> _ = s_group:whereis_name(N, G, name()), Pids;
        4 -> _ = s_group:whereis_name(G, name()), Pids;
        5 -> _ = s_group:send(N, G, name(), hello), Pids;
        6 -> _ = s_group:registered_names({s_group, G}), _ = s_group:info(), Pids
    end.

%% ---------------------------------------------------------------- what there is

%% Counts of what could leak, after a garbage collection. Ended groups, which are remembered for a
%% day (rule 1), are forgotten before.
count() ->
    ok = sderl_dir:prune(erlang:system_time(second) + 1),
    All = processes(),
    _ = [garbage_collect(P) || P <- All],
    Ours = [P || P <- All, ours(P)],
    #{processes => length(All),
      process_kinds => kinds(All),
      queues => lists:sum([V || P <- All, {_, V} <- [process_info(P, message_queue_len)]]),
      monitors => lists:sum([length(V) || P <- Ours, {_, V} <- [process_info(P, monitors)]]),
      links => lists:sum([length(V) || P <- Ours, {_, V} <- [process_info(P, links)]]),
      process_kib => lists:sum([V || P <- Ours, {_, V} <- [process_info(P, memory)]]) div 1024,
      binary_kib => erlang:memory(binary) div 1024,
      atoms => erlang:system_info(atom_count),
      newest_atoms => newest(erlang:system_info(atom_count), 12),
      ports => length(erlang:ports()),
      %% Only ours: OTP makes some of its own when it first needs them.
      persistent_terms => length([K
                                  || {K, _} <- persistent_term:get(), is_tuple(K),
                                     element(1, K) =:= sderl]),
      ets => tables()}.

%% The newest atoms, found by their numbers, as in OTP's own crash dumps.
newest(Count, Last) ->
    [binary_to_term(<<131, 75, I:24>>) || I <- lists:seq(Count - Last, Count - 1)].

%% Rows and words of tables: by name, or by name and owner where the table is not a named one.
tables() ->
    lists:foldl(fun(T, Acc) ->
        case ets:info(T) of
            undefined -> Acc;
            Info ->
                Name = case proplists:get_value(named_table, Info) of
                    true -> proplists:get_value(name, Info);
                    false ->
                        {proplists:get_value(name, Info), kind(proplists:get_value(owner, Info))}
                end,
                Here = {proplists:get_value(size, Info), proplists:get_value(memory, Info)},
                maps:update_with(Name,
                                 fun({S, M}) -> {S + element(1, Here), M + element(2, Here)} end,
                                 Here, Acc)
        end
    end, #{}, ets:all()).

ours(P) ->
    case kind(P) of
        {M, _, _} -> prefixed(M);
        {spawned, {M, _, _}} -> prefixed(M);
        Name -> prefixed(Name)
    end.

prefixed(Name) ->
    is_atom(Name) andalso lists:prefix("sderl", atom_to_list(Name)) andalso Name =/= ?MODULE.

kinds(Pids) -> maps:map(fun(_, L) -> length(L) end, maps:groups_from_list(fun kind/1, Pids)).

kind(P) ->
    case process_info(P, registered_name) of
        {_, Name} -> Name;
        [] ->
            case proc_lib:translate_initial_call(P) of
                %% A process that was spawned without OTP is known by what it does.
                {proc_lib, init_p, 5} -> doing(P);
                Call -> Call
            end;
        undefined -> gone
    end.

doing(P) ->
    case process_info(P, [initial_call, current_function]) of
        [{_, {erlang, apply, 2}}, {_, Now}] -> {spawned, Now};
        [{_, First}, _] -> First;
        undefined -> gone
    end.
