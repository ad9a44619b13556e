%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_trace).
-moduledoc """
The trace of a simulated schedule for people, with a line for everything that happens.

`n3 <- n1 batch 1006000.n1/4 ...` is a message that member `n3` gets in this step, `n3 -> n1` one
that it sends; an epoch is written as its counter and its coordinator, a position as an epoch and a
number.
Heartbeats and ticks are left out.
""".

-export([line/2]).

-define(DEPTH, 40).
%% The number by which this virtual machine knows the node of a pid.
-define(PID, <<"<[0-9]+\\.(?=[0-9]+\\.[0-9]+>)">>).

-doc "A line, or `none` for what is left out.".
-spec line(integer(), tuple()) -> iodata() | none.
line(Now, What) ->
    case text(What) of
        none -> none;
        Text -> [io_lib:format("~4w.~3..0w  ", [Now div 1000, Now rem 1000]), Text, $\n]
    end.

text({step, N, G, Events}) ->
    case [event(E) || E <- Events, not noise(E)] of
        [] -> none;
        Es -> [who(N, G), " <- ", lists:join("; ", Es)]
    end;
text({effect, N, G, {hello, To, Msg}}) -> ["    ", who(N, G), " -> ", short(To), " ", message(Msg)];
text({effect, N, G, {send, {To, _, _}, Msg}}) ->
    case noise({msg, N, Msg}) of
        true -> none;
        false -> ["    ", who(N, G), " -> ", short(To), " ", message(Msg)]
    end;
text({effect, _, _, {durable, _}}) -> none;
text({effect, _, _, {replies, _}}) -> none;
text({effect, N, G, {event, Name, Meta}}) ->
    ["    ", who(N, G), " event ", atom_to_list(Name), " ", term(maps:remove(group, Meta))];
text({effect, N, G, {apply, E, Num, Items, _}}) ->
    ["    ", who(N, G), " applies ", position(E, Num), " ", term(Items)];
text({effect, N, G, E}) -> ["    ", who(N, G), " ", term(E)];
text({fault, Kind, C}) -> ["## ", atom_to_list(Kind), ": ", term(C)];
text({command, {fault, _, _}}) -> none;
text({command, C}) -> ["## ", term(C)];
text({linked, A, B}) -> ["link ", short(A), " ", short(B)];
text({cut, A, B, How}) -> ["cut ", short(A), " ", short(B), " ", atom_to_list(How)];
text({joins, N, G}) -> [who(N, G), " joins"];
text({process_dies, N, G}) -> [who(N, G), " process dies"];
text({process_starts, N, G}) -> [who(N, G), " process starts"];
text({asks, N, G, Id, Op}) -> [who(N, G), " client asks ", term(Id), " ", term(Op)];
text({answered, N, G, Id, V}) -> ["    ", who(N, G), " answers ", term(Id), " ", term(V)];
text({violation, Why}) -> ["!! ", term(Why)];
text({settled, G, C, E, Names}) ->
    io_lib:format("settled: group ~p, coordinator ~s, epoch ~s, ~w names",
                  [G, short(C), epoch(E), Names]);
text(Other) -> term(Other).

noise(tick) -> true;
noise({beat, _, _, _}) -> true;
noise({msg, _, Msg}) when element(1, Msg) =:= hb; element(1, Msg) =:= hb_ack -> true;
noise(_) -> false.

event({msg, From, Msg}) -> [short(From), " ", message(Msg)];
event({op, none, Op}) -> ["monitor ", term(Op)];
event({op, Id, _}) -> ["op ", term(Id)];
event(E) -> term(E).

message({batch, E, Num, Commit, Items}) ->
    io_lib:format("batch ~s commit ~w: ~s", [position(E, Num), Commit, term(Items)]);
message({ack, E, Num, none}) -> ["ack ", position(E, Num)];
message({ack, E, Num, Seg}) -> ["ack ", position(E, Num), " list ", term(Seg)];
message({commit, E, Num}) -> ["commit ", position(E, Num)];
message({req, E, Seg}) -> ["req ", epoch(E), " list ", term(Seg)];
message({hello, _, {_, Life}, _, #{epoch := E, lineage := Lin, num := Num, lead := Lead} = Info}) ->
    Ask = case Info of #{ask := true} -> ", asks"; _ -> "" end,
    io_lib:format("hello, life ~w, at ~s, epoch ~s, follows ~s~s",
                  [Life, position(Lin, Num), epoch(E), short(Lead), Ask]);
message(Msg) -> term(Msg).

position(E, Num) -> [epoch(E), "/", integer_to_list(Num)].

epoch({C, N}) -> [integer_to_list(C), ".", short(N)];
epoch(E) -> term(E).

who(N, g) -> short(N);
who(N, G) -> [short(N), "/", term(G)].

short(N) -> hd(string:split(atom_to_list(N), "@sim")).

%% A term with short names for nodes, maps in the order of their keys, and a pid without the number
%% of its node: two virtual machines write the same.
term(T) ->
    Text = string:replace(io_lib:format("~0tkP", [T, ?DEPTH]), "@sim'", "'", all),
    re:replace(Text, ?PID, "<", [global, unicode]).
