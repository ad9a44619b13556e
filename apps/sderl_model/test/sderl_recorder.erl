%% SPDX-License-Identifier: Apache-2.0
-module(sderl_recorder).

%% A client that goes on with random commands until it is told to stop, and writes what it calls and
%% what it is answered to a file as it happens: its node may be killed at any moment. The module
%% runs on the nodes, and reads the files.
%%
%% All clients use the same few names. Processes are mostly new ones of the client's node, now and
%% then one that a read has shown.

-export([start/5, count/2, hold/2, go_on/2, stop/2, history/1, listen/3, heard/2]).
%% On the nodes.
-export([init/4, ear/3]).

%% `most`: the longest pause between two operations, in milliseconds.
-record(r, {
    group, names, fd, mine = [] :: [pid()], met = [] :: [pid()], done = 0, holding = false, most = 3
}).

%% ---------------------------------------------------------------- from the test

start(Fleet, Node, Group, Names, File) ->
    Seed = rand:uniform(1 bsl 40),
    Pid = sderl_ct:on(Fleet, Node, fun() -> spawn(?MODULE, init, [Group, Names, Seed, File]) end),
    #{pid => Pid, node => Node, file => File}.

%% How many operations were answered.
count(Fleet, Client) -> ask(Fleet, Client, count).

%% Returns when no operation is under way.
hold(Fleet, Client) -> ask(Fleet, Client, hold).

go_on(Fleet, Client) -> ask(Fleet, Client, go_on).

stop(Fleet, Client) -> ask(Fleet, Client, stop).

ask(Fleet, #{pid := Client, node := Node}, Question) ->
    sderl_ct:on(Fleet, Node, fun() ->
        Ref = monitor(process, Client),
        Client ! {Question, self(), Ref},
        receive
            {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
            {'DOWN', Ref, process, _, Why} -> error({client, Why})
        end
    end).

%% The operations of one client; the last may have no answer.
history(#{node := Node, file := File}) ->
    {ok, Binary} = file:read_file(File),
    paired(frames(Binary), Node).

frames(<<Size:32, Term:Size/binary, Rest/binary>>) -> [binary_to_term(Term) | frames(Rest)];
%% The node died while it wrote.
frames(_) -> [].

paired([{called, Start, Call}, {answered, Stop, Answer} | Rest], Node) ->
    [op(Node, Start, Stop, Call, Answer) | paired(Rest, Node)];
paired([{called, Start, Call}], Node) -> [op(Node, Start, infinity, Call, unknown)];
paired([], _) -> [].

op(Node, Start, Stop, Call, Answer) ->
    #{node => Node, start => Start, stop => Stop, call => Call, answer => Answer}.

%% Starts a listener on the node, which keeps the members that are set aside, and when it hears of
%% it.
listen(Fleet, Node, Group) ->
    sderl_ct:on(Fleet, Node, fun() ->
        Ear = spawn(?MODULE, ear, [Group, self(), []]),
        receive {Ear, listens} -> Ear end
    end).

%% A listener that a crash has ended heard nothing that matters now.
heard(Fleet, Ear) ->
    sderl_ct:on(Fleet, node(Ear), fun() ->
        Ref = monitor(process, Ear),
        Ear ! {heard, self(), Ref},
        receive
            {Ref, Heard} -> demonitor(Ref, [flush]), Heard;
            {'DOWN', Ref, process, _, _} -> []
        end
    end).

%% ---------------------------------------------------------------- on a node

ear(Group, Starter, []) when is_pid(Starter) ->
    {ok, _} = s_group:subscribe(Group, [group]),
    Starter ! {self(), listens},
    ear(Group, none, []);
ear(Group, none, Heard) ->
    receive
        {heard, From, Ref} -> From ! {Ref, Heard}, ear(Group, none, Heard);
        {_, _, _, {group, member_aside, #{node := N}}} ->
            ear(Group, none, [{sderl_histories:clock(), N} | Heard]);
        _ -> ear(Group, none, Heard)
    end.

init(Group, Names, Seed, File) ->
    _ = rand:seed(exsss, Seed),
    {ok, Fd} = file:open(File, [raw, binary, append]),
    loop(#r{group = Group, names = Names, fd = Fd}).

loop(#r{done = Done, fd = Fd, holding = Holding, most = Most} = R) ->
    receive
        {count, From, Ref} -> From ! {Ref, Done}, loop(R);
        {hold, From, Ref} -> From ! {Ref, ok}, loop(R#r{holding = true});
        {go_on, From, Ref} -> From ! {Ref, ok}, loop(R#r{holding = false});
        {stop, From, Ref} -> ok = file:close(Fd), From ! {Ref, ok}
    after case Holding of true -> infinity; false -> rand:uniform(Most + 1) - 1 end ->
        loop(step(R))
    end.

step(#r{names = Names, mine = Mine, met = Met} = R) ->
    Name = lists:nth(rand:uniform(length(Names)), Names),
    case rand:uniform(20) of
        N when N =< 5 -> registers(register, Name, R);
        N when N =< 7 -> registers(re_register, Name, R);
        N when N =< 10 -> does({unregister, Name}, R);
        11 when Mine =/= [] ->
            P = lists:nth(rand:uniform(length(Mine)), Mine),
            does({kill, P}, R#r{mine = Mine -- [P]});
        12 when Met =/= [] -> does({register, Name, hd(Met)}, R);
        13 -> does({lookup, Name}, R);
        N when N =< 15 -> does({read, Name}, R);
        _ -> does({whereis, Name}, R)
    end.

registers(Kind, Name, #r{mine = Mine} = R) ->
    P = spawn(sderl_histories, idle, []),
    does({Kind, Name, P}, R#r{mine = lists:sublist([P | Mine], 8)}).

does(Call, #r{group = Group, fd = Fd, done = Done} = R) ->
    %% Written before it is called, as it may have an effect and no answer.
    ok = write(Fd, {called, sderl_histories:clock(), Call}),
    [#{stop := Stop, answer := Answer}] = sderl_histories:perform(Group, Call),
    ok = write(Fd, {answered, Stop, Answer}),
    met(Answer, R#r{done = Done + 1}).

write(Fd, Term) ->
    Binary = term_to_binary(Term),
    file:write(Fd, <<(byte_size(Binary)):32, Binary/binary>>).

met(P, #r{met = Met} = R) when is_pid(P) -> R#r{met = lists:sublist([P | Met], 4), most = 3};
%% Such a refusal says little and comes at once, so the client becomes slower.
met({no, no_majority}, R) -> R#r{most = 50};
met(_, R) -> R#r{most = 3}.
