%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_pairs).
-moduledoc """
Who sends how much to whom in a part of the time: the pairs of processes with most messages, the
sums between nodes, the graph of communication. Answers are maps that can be JSON.
""".

-export([messages/2, traffic/2, communication/2]).
-export_type([reason/0, part/0, request/0]).

-type reason() :: {range, integer(), integer()} | too_many.
-doc "Nanoseconds since the begin; the end is excluded but for that of the whole.".
-type part() :: #{from := integer(), to := integer(), atom() => term()}.
-doc """
What is an end of the graph, `by`: a process, a kind of processes, a node. A kind is a name, or the
function in which processes without a name begin. `around` is a key of an answer, or empty; the rest
as `t:sderl_prof_communication:request/0` has it.
""".
-type request() :: #{from := integer(), to := integer(), by := process | kind | node,
                     sort := count | bytes, least := non_neg_integer(),
                     mean := non_neg_integer(), around := binary(), edges := pos_integer(),
                     ends := pos_integer()}.

-doc "The pairs with most messages in a part of the time.".
-spec messages(#{from := integer(), to := integer(), limit := pos_integer()},
               sderl_prof_window:view()) -> {ok, map()} | {error, reason()}.
messages(#{limit := Limit} = Request, #{book := Book} = View) ->
    maybe
        {ok, Pairs} ?= pairs(Request, View),
        Rows = lists:sort(fun({_, {A, _, _}}, {_, {B, _, _}}) -> A >= B end, maps:to_list(Pairs)),
        {ok, #{
            pairs => length(Rows),
            count => lists:sum([N || {_, {N, _, _}} <- Rows]),
            bytes => lists:sum([Sum || {_, {_, Sum, _}} <- Rows]),
            rows => [#{from => A, from_name => sderl_prof_book:label(A, Book),
                       to => B, to_name => sderl_prof_book:label(B, Book),
                       count => N, bytes => Sum}
                     || {{A, B}, {N, Sum, _}} <- lists:sublist(Rows, Limit)]
        }}
    end.

pairs(#{from := From, to := To}, View) ->
    case sderl_prof_part:range(From, To, View) of
        {ok, whole} ->
            #{index := #{from := Begin, to := End}} = View,
            sderl_prof_window:pairs(Begin, End, View);
        {ok, {Since, Until}} -> sderl_prof_window:pairs(Since, Until - 1, View);
        {error, Why} -> {error, Why}
    end.

-doc """
Messages between the nodes of a recording of several: how many in a part of the time, within nodes,
too; and how long they took in all of it, as the rows of `sderl_prof_traffic`.
""".
-spec traffic(part(), sderl_prof_window:view()) -> {ok, map()} | {error, reason()}.
traffic(Request, #{book := Book} = View) ->
    maybe
        {ok, Pairs} ?= pairs(Request, View),
        Sums = sderl_prof_communication:together(fun(P) -> number(P, Book) end, counts(Pairs)),
        {ok, #{sent => [#{from => A, to => B, count => N, bytes => Bytes}
                        || {{A, B}, {N, Bytes}} <- lists:sort(maps:to_list(Sums)), A > 0, B > 0],
               whole => maps:get(traffic, sderl_prof_book:meta(Book), [])}}
    end.

number(P, Book) ->
    case sderl_prof_book:node_of(P, Book) of
        #{number := N} -> N;
        none -> 0
    end.

counts(Pairs) -> #{Pair => {N, Bytes} || Pair := {N, Bytes, _} <- Pairs}.

-doc "The graph of communication (`m:sderl_prof_communication`) in a part of the time.".
-spec communication(request(), sderl_prof_window:view()) -> {ok, map()} | {error, reason()}.
communication(#{by := By, around := Text} = Request, #{book := Book} = View) ->
    maybe
        {ok, Pairs} ?= pairs(Request, View),
        {Grouped, Members} = grouped(By, counts(Pairs), Book),
        Around = case {Text, By} of
            {~"", _} -> none;
            {_, process} -> process_key(Text);
            _ -> Text
        end,
        Asked = (maps:with([sort, least, mean, edges, ends], Request))#{around => Around},
        #{ends := Ends, edges := Edges, passed := Passed, all := All} =
            sderl_prof_communication:graph(Grouped, Asked),
        {ok, #{ends => [described(By, Key, Sums, Members(Key), Book) || {Key, Sums} <- Ends],
               edges => [#{from => text(A), to => text(B), count => N, bytes => Bytes}
                         || {A, B, N, Bytes} <- Edges],
               passed => Passed, all => All}}
    end.

%% The number of no process stands for a text that is none.
process_key(Text) ->
    case string:to_integer(Text) of
        {N, <<>>} when N >= 0 -> N;
        _ -> ~"none"
    end.

text(P) when is_integer(P) -> integer_to_binary(P);
text(Key) -> Key.

%% The pairs of what is an end, and the processes of each.
grouped(process, Pairs, _) ->
    {Pairs, fun(P) -> [P] end};
grouped(By, Pairs, Book) ->
    Processes = lists:usort(lists:append([[A, B] || {A, B} := _ <- Pairs])),
    Of = #{P => key(By, P, Book) || P <- Processes},
    Members = maps:groups_from_list(fun(P) -> map_get(P, Of) end, Processes),
    {sderl_prof_communication:together(fun(P) -> map_get(P, Of) end, Pairs),
     fun(Key) -> map_get(Key, Members) end}.

key(node, P, Book) -> node(P, Book);
key(kind, P, Book) -> kind(sderl_prof_book:entity(P, Book), Book).

node(P, Book) ->
    case {sderl_prof_book:node_of(P, Book), sderl_prof_book:entity(P, Book)} of
        {_, #{kind := Kind}} when Kind =:= remote; Kind =:= node -> ~"other nodes";
        {#{node := Node}, _} -> Node;
        _ -> map_get(node, sderl_prof_book:meta(Book))
    end.

%% Of several nodes, those of all of them.
kind(#{kind := process, name := Name}, Book) when Name > 0 -> sderl_prof_book:word(Name, Book);
kind(#{kind := process, entry := Entry}, Book) when Entry > 0 -> sderl_prof_book:word(Entry, Book);
kind(#{kind := remote}, _) -> ~"processes of other nodes";
kind(#{kind := name, name := Name}, Book) -> sderl_prof_book:word(Name, Book);
kind(#{kind := port, name := Name}, Book) when Name > 0 -> port(sderl_prof_book:word(Name, Book));
kind(#{kind := node}, _) -> ~"processes of other nodes";
kind(#{kind := alias}, _) -> ~"aliases";
kind(_, _) -> ~"processes whose begin is not known".

%% Ports that have a name have it; others have a number each.
port(<<"#Port", _/binary>>) -> ~"ports";
port(Name) -> Name.

described(By, Key, Sums, [First | _] = Members, Book) ->
    Entry = case sderl_prof_book:entity(First, Book) of
        #{entry := Word} when By =:= process -> sderl_prof_book:word(Word, Book);
        _ -> ~""
    end,
    Sums#{
        key => text(Key),
        name => case By of process -> sderl_prof_book:label(Key, Book); _ -> Key end,
        entry => Entry,
        processes => length(Members),
        %% The one to open, where it is one.
        process => case Members of [P] when By =/= node -> P; _ -> 0 end,
        node => number(First, Book)
    }.
