%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_library).
-moduledoc """
Calls of the library's own functions, as a recording of `s_group` or `routed` has them, made into
details that pages and reports show. Pure.

Of an operation on groups the detail is a JSON object: `group`, `nodes`, `name` and `process` as far
as the operation has them, and `arguments`, a text. That of what came of it has `ok` (whether it did
what was asked), `text`, and `group` and `nodes` where it tells them. Where there are more nodes
than are kept, the last one is null.

Of a routed message it is a JSON list of texts, from the message that the call has in the trace
(`sderl_observed:routed_calls/0`):

| kind | what happened | detail | number |
|---|---|---|---|
| `routed` | a process sent into groups that its node is not in | by which node first, to which group or node, to whom there | bytes of the message |
| `passed` | a node sent messages on | the node where they were sent, the next node | messages |
| `delivered` | messages came to their node | | messages |
| `undelivered` | a message could not be delivered | to which group or node, to whom there, why | 1 |
""".

-export([call/2, return/3]).

-include("sderl_prof_event.hrl").

-define(MOST_TEXT, 120).
-define(MOST_ARGUMENTS, 300).
-define(MOST_NODES, 500).
-define(S_GROUP, 119, 7, "s_group").

-doc """
A call by the function and what comes behind it: the kind, and what stands in a row for it, words
and a number (`m:sderl_prof_event`).
""".
-spec call(Mfa :: binary(), More :: binary()) ->
    {Kind :: byte(), Word :: binary(), binary() | non_neg_integer()}.
call(<<104, 3, ?S_GROUP, Rest/binary>> = Mfa, More) ->
    case {operation(Rest), arguments(Rest, More)} of
        {Name, [_ | _] = Args} when is_binary(Name) ->
            {?OPERATION, arity_of(Mfa), object(asked(Name, Args))};
        _ -> plain(Mfa, More)
    end;
call(Mfa, <<104, N, 119, L, Word:L/binary, Told/binary>> = More) when N > 1, Word =/= ~"cp" ->
    case sderl_prof_etf:elements(Told, N - 1) of
        error -> plain(Mfa, More);
        Parts -> routing(Word, Parts, Mfa, More)
    end;
call(Mfa, More) -> plain(Mfa, More).

routing(~"routed", [Next, Where, What, Message], _, _) ->
    {?ROUTED, texts([name(Next), name(Where), whom(What)]), byte_size(Message)};
routing(~"every_way", [Where], _, _) ->
    {?ROUTED, texts([~"every way", name(Where), ~"a call, again"]), 0};
routing(~"passed", [From, Next, Count], _, _) ->
    {?PASSED, texts([name(From), name(Next)]), count(Count)};
routing(~"delivered", [Count], _, _) ->
    {?DELIVERED, <<?DETAIL>>, count(Count)};
routing(~"undelivered", [Where, What, Why], _, _) ->
    {?UNDELIVERED, texts([name(Where), whom(What), name(Why)]), 1};
routing(_, _, Mfa, More) ->
    plain(Mfa, More).

plain(Mfa, <<104, 2, 119, 2, "cp", 104, _/binary>> = More) ->
    {?CALL, arity_of(Mfa), binary:part(More, 6, byte_size(More) - 6)};
plain(Mfa, _) -> {?CALL, arity_of(Mfa), 0}.

-doc "What a function returned, or the class and reason of its exception; kept of operations only.".
-spec return(Kind :: byte(), Mfa :: binary(), Value :: binary()) ->
    {Kind :: byte(), Word :: binary(), binary() | 0}.
