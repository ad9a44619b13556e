%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_event).
-moduledoc """
The events of a piece of a trace file, as rows of one width. Pure.

A file has frames: a byte that is 0, the size, and the event in external format
(`<<0, Size:32, 131, ...>>`); or 1 and the number of events that were dropped. Nothing of an event
is built: its parts are compared, counted and numbered as they are. A message is never looked at:
its size is known, for the timestamp, the scheduler and the receiver are found from the end.

A row is `<<Time:64/signed, Kind, Scheduler:16, Who:64, A:64, B:64>>`. `Who`, `A` and `B` of a
process of the node that was recorded are its key (`key/2`); of anything else they are `?WORD` plus
the index of a word, which is the term in external format.

| kinds | A | B |
|---|---|---|
| `spawn`, `spawned` | the other process | word: where it begins |
| `exit` | word: the reason's first word | |
| `register`, `unregister` | word: the name | |
| `link` and the like, `open` | the other process | |
| `in`, `out`, .. `active`, `inactive`, `return_to`, `return_from`, `exception` | word: the function | |
| `gc_minor_start`, .. | | |
| `send`, `send_nobody` | receiver | bytes of the message |
| `receive` | word: the node of the sender, where it is another one and known | bytes of the message |
| `call` | word: the function | word: its caller, 0 for none |
| `operation`, `result`, `failed` | word: the function | detail (`m:sderl_prof_library`) |
| `routed`, `passed`, .. | detail | bytes of the message, or how many messages |
| `process` | the parent | word: where it began |
| `scheduler_active`, `scheduler_inactive` | active ones | |
""".

-export([rows/2, key/2, kind/1]).
-export_type([context/0, peers/0, kind/0, result/0]).

-include("sderl_prof_event.hrl").

-doc """
`node`: the name that processes of the recorded node have in the file, with its size before it, as
in external format. `exact`: the times are numbers of nanoseconds and the scheduler is in each event
or in none, as a recorder of this application has it; otherwise each event is taken apart.
`alias_bits`: how many low bits of a process's number are rotated in its aliases, see `alias_key/2`;
`peers`: the same of other nodes, by their names.
""".
-type context() :: #{
    node := binary(),
    exact := boolean(),
    scheduler := boolean(),
    alias_bits := none | pos_integer(),
    peers => peers()
}.
-type peers() :: #{Node :: binary() => pos_integer()}.

-type kind() :: spawn | spawned | exit | register | unregister | link | in | out | in_exiting
    | out_exiting | out_exited | gc_minor_start | gc_minor_end | gc_major_start | gc_major_end
    | gc_max_heap_size | send | send_nobody | 'receive' | call | return_to | return_from | exception
    | active | inactive | scheduler_active | scheduler_inactive | open | closed | process
    | operation | result | failed | routed | passed | delivered | undelivered.

-doc """
Rows in the order of the file, the words by index, and counts: events `dropped` by the driver,
frames that are no event that this module knows (`other`), events of another node (`foreign`),
events without a time (`timeless`); and the number and the bytes of all frames with an event.
""".
-type result() :: #{
    rows := binary(),
    words := [binary()],
    dropped := non_neg_integer(),
    other := non_neg_integer(),
    foreign := non_neg_integer(),
    timeless := non_neg_integer(),
    frames := non_neg_integer(),
    bytes := non_neg_integer()
}.

-record(found, {
    words = #{} :: #{binary() => non_neg_integer()},
    dropped = 0 :: non_neg_integer(),
    other = 0 :: non_neg_integer(),
    foreign = 0 :: non_neg_integer(),
    timeless = 0 :: non_neg_integer()
}).

