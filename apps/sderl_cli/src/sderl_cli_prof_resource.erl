%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_resource).
-moduledoc "The recording that `bin/sderl prof open` shows, under `/api/v1/profile`; only to read.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, whole/0, number/0, flag/0, null_or/1, map/1,
                           ref/1, word/1]).

%% Times are nanoseconds since the begin: a browser's whole numbers hold three months of them.
-define(MOST_NS, 9_007_199_254_740_991).
-define(MOST_NUMBER, 4_294_967_295).
%% Digits of a process's number.
-define(DIGITS, 10).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    #{columns := Columns, processes := Processes} = sderl_prof_view:limits(),
    From = {~"from", from, {whole, 0, ?MOST_NS}, 0},
    To = {~"to", to, {whole, 1, ?MOST_NS}, ?MOST_NS},
    Chosen = {~"processes", processes, {texts, Processes, ?DIGITS}, none},
    Get = fun(Op, Path, Summary, Query, Answer) ->
        #{op => Op, method => get, path => [~"profile" | Path], role => viewer,
          summary => Summary, query => Query, answer => {200, Answer},
          problems => [too_large || lists:member(Op, [profile_window, profile_messages])]}
    end,
    [
        Get(profile, [], ~"The recording of a profiler, and what was lost of it", [],
            ref(~"Profile")),
        Get(profile_window, [~"window"], ~"What processes do in a part of the time, in columns",
            [From, To, {~"columns", columns, {whole, 1, Columns}, 500}, Chosen],
            ref(~"ProfileWindow")),
        Get(profile_processes, [~"processes"], ~"Processes, greatest first",
            [{~"sort", sort, {word, sderl_prof_view:sorts()}, run},
             {~"search", search, {text, 200}, ~""},
             {~"limit", limit, {whole, 1, Processes}, 100}, Chosen],
            object(#{processes => list(ref(~"ProfileProcess")), matching => whole()})),
        Get(profile_process,
            [~"processes", {~"process", process, {whole, 1, ?MOST_NUMBER}, required}],
            ~"A process: where it waits, for whom, and its messages", [],
            object(#{process => ref(~"ProfileProcess"),
                     waits => list(object(#{site => text(), count => whole(), sum => whole(),
                                            mean => number(), deviation => number()})),
                     waits_for => list(ref(~"ProfilePeer")),
                     waited_for_by => list(ref(~"ProfilePeer")),
                     sent_to => list(ref(~"ProfilePeer")),
                     received_from => list(ref(~"ProfilePeer"))})),
        Get(profile_messages, [~"messages"], ~"Pairs with most messages in a part of the time",
            [From, To, {~"limit", limit, {whole, 1, 500}, 50}],
            object(#{pairs => whole(), count => whole(), bytes => whole(),
                     rows => list(object(#{from => whole(), from_name => text(), to => whole(),
                                           to_name => text(), count => whole(),
                                           bytes => whole()}))})),
        Get(profile_calls, [~"calls"], ~"Stacks of functions with their time, as a tree", [],
            object(#{ns => whole(), frames => list(ref(~"ProfileFrame"))}))
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Sums = #{Metric => whole() || Metric <- sderl_prof_view:sorts()},
    Shares = list(whole()),
    #{
        ~"Profile" => object(#{
            node => text(), otp => null_or(text()), items => list(text()), events => whole(),
            duration => whole(), processes => whole(), online => null_or(whole()),
            schedulers => list(whole()), totals => object(Sums), problems => list(text()),
            dropped => whole(), lost_events => whole(), lost_bytes => whole(),
            runnable => word([recorded, messages, none]),
            has_messages => flag(), has_calls => flag(),
            limits => object(#{columns => whole(), processes => whole(), cells => whole()})
        }),
        ~"ProfileWindow" => object(#{
            from => whole(), width => whole(), columns => whole(), exact => flag(),
            running => list(number()), runnable => list(number()),
            schedulers => list(object(#{scheduler => whole(), awake => Shares})),
            lanes => list(object(#{
                process => whole(), running => Shares, runnable => Shares, waiting => Shares,
                gc => Shares, intervals => null_or(list(list(whole())))
            })),
            sites => map(text()), names => map(text())
        }),
        ~"ProfileProcess" => object(Sums#{
            process => whole(), name => text(), entry => text(), parent => whole(),
            parent_name => text(), start => null_or(whole()), stop => null_or(whole()),
            reason => text()
        }),
        ~"ProfilePeer" => object(#{process => whole(), name => text(), count => whole(),
                                   sum => whole()}),
        ~"ProfileFrame" => object(#{function => text(), ns => whole(),
                                    below => list(ref(~"ProfileFrame"))})
    }.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(profile, _, _) -> asked(about);
answer(profile_calls, _, _) -> asked(calls);
answer(profile_process, #{process := P}, _) -> asked({process, P});
answer(profile_messages, Args, _) -> asked({messages, Args});
answer(profile_window, Args, _) ->
    case numbers(Args) of
        {ok, Numbers} -> asked({window, Args#{processes => Numbers}});
        error -> wrong()
    end;
answer(profile_processes, Args, _) ->
    case numbers(Args) of
        {ok, Numbers} -> asked({processes, Args#{numbers => Numbers}});
        error -> wrong()
    end.

numbers(#{processes := Texts}) ->
    Numbers = [N || Text <- Texts, {N, <<>>} <- [string:to_integer(Text)], N >= 1,
                    N =< ?MOST_NUMBER],
    case length(Numbers) =:= length(Texts) of
        true -> {ok, Numbers};
        false -> error
    end;
numbers(_) -> {ok, []}.

wrong() ->
    {error, bad_request,
     "processes is a list of numbers of processes with commas between them, such as 3,17: "
     "/api/v1/profile/processes lists them"}.

asked(Question) ->
    case sderl_prof_viewer:ask(Question) of
        {ok, Answer} -> {ok, Answer};
        {error, {no_process, _} = Why} -> {error, not_found, sderl_prof_view:format_error(Why)};
        {error, too_many} -> {error, too_large, sderl_prof_view:format_error(too_many)};
        {error, {cells, _} = Why} -> {error, too_large, sderl_prof_view:format_error(Why)};
        {error, Why} -> {error, bad_request, sderl_prof_view:format_error(Why)}
    end.
