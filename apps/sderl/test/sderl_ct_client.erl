%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ct_client).

%% A client on a member. Its names are its own, so it knows at any time what every answer must be,
%% whatever happens to the library meanwhile: one that is not is a broken promise, and ends it.

-export([start/5, count/2, pause/2, go_on/2, stop/2]).
%% On the nodes.
-export([init/3]).

-import(sderl_ct, [on/3]).

-record(c, {group, id, names, held = #{}, ops = 0, dead = [], paused = false}).

%% `Names` is how many names it uses. They are `{Id, 1}` and so on.
start(Fleet, Node, Group, Id, Names) ->
    Seed = rand:uniform(1 bsl 40),
    on(Fleet, Node, fun() -> spawn(?MODULE, init, [Group, {Id, Names}, Seed]) end).

%% How many answers it got.
count(Fleet, Client) -> ask(Fleet, Client, count).

%% Returns when no operation of its is under way.
pause(Fleet, Client) -> ask(Fleet, Client, pause).

go_on(Fleet, Client) -> ask(Fleet, Client, go_on).

%% What it holds; an error when a promise was broken.
stop(Fleet, Client) -> ask(Fleet, Client, stop).

ask(Fleet, Client, Question) ->
    Answer = on(Fleet, node(Client), fun() ->
        Ref = monitor(process, Client),
        Client ! {Question, self(), Ref},
        receive
            {Ref, {broken, Why}} -> demonitor(Ref, [flush]), {error, Why};
            {Ref, A} -> demonitor(Ref, [flush]), {ok, A};
            {'DOWN', Ref, process, _, Why} -> {error, Why}
        end
    end),
    case Answer of
        {ok, A} -> A;
        {error, Why} -> error({client, Client, Why})
    end.

init(Group, {Id, Names}, Seed) ->
    _ = rand:seed(exsss, Seed),
    try loop(#c{group = Group, id = Id, names = Names})
    catch Class:Why:Stack -> broken({Class, Why, Stack})
    end.

broken(Why) ->
    receive {_, From, Ref} -> From ! {Ref, {broken, Why}}, broken(Why) end.

loop(#c{ops = Ops, held = Held, paused = Paused} = C) ->
    receive
        {count, From, Ref} -> From ! {Ref, Ops}, loop(C);
        {pause, From, Ref} -> From ! {Ref, Held}, loop(C#c{paused = true});
        {go_on, From, Ref} -> From ! {Ref, ok}, loop(C#c{paused = false});
        {stop, From, Ref} -> From ! {Ref, Held}, receive after infinity -> ok end
    after case Paused of true -> infinity; false -> 0 end ->
        loop(step(C#c{ops = Ops + 1}))
    end.

step(#c{held = Held, id = Id, names = Names} = C) ->
    Name = {Id, rand:uniform(Names)},
    case {Held, rand:uniform(8)} of
        {#{Name := Pid}, N} -> held(N, Name, Pid, C);
        {_, N} -> free(N, Name, C)
    end.

free(1, Name, #c{group = G} = C) ->
    must(ok, s_group:unregister_name(G, Name), {unregister_free, Name}),
    reads(undefined, Name, C);
free(2, Name, C) ->
    reads(undefined, Name, C);
free(_, Name, #c{group = G} = C) ->
    Pid = new(),
    must(yes, s_group:register_name(G, Name, Pid), {register, Name, Pid}),
    reads(Pid, Name, hold(Name, Pid, C)).

held(1, Name, _, #c{group = G} = C) ->
    Pid = new(),
    must({no, name_or_pid_already_registered}, s_group:register_name(G, Name, Pid),
         {register_again, Name}),
    exit(Pid, kill),
    C;
held(2, Name, Old, #c{group = G} = C) ->
    Pid = new(),
    must(yes, s_group:re_register_name(G, Name, Pid), {re_register, Name, Pid}),
    exit(Old, kill),
    reads(Pid, Name, hold(Name, Pid, C));
held(N, Name, Pid, C) when N =< 4 ->
    %% Dead here is free here, at once.
    dead(Pid),
    reads(undefined, Name, C#c{held = maps:remove(Name, C#c.held)});
held(5, Name, Pid, C) ->
    reads(Pid, Name, C);
held(_, Name, Pid, #c{group = G} = C) ->
    must(ok, s_group:unregister_name(G, Name), {unregister, Name, Pid}),
    exit(Pid, kill),
    reads(undefined, Name, C#c{held = maps:remove(Name, C#c.held)}).

reads(Expected, Name, #c{group = G} = C) ->
    must(Expected, s_group:whereis_name(G, Name), {whereis, Name}),
    C.

hold(Name, Pid, #c{held = Held} = C) -> C#c{held = Held#{Name => Pid}}.

new() -> spawn(fun() -> receive after infinity -> ok end end).

dead(Pid) ->
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, _, _} -> ok end.

must(Value, Value, _) -> ok;
must(Expected, Found, What) -> throw({node(), What, {expected, Expected}, {found, Found}}).