-doc """
The key of a process of the recorded node, below `?WORD`: no node starts so many processes that its
serials need more bits, and a damaged file may have any.
""".
-spec key(Id :: non_neg_integer(), Serial :: non_neg_integer()) -> non_neg_integer().
key(Id, Serial) -> (Serial band 16#3FFFFFF) bsl 32 bor Id.

%% A key that stands for a word.
word(Index) when is_integer(Index) -> ?WORD + Index.

row(Time, Kind, Scheduler, Who, A, B, Rows) ->
    <<Rows/binary, Time:64, Kind, Scheduler:16, Who:64, A:64, B:64>>.

-doc "The rows of whole frames.".
-spec rows(Frames :: binary(), context()) -> result().
rows(Frames, #{node := Node} = Context) ->
    frames(Frames, <<>>, 0, 0, #found{}, Context#{size => byte_size(Node)}).

frames(<<0, N:32, Event:N/binary, Rest/binary>>, Rows, Count, Bytes, F, C) ->
    {Rows1, F1} = event(Event, Rows, F, C),
    frames(Rest, Rows1, Count + 1, Bytes + N, F1, C);
frames(<<1, N:32, Rest/binary>>, Rows, Count, Bytes, #found{dropped = Dropped} = F, C) ->
    frames(Rest, Rows, Count, Bytes, F#found{dropped = Dropped + N}, C);
frames(<<>>, Rows, Count, Bytes, F, _) ->
    Sorted = lists:keysort(2, maps:to_list(F#found.words)),
    #{rows => Rows, words => [Word || {Word, _} <- Sorted],
      dropped => F#found.dropped, other => F#found.other, foreign => F#found.foreign,
      timeless => F#found.timeless, frames => Count, bytes => Bytes}.

%% ---------------------------------------------------------------- one event

event(<<131, 104, _, 119, 8, "trace_ts", 88, Who/binary>> = Event, Rows, F,
      #{exact := true, size := Size, node := Node, scheduler := HasScheduler} = C) ->
    case Who of
        <<Node:Size/binary, Id:32, Serial:32, _:32, Body/binary>> ->
            case tail(Body, HasScheduler) of
                {Args, Scheduler, Time} -> args(Args, Time, Scheduler, key(Id, Serial), Rows, F, C);
                other -> slow(Event, Rows, F, C)
            end;
        _ -> slow(Event, Rows, F, C)
    end;
event(<<131, 104, 5, 119, 7, "profile", 88, Who/binary>> = Event, Rows, F,
      #{exact := true, size := Size, node := Node} = C) ->
    case Who of
        <<Node:Size/binary, Id:32, Serial:32, _:32, Body/binary>> ->
            case tail(Body, false) of
                {Args, _, Time} -> args(Args, Time, 0, key(Id, Serial), Rows, F, C);
                other -> slow(Event, Rows, F, C)
            end;
        _ -> slow(Event, Rows, F, C)
    end;
event(<<131, 104, 2, 119, 15, "sderl_recording", Own/binary>>, Rows, F, C) ->
    own(Own, Rows, F, C);
event(Event, Rows, F, C) ->
    slow(Event, Rows, F, C).

%% Splits off the time, and the scheduler where there is one.
tail(Body, false) ->
    Size = byte_size(Body) - 11,
    case Body of
        <<Args:Size/binary, 110, 8, 0, Time:64/little>> -> {Args, 0, Time};
        <<Args:Size/binary, 110, 8, 1, Time:64/little>> -> {Args, 0, -Time};
        _ -> other
    end;
tail(Body, true) ->
    Size = byte_size(Body) - 13,
    case Body of
        <<Args:Size/binary, 97, S, 110, 8, 0, Time:64/little>> -> {Args, S, Time};
        <<Args:Size/binary, 97, S, 110, 8, 1, Time:64/little>> -> {Args, S, -Time};
        _ -> other
    end.

%% Takes an event apart: the times of others' traces have three forms, and only the number of
%% elements tells whether there is a scheduler.
slow(<<131, 104, Arity, Bin/binary>>, Rows, F, C) when Arity >= 4 ->
    case sderl_prof_etf:elements(Bin, Arity) of
        [Name, Who, Tag | Rest] ->
            case {sderl_prof_etf:atom(Name), sderl_prof_etf:atom(Tag)} of
                {_, error} -> profiled(Name, Who, [Tag | Rest], Rows, F, C);
                {~"trace_ts", _} -> traced(Who, [Tag | Rest], Arity, Rows, F, C);
                {~"profile", _} -> profiled(Name, Who, [Tag | Rest], Rows, F, C);
                {~"trace", _} -> {Rows, F#found{timeless = F#found.timeless + 1}};
                {~"seq_trace", _} -> other(Rows, F);
                _ -> other(Rows, F)
            end;
        error -> other(Rows, F)
    end;
slow(_, Rows, F, _) ->
    other(Rows, F).

other(Rows, F) -> {Rows, F#found{other = F#found.other + 1}}.

traced(Who, [Tag | _] = Rest, Arity, Rows, F, C) ->
    Last = lists:last(Rest),
    Before = lists:droplast(Rest),
    {Args, Scheduler} = scheduler(Before, Arity - base(Tag), C),
    case time(Last) of
        error -> {Rows, F#found{timeless = F#found.timeless + 1}};
        Time -> about(Who, iolist_to_binary(Args), Time, Scheduler, Rows, F, C)
    end.

about(<<88, 119, L, Node:L/binary, Id:32, Serial:32, _:32>>, Args, Time, S, Rows, F, C) ->
    case C of
        #{node := <<119, L, Node:L/binary>>} -> args(Args, Time, S, key(Id, Serial), Rows, F, C);
        _ -> {Rows, F#found{foreign = F#found.foreign + 1}}
    end;
about(Port, Args, Time, S, Rows, F0, C) ->
    {Who, F} = other_key(Port, F0),
    args(Args, Time, S, Who, Rows, F, C).

profiled(Name, Who, Rest, Rows, F, C) ->
    case {sderl_prof_etf:atom(Name), sderl_prof_etf:atom(Who), Rest, time(lists:last(Rest))} of
        {_, _, _, error} -> {Rows, F#found{timeless = F#found.timeless + 1}};
        {~"profile", ~"scheduler", [Id, State, Active | _], Time} ->
            scheduler_event(sderl_prof_etf:integer(Id), sderl_prof_etf:atom(State),
                            sderl_prof_etf:integer(Active), Time, Rows, F);
        {~"profile", _, _, Time} ->
            about(Who, iolist_to_binary(lists:droplast(Rest)), Time, 0, Rows, F, C);
        _ -> other(Rows, F)
    end.

scheduler_event(Id, State, Active, Time, Rows, F) when is_integer(Id), is_integer(Active) ->
    case State of
        ~"active" -> {row(Time, ?SCHEDULER_ACTIVE, Id, 0, Active, 0, Rows), F};
        ~"inactive" -> {row(Time, ?SCHEDULER_INACTIVE, Id, 0, Active, 0, Rows), F};
        _ -> other(Rows, F)
    end;
scheduler_event(_, _, _, _, Rows, F) ->
    other(Rows, F).

base(Tag) ->
    case sderl_prof_etf:atom(Tag) of
        T when T =:= ~"send"; T =:= ~"send_to_non_existing_process"; T =:= ~"spawn";
               T =:= ~"spawned"; T =:= ~"return_from"; T =:= ~"exception_from";
               T =:= ~"open" -> 6;
        _ -> 5
    end.

%% A recorder tells whether its events have one.
scheduler(Args, _, #{exact := true, scheduler := false}) -> {Args, 0};
scheduler(Args, More, _) when More > 0 ->
    case sderl_prof_etf:integer(lists:last(Args)) of
        N when is_integer(N), N >= 0, N < 65_536 -> {lists:droplast(Args), N};
        _ -> {Args, 0}
    end;
scheduler(Args, _, _) -> {Args, 0}.

%% Of nanoseconds; of them with a number that makes them strict; of megaseconds, seconds and
%% microseconds.
time(<<104, 2, Bin/binary>>) ->
    case sderl_prof_etf:elements(Bin, 1) of
        [Time] -> time(Time);
        error -> error
    end;
time(<<104, 3, Bin/binary>>) ->
    case [sderl_prof_etf:integer(T) || T <- list_or_none(sderl_prof_etf:elements(Bin, 3))] of
        [M, S, U] when is_integer(M), is_integer(S), is_integer(U) ->
            in_range(((M * 1_000_000 + S) * 1_000_000 + U) * 1000);
        _ -> error
    end;
time(Bin) ->
    case sderl_prof_etf:integer(Bin) of
        error -> error;
        Time -> in_range(Time)
    end.

in_range(Time) when Time < 1 bsl 62, Time > -(1 bsl 62) -> Time;
in_range(_) -> error.

list_or_none(error) -> [];
list_or_none(List) -> List.

%% ---------------------------------------------------------------- by kind

args(<<119, 2, "in", Mfa/binary>>, Time, S, Who, Rows, F, _) ->
    with_word(?IN, Mfa, Time, S, Who, Rows, F);
args(<<119, 3, "out", Mfa/binary>>, Time, S, Who, Rows, F, _) ->
    with_word(?OUT, Mfa, Time, S, Who, Rows, F);
args(<<119, 6, "active", Mfa/binary>>, Time, S, Who, Rows, F, _) ->
    with_word(?ACTIVE, Mfa, Time, S, Who, Rows, F);
args(<<119, 8, "inactive", Mfa/binary>>, Time, S, Who, Rows, F, _) ->
    with_word(?INACTIVE, Mfa, Time, S, Who, Rows, F);
args(<<119, 4, "send", Sent/binary>>, Time, S, Who, Rows, F, C) ->
    sent(?SEND, Sent, Time, S, Who, Rows, F, C);
args(<<119, 7, "receive", Message/binary>>, Time, S, Who, Rows, F, _) ->
    received(Message, Time, S, Who, Rows, F);
args(<<119, 14, "gc_minor_start", _/binary>>, Time, S, Who, Rows, F, _) ->
    {row(Time, ?GC_MINOR_START, S, Who, 0, 0, Rows), F};
args(<<119, 12, "gc_minor_end", _/binary>>, Time, S, Who, Rows, F, _) ->
    {row(Time, ?GC_MINOR_END, S, Who, 0, 0, Rows), F};
args(<<119, 14, "gc_major_start", _/binary>>, Time, S, Who, Rows, F, _) ->
    {row(Time, ?GC_MAJOR_START, S, Who, 0, 0, Rows), F};
args(<<119, 12, "gc_major_end", _/binary>>, Time, S, Who, Rows, F, _) ->
    {row(Time, ?GC_MAJOR_END, S, Who, 0, 0, Rows), F};
args(<<119, 16, "gc_max_heap_size", _/binary>>, Time, S, Who, Rows, F, _) ->
    {row(Time, ?GC_MAX_HEAP_SIZE, S, Who, 0, 0, Rows), F};
args(<<119, 4, "call", Rest/binary>>, Time, S, Who, Rows, F, _) ->
    called(Rest, Time, S, Who, Rows, F);
args(<<119, 9, "return_to", Mfa/binary>>, Time, S, Who, Rows, F, _) ->
    with_word(?RETURN_TO, Mfa, Time, S, Who, Rows, F);
args(<<119, 5, "spawn", Rest/binary>>, Time, S, Who, Rows, F, C) ->
    spawned(?SPAWN, Rest, Time, S, Who, Rows, F, C);
args(<<119, 7, "spawned", Rest/binary>>, Time, S, Who, Rows, F, C) ->
    spawned(?SPAWNED, Rest, Time, S, Who, Rows, F, C);
args(<<119, 4, "exit", Reason/binary>>, Time, S, Who, Rows, F, _) ->
    with_word(?EXIT, first_word(Reason), Time, S, Who, Rows, F);
args(<<119, N, Tag:N/binary, Rest/binary>>, Time, S, Who, Rows, F, C) ->
    rarely(Tag, Rest, Time, S, Who, Rows, F, C);
args(_, _, _, _, Rows, F, _) ->
    other(Rows, F).

rarely(~"in_exiting", Mfa, Time, S, Who, Rows, F, _) ->
    with_word(?IN_EXITING, Mfa, Time, S, Who, Rows, F);
rarely(~"out_exiting", Mfa, Time, S, Who, Rows, F, _) ->
    with_word(?OUT_EXITING, Mfa, Time, S, Who, Rows, F);
rarely(~"out_exited", Mfa, Time, S, Who, Rows, F, _) ->
    with_word(?OUT_EXITED, Mfa, Time, S, Who, Rows, F);
rarely(~"send_to_non_existing_process", Sent, Time, S, Who, Rows, F, C) ->
    sent(?SEND_NOBODY, Sent, Time, S, Who, Rows, F, C);
rarely(~"register", Name, Time, S, Who, Rows, F, _) ->
    with_word(?REGISTER, Name, Time, S, Who, Rows, F);
rarely(~"unregister", Name, Time, S, Who, Rows, F, _) ->
    with_word(?UNREGISTER, Name, Time, S, Who, Rows, F);
rarely(~"return_from", Rest, Time, S, Who, Rows, F, _) ->
    returned(?RETURN_FROM, Rest, Time, S, Who, Rows, F);
rarely(~"exception_from", Rest, Time, S, Who, Rows, F, _) ->
    returned(?EXCEPTION, Rest, Time, S, Who, Rows, F);
rarely(~"open", Rest, Time, S, Who, Rows, F, C) ->
    with_other(?OPEN, Rest, Time, S, Who, Rows, F, C);
rarely(~"closed", Reason, Time, S, Who, Rows, F, _) ->
    with_word(?CLOSED, first_word(Reason), Time, S, Who, Rows, F);
rarely(Tag, Other, Time, S, Who, Rows, F, C)
  when Tag =:= ~"link"; Tag =:= ~"unlink"; Tag =:= ~"getting_linked";
       Tag =:= ~"getting_unlinked" ->
    with_other(?LINK, Other, Time, S, Who, Rows, F, C);
rarely(_, _, _, _, _, Rows, F, _) ->
    other(Rows, F).

with_word(Kind, Word, Time, S, Who, Rows, F) ->
    {A, F1} = index(Word, F),
    {row(Time, Kind, S, Who, A, 0, Rows), F1}.

with_other(Kind, Bin, Time, S, Who, Rows, F, C) ->
    case sderl_prof_etf:size(Bin) of
        error -> other(Rows, F);
        Size ->
            {A, F1} = key_of(binary:part(Bin, 0, Size), F, C),
            {row(Time, Kind, S, Who, A, 0, Rows), F1}
    end.

%% A reason may be of any size: kept is the atom, or the atom with which the tuple begins.
first_word(<<119, N, Text:N/binary, _/binary>>) -> <<119, N, Text/binary>>;
first_word(<<104, _, 119, N, Text:N/binary, _/binary>>) -> <<119, N, Text/binary>>;
first_word(_) -> <<119, 5, "other">>.

called(Bin, Time, S, Who, Rows, F) ->
    case sderl_prof_etf:size(Bin) of
        error -> other(Rows, F);
        Size ->
            <<Mfa:Size/binary, More/binary>> = Bin,
            with_two(sderl_prof_library:call(Mfa, More), Time, S, Who, Rows, F)
    end.

returned(Kind, Bin, Time, S, Who, Rows, F) ->
    case sderl_prof_etf:size(Bin) of
        error -> other(Rows, F);
        Size ->
            <<Mfa:Size/binary, Value/binary>> = Bin,
            with_two(sderl_prof_library:return(Kind, Mfa, Value), Time, S, Who, Rows, F)
    end.

%% A word, and a number or another word.
with_two({Kind, One, Number}, Time, S, Who, Rows, F) when is_integer(Number) ->
    {A, F1} = index(One, F),
    {row(Time, Kind, S, Who, A, Number, Rows), F1};
with_two({Kind, One, Other}, Time, S, Who, Rows, F) ->
    {A, F1} = index(One, F),
    {B, F2} = index(Other, F1),
    {row(Time, Kind, S, Who, A, word(B), Rows), F2}.

spawned(Kind, Bin, Time, S, Who, Rows, F, C) ->
    case sderl_prof_etf:elements(Bin, 2) of
        [Pid, Mfa] ->
            {A, F1} = key_of(Pid, F, C),
            Entry = sderl_prof_etf:entry(Mfa),
            {B, F2} = index(<<?TEXT, Entry/binary>>, F1),
            {row(Time, Kind, S, Who, A, B, Rows), F2};
        error -> other(Rows, F)
    end.

%% The receiver is last. Most are processes of this node, whose size is known.
sent(Kind, Bin, Time, S, Who, Rows, F, #{node := Node, size := Size} = C) ->
    Bytes = byte_size(Bin) - Size - 13,
    case Bin of
        <<_:Bytes/binary, 88, Node:Size/binary, Id:32, Serial:32, _:32>> when Bytes > 0 ->
            {row(Time, Kind, S, Who, key(Id, Serial), Bytes, Rows), F};
        _ ->
            case sderl_prof_etf:size(Bin) of
                error -> other(Rows, F);
                Message ->
                    <<_:Message/binary, To/binary>> = Bin,
                    {A, F1} = key_of(To, F, C),
                    {row(Time, Kind, S, Who, A, Message, Rows), F1}
            end
    end.

%% Behind a message from another node comes that node's name; a message may end as if it did.
received(Bin, Time, S, Who, Rows, F) ->
    Before = byte_size(Bin) - 12,
    case Bin of
        <<_:Before/binary, 119, 10, "sderl_from">> ->
            case from(Bin, sderl_prof_etf:size(Bin)) of
                {Bytes, <<119, _, Name/binary>> = Node} ->
                    %% Parts of the virtual machine send, too.
                    {A, F1} = case binary:match(Name, ~"@") of
                        nomatch -> {0, F};
                        _ -> other_key(Node, F)
                    end,
                    {row(Time, ?RECEIVE, S, Who, A, Bytes, Rows), F1};
                none -> {row(Time, ?RECEIVE, S, Who, 0, byte_size(Bin), Rows), F}
            end;
        _ -> {row(Time, ?RECEIVE, S, Who, 0, byte_size(Bin), Rows), F}
    end.

from(_, error) -> none;
from(Bin, Bytes) ->
    case Bin of
        <<_:Bytes/binary, 104, 2, 119, L, Node:L/binary, 119, 10, "sderl_from">> ->
            {Bytes, <<119, L, Node/binary>>};
        _ -> none
    end.

key_of(<<88, 119, L, Name:L/binary, Id:32, Serial:32, _:32>> = Pid, F, #{node := Node}) ->
    case Node of
        <<119, L, Name:L/binary>> -> {key(Id, Serial), F};
        _ -> other_key(Pid, F)
    end;
key_of(<<90, 5:16, 119, L, Name:L/binary, _:16/binary, Low:32, High:32>>, F,
       #{node := Node, alias_bits := Bits} = C) when is_integer(Bits) ->
    case {Node, C} of
        {<<119, L, Name:L/binary>>, _} -> {alias_key(High bsl 32 bor Low, Bits), F};
        {_, #{peers := #{Name := Theirs}}} ->
            other_key(peer_process(L, Name, alias_key(High bsl 32 bor Low, Theirs)), F);
        _ -> other_key(<<90>>, F)
    end;
%% Aliases of unknown processes are one receiver together: each call has its own.
key_of(<<90, _/binary>>, F, _) -> other_key(<<90>>, F);
key_of(Other, F, _) -> other_key(Other, F).

other_key(Word, F) ->
    {Index, F1} = index(Word, F),
    {word(Index), F1}.

%% Its text is that of the process itself, and so are both one word.
peer_process(L, Name, Key) ->
    <<88, 119, L, Name/binary, (Key band 16#FFFFFFFF):32, (Key bsr 32):32, 0:32>>.

%% An alias ends in the process's own identifier, as the virtual machine has it in memory: a tag of
%% 4 bits, 28 bits of the number, and the serial. The low bits of the number are rotated by 3, so
%% that neighbours are not on one cache line. The recorder has checked that it is so.
alias_key(Word, Bits) ->
    Data = Word bsr 4,
    Number = Data band 16#FFFFFFF,
    Mask = 1 bsl Bits - 1,
    Low = Number band Mask,
    Turned = (Low bsr 3) bor ((Low bsl (Bits - 3)) band Mask),
    key(Number band bnot Mask bor Turned, Data bsr 28).

%% ---------------------------------------------------------------- a recorder's own

own(<<104, 5, 119, 7, "process", Bin/binary>>, Rows, F, C) ->
    case sderl_prof_etf:elements(Bin, 4) of
        [<<88, 119, L, _:L/binary, Id:32, Serial:32, _:32>>, Name, Mfa, Parent] ->
            {A, F1} = case Parent of
                <<88, _/binary>> -> key_of(Parent, F, C);
                _ -> {0, F}
            end,
            {B, F2} = index(<<?TEXT, (sderl_prof_etf:text(Mfa))/binary>>, F1),
            Who = key(Id, Serial),
            Rows1 = row(0, ?PROCESS, 0, Who, A, B, Rows),
            case Name of
                <<119, 9, "undefined">> -> {Rows1, F2};
                _ ->
                    {N, F3} = index(Name, F2),
                    {row(0, ?REGISTER, 0, Who, N, 0, Rows1), F3}
            end;
        _ -> other(Rows, F)
    end;
own(_, Rows, F, _) ->
    {Rows, F}.

index(Word, #found{words = Words} = F) ->
    case Words of
        #{Word := Index} -> {Index, F};
        _ ->
            Index = map_size(Words),
            {Index, F#found{words = Words#{binary:copy(Word) => Index}}}
    end.

-doc "The kind of a code.".
-spec kind(byte()) -> kind().
kind(Code) -> element(Code, ?KINDS).
