%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_search).
-moduledoc """
Searches the log, in the process that asks: it gets the index of that moment and reads the files
itself, so that a long search does not delay storing.

A page reads at most 32 MB. `next` is the option `before` of the next page. A page without events
may have a next page with events.
""".

-export([search/2]).
-export_type([page/0]).

-doc "Events, newest first.".
-type page() :: #{events := [sderl_mon_log_message:event()], next := none | pos_integer()}.

-define(MOST_BYTES, 33_554_432).

-record(search, {
    filter :: sderl_mon_log_filter:filter(),
    left :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    found = [] :: [sderl_mon_log_message:event()],
    %% The file that is read.
    file = none :: none | {file:filename_all(), file:fd()}
}).

-doc "The first page of a filter's matches.".
-spec search(sderl_mon_log_filter:filter(), [sderl_mon_log_index:stretch()]) -> page().
search(Filter, Stretches) ->
    {Next, #search{found = Found} = Search} =
        go(Stretches, #search{filter = Filter, left = sderl_mon_log_filter:limit(Filter)}),
    ok = close(Search),
    #{events => lists:reverse(Found), next => Next}.

go([], Search) -> {none, Search};
go([#{last := Last} | _], #search{bytes = Bytes} = Search) when Bytes > ?MOST_BYTES ->
    {Last + 1, Search};
go([Stretch | Rest], #search{filter = Filter} = Search) ->
    case sderl_mon_log_filter:within(Stretch, Filter) of
        done -> {none, Search};
        false -> go(Rest, Search);
        true ->
            case look(Stretch, Search) of
                #search{left = 0, found = [#{id := Id} | _]} = Full ->
                    {older(Id, Stretch, Rest), Full};
                Searched -> go(Rest, Searched)
            end
    end.

%% `none` if the event is the oldest one.
older(Id, #{first := Id}, []) -> none;
older(Id, _, _) -> Id.

look(#{bytes := Size, place := Place}, #search{filter = Filter, bytes = Before} = Search0) ->
    {Bytes, Search} = read(Place, Size, Search0#search{bytes = Before + Size}),
    case sderl_mon_log_filter:may_hold(Bytes, Filter) of
        true -> take(matching(Bytes, Filter), Search);
        false -> Search
    end.

%% Newest first.
matching(Bytes, Filter) ->
    sderl_mon_log_record:fold(fun(Event, Acc) ->
        case sderl_mon_log_filter:holds(Event, Filter) of true -> [Event | Acc]; false -> Acc end
    end, [], Bytes).

take([Event | Rest], #search{left = Left, found = Found} = Search) when Left > 0 ->
    take(Rest, Search#search{left = Left - 1, found = [Event | Found]});
take(_, Search) -> Search.

read({memory, Bytes}, _, Search) -> {Bytes, Search};
read({file, File, Offset}, Size, Search) ->
    case open(File, Search) of
        #search{file = {_, Fd}} = Opened ->
            case file:pread(Fd, Offset, Size) of
                {ok, Bytes} -> {Bytes, Opened};
                _ -> {<<>>, Opened}
            end;
        %% The file was removed meanwhile, as the oldest.
        Closed -> {<<>>, Closed}
    end.

open(File, #search{file = {File, _}} = Search) -> Search;
open(File, Search) ->
    ok = close(Search),
    case file:open(File, [read, raw, binary]) of
        {ok, Fd} -> Search#search{file = {File, Fd}};
        {error, _} -> Search#search{file = none}
    end.

close(#search{file = {_, Fd}}) -> _ = file:close(Fd), ok;
close(_) -> ok.