return(Kind, <<104, 3, ?S_GROUP, Rest/binary>> = Mfa, Value) ->
    case operation(Rest) of
        none -> {Kind, Mfa, 0};
        _ when Kind =:= ?EXCEPTION ->
            {?FAILED, Mfa, object(#{ok => false, text => text(Value, ?MOST_ARGUMENTS)})};
        _ -> {?RESULT, Mfa, object(answered(Value))}
    end;
return(Kind, Mfa, _) -> {Kind, Mfa, 0}.

%% ---------------------------------------------------------------- functions

%% The name and the arity of an operation.
operation(Rest) ->
    case sderl_prof_etf:elements(Rest, 2) of
        [Function, Arity] ->
            Text = sderl_prof_etf:text(<<104, 3, ?S_GROUP, Function/binary, Arity/binary>>),
            case lists:any(fun(Of) -> is_text(Of, Text) end, sderl_prof_options:operations()) of
                true -> Text;
                false -> none
            end;
        error -> none
    end.

is_text({Function, Arity}, Text) ->
    Text =:= <<"s_group:", (atom_to_binary(Function))/binary, $/,
               (integer_to_binary(Arity))/binary>>.

%% Those of a trace without the flag arity stand in the place of it.
arguments(Rest, More) ->
    case sderl_prof_term:list(More) of
        error ->
            case sderl_prof_etf:elements(Rest, 2) of
                [_, Third] -> sderl_prof_term:list(Third);
                error -> error
            end;
        Args -> Args
    end.

%% A trace without the flag arity has the arguments.
arity_of(<<104, 3, Bin/binary>> = Mfa) ->
    case sderl_prof_etf:elements(Bin, 3) of
        [_, _, <<97, _>>] -> Mfa;
        [M, F, <<106>>] -> <<104, 3, M/binary, F/binary, 97, 0>>;
        [M, F, <<T, Count:32, _/binary>>] when T =:= 108, Count < 256 ->
            <<104, 3, M/binary, F/binary, 97, Count>>;
        [M, F, <<107, Count:16, _/binary>>] when Count < 256 ->
            <<104, 3, M/binary, F/binary, 97, Count>>;
        _ -> Mfa
    end;
arity_of(Mfa) -> Mfa.

%% ---------------------------------------------------------------- operations on groups

asked(Operation, Args) ->
    maps:merge(meant(Operation, Args),
               #{arguments => sderl_prof_term:valid(arguments_text(Args, ?MOST_ARGUMENTS))}).

meant(~"s_group:new_s_group/1", [Nodes]) -> #{nodes => nodes_of(Nodes)};
meant(~"s_group:register_name/2", [Via, Pid]) -> (via(Via))#{process => text(Pid)};
meant(~"s_group:unregister_name/1", [Via]) -> via(Via);
meant(Operation, [Group]) when Operation =:= ~"s_group:delete_s_group/1";
                               Operation =:= ~"s_group:leave/1" ->
    #{group => name(Group)};
meant(<<"s_group:re_register_name", _/binary>>, [Group, Name, Pid]) ->
    registration(Group, Name, Pid);
meant(<<"s_group:register_name", _/binary>>, [Group, Name, Pid | _]) ->
    registration(Group, Name, Pid);
meant(<<"s_group:unregister_name", _/binary>>, [Group, Name]) ->
    #{group => name(Group), name => text(Name)};
meant(_, [Group, Nodes | _]) -> #{group => name(Group), nodes => nodes_of(Nodes)};
meant(_, _) -> #{}.

registration(Group, Name, Pid) ->
    #{group => name(Group), name => text(Name), process => text(Pid)}.

via(<<104, 2, Bin/binary>>) ->
    case sderl_prof_etf:elements(Bin, 2) of
        [Group, Name] -> #{group => name(Group), name => text(Name)};
        error -> #{}
    end;
via(_) -> #{}.

%% As in source text; each argument is cut by itself, so that all of them are seen.
arguments_text(Args, Most) ->
    Each = max(20, Most div max(1, length(Args))),
    iolist_to_binary(lists:join(~", ", [text(Arg, Each) || Arg <- Args])).

answered(<<104, 3, Bin/binary>> = Value) ->
    Told = #{ok => false, text => text(Value, ?MOST_ARGUMENTS)},
    case sderl_prof_etf:elements(Bin, 3) of
        [Ok, Group, Nodes] ->
            case sderl_prof_etf:atom(Ok) of
                ~"ok" -> Told#{ok := true, group => name(Group), nodes => nodes_of(Nodes)};
                _ -> Told
            end;
        error -> Told
    end;
answered(Value) ->
    Atom = sderl_prof_etf:atom(Value),
    #{ok => Atom =:= ~"ok" orelse Atom =:= ~"yes", text => text(Value, ?MOST_ARGUMENTS)}.

nodes_of(Bin) ->
    case sderl_prof_term:list(Bin) of
        error -> [];
        Nodes when length(Nodes) > ?MOST_NODES ->
            [name(Node) || Node <- lists:sublist(Nodes, ?MOST_NODES)] ++ [null];
        Nodes -> [name(Node) || Node <- Nodes]
    end.

%% ---------------------------------------------------------------- routed messages

%% To whom a frame is, as `sderl_route_send` says it.
whom(<<104, 2, Bin/binary>> = What) ->
    case sderl_prof_etf:elements(Bin, 2) of
        [Kind, Name] ->
            case sderl_prof_etf:atom(Kind) of
                ~"to" -> ~"a process";
                ~"name" -> text(Name);
                K when K =:= ~"call"; K =:= ~"stream"; K =:= ~"whois"; K =:= ~"straight" ->
                    case Name of
                        <<88, _/binary>> -> <<"a process, ", K/binary>>;
                        _ -> <<(text(Name))/binary, ", ", K/binary>>
                    end;
                ~"pids" -> ~"processes";
                _ -> text(What)
            end;
        error -> text(What)
    end;
whom(What) -> text(What).

count(Bin) ->
    case sderl_prof_etf:integer(Bin) of
        N when is_integer(N), N >= 0 -> N;
        _ -> 0
    end.

%% ---------------------------------------------------------------- texts

name(Bin) -> sderl_prof_term:name(Bin, ?MOST_TEXT).

text(Bin) -> text(Bin, ?MOST_TEXT).

text(Bin, Most) -> sderl_prof_term:text(Bin, Most).

texts(Texts) -> object(Texts).

object(Term) -> <<?DETAIL, (iolist_to_binary(json:encode(Term)))/binary>>.
