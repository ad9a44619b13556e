%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_odd).
-moduledoc """
Messages that are nearly those of a server: each that its clauses name, with terms in them that do
not belong there. They are read out of its module, so that a new message is among them by itself.
""".

-export([messages/1, send/2, terms/0]).

-doc "What no field of a message is, mostly.".
terms() ->
    [
        x, -1, 1.5, [], [a | b], [x], #{}, #{x => [y | z]}, {a, b}, ~"x", <<255>>, <<1:3>>,
        make_ref(), self(), fun erlang:node/0
    ].

-doc "For a module of a server: calls, casts and other messages.".
messages(Module) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(Module), [abstract_code]),
    #{
        Kind => lists:flatmap(fun filled/1, lists:usort(shapes(Function, Forms))) ++ terms()
     || {Kind, Function} <- [{call, handle_call}, {cast, handle_cast}, {info, handle_info}]
    }.

shapes(Function, Forms) ->
    [
        Shape
     || {function, _, Name, _, Clauses} <- Forms,
        Name =:= Function,
        {clause, _, [Pattern | _], _, _} <- Clauses,
        Shape <- shape(Pattern)
    ].

shape({match, _, A, B}) -> shape(A) ++ shape(B);
shape({atom, _, Atom}) -> [Atom];
shape({tuple, _, [{atom, _, Tag} | Fields]}) -> [{Tag, [field(F) || F <- Fields]}];
shape(_) -> [].

field({atom, _, Atom}) -> {is, Atom};
field({integer, _, N}) -> {is, N};
field({tuple, _, [_ | _] = Fields}) -> {tuple, [field(F) || F <- Fields]};
field(_) -> any.

%% All fields with the same term, and with different ones.
filled(Atom) when is_atom(Atom) ->
    [Atom];
filled({Tag, Fields}) ->
    [list_to_tuple([Tag | [with(Field, Odd) || Field <- Fields]]) || Odd <- terms()] ++
        [list_to_tuple([Tag | mixed(I, Fields)]) || I <- lists:seq(1, length(terms()))].

with(any, Odd) -> Odd;
with({is, Atom}, _) -> Atom;
with({tuple, Fields}, Odd) -> list_to_tuple([with(F, Odd) || F <- Fields]).

mixed(I, Fields) ->
    Count = length(terms()),
    [with(Field, lists:nth(1 + (I + 4 * J) rem Count, terms()))
     || {J, Field} <- lists:enumerate(Fields)].

-doc "Sends them all; ends when the server has taken them, or is no more.".
send(Server, Messages) ->
    Pid = pid(Server),
    Monitor = monitor(process, Pid),
    #{call := Calls, cast := Casts, info := Infos} = Messages,
    From = {self(), make_ref()},
    lists:foreach(fun(Message) -> Pid ! {'$gen_call', From, Message} end, Calls),
    lists:foreach(fun(Message) -> Pid ! {'$gen_cast', Message} end, Casts),
    lists:foreach(fun(Message) -> Pid ! Message end, Infos),
    %% Answered behind all of them.
    try sys:get_status(Pid, 60_000) of
        _ ->
            true = demonitor(Monitor, [flush]),
            flushed()
    catch
        exit:Why -> {ended, Why}
    end.

pid(Pid) when is_pid(Pid) -> Pid;
pid(Name) -> whereis(Name).

flushed() ->
    receive
        {Ref, _} when is_reference(Ref) -> flushed()
    after 0 -> ok
    end.
