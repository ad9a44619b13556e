%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_secret).
-moduledoc """
Keeps secrets out of the texts that leave a node with its log: the node's cookies, passwords within
addresses, and texts whose key says that they are a secret (`password => <<"...">>`, `token="..."`).

With a cookie one may do anything on the node, and crash reports show it in states of processes.
""".

-export([new/0, hidden/2]).
-export_type([secrets/0]).

-record(secrets, {
    %% When each was read, in milliseconds.
    own_at :: integer(),
    others_at :: integer(),
    own = [] :: [binary()],
    others = [] :: [binary()],
    %% Words that a text must have for a closer look.
    words :: binary:cp()
}).
-opaque secrets() :: #secrets{}.

-define(MASK, <<"(hidden)">>).
-define(OWN_MS, 100).
%% Cookies for other nodes are searched in all tables.
-define(OTHERS_MS, 10_000).
%% This many former cookies are hidden, too: an event may contain one.
-define(MOST, 20).
%% A shorter cookie is hidden only where it stands alone: it may be a part of many words.
-define(LONG, 8).
%% The first part of a cookie at the end of a text is hidden from this length on.
-define(LEAST, 4).
%% The longest text of an event (`sderl_mon_log_message`). The mask may make a text longer.
-define(MOST_BYTES, 4000).

%% Without the first letter, which may be a capital.
-define(WORDS, [<<"://">>, <<"assw">>, <<"ASSW">>, <<"assphrase">>, <<"ASSPHRASE">>, <<"ecret">>,
                <<"ECRET">>, <<"oken">>, <<"OKEN">>, <<"ookie">>, <<"OOKIE">>, <<"redential">>,
                <<"REDENTIAL">>, <<"rivate">>, <<"RIVATE">>, <<"pikey">>, <<"piKey">>,
                <<"PIKEY">>, <<"pi_key">>, <<"pi_Key">>, <<"PI_KEY">>]).
-define(ADDRESS, "://[^/@\\s]{0,200}:[^/@\\s]{0,200}@").
%% The value in quotes, or, of a text that was printed within another, in quotes with so many
%% backslashes before them. Whatever cuts it ends it.
-define(VALUE,
        "(?s)((?:password|passwd|passphrase|secret|token|cookie|credential|private|api_?key)"
        "\\w{0,20}(?:\\\\{0,7}[\"'>]){0,3}\\s{0,50}(?:=>|[,=:])\\s{0,50})(?:<<)?"
        "(?:\"[^\"\\\\]*+(?:\\\\(?:.|\\z)[^\"\\\\]*+)*+(?:\"|\\z)(?:\\s*+\"[^\"\\\\]*+\")*+"
        "|(\\\\++)\"(?:[^\"\\\\]++|(?!\\2\")\\\\++\"?)*+(?:\\2\")?)(?:>>)?").
-define(WORD,
        "((?:password|passwd|passphrase|secret|token|apikey|api_key)=)(?!\\(hidden\\))"
        "[^\\s\"',;&)\\]}]++").

-doc "The cookies of this node: its own, and those that it has for other nodes.".
-spec new() -> secrets().
new() ->
    Now = erlang:monotonic_time(millisecond),
    #secrets{own_at = Now, others_at = Now, own = own(), others = others(),
             words = binary:compile_pattern(?WORDS)}.

-doc "A text of an event without secrets, and the secrets as they are known now.".
-spec hidden(binary(), secrets()) -> {binary(), secrets()}.
hidden(Text, Before) ->
    #secrets{own = Own, others = Others, words = Words} = Known = renewed(Before),
    %% Longer ones first: a cookie may be the beginning of another.
    Cookies = lists:reverse(lists:usort([{byte_size(Cookie), Cookie} || Cookie <- Own ++ Others])),
    Shown = lists:foldl(fun without_cookie/2, Text, [Cookie || {_, Cookie} <- Cookies]),
    All = case binary:match(Shown, Words) of
        nomatch -> Shown;
        _ -> without_values(Shown)
    end,
    {sderl_mon_probe_text:cut(All, ?MOST_BYTES), Known}.

renewed(#secrets{own_at = OwnAt, others_at = OthersAt, own = Own, others = Others} = Known) ->
    Now = erlang:monotonic_time(millisecond),
    if
        Now - OthersAt >= ?OTHERS_MS ->
            Known#secrets{own_at = Now, others_at = Now, own = joined(own(), Own),
                          others = joined(others(), Others)};
        Now - OwnAt >= ?OWN_MS -> Known#secrets{own_at = Now, own = joined(own(), Own)};
        true -> Known
    end.

joined(New, Old) -> New ++ lists:sublist(Old -- New, ?MOST).

own() ->
    try cookies([erlang:get_cookie()])
    %% Its process may have just ended, and that may be what is logged.
    catch exit:_ -> []
    end.

others() ->
    case whereis(auth) of
        undefined -> [];
        Auth ->
            cookies(lists:append([of_others(Table) || Table <- ets:all(),
                                                      ets:info(Table, owner) =:= Auth]))
    end.

of_others(Table) ->
    try [Cookie || {_, Cookie} <- ets:tab2list(Table)]
    catch error:badarg -> []
    end.

cookies(Atoms) ->
    [atom_to_binary(Cookie) || Cookie <- lists:usort(Atoms), is_atom(Cookie), Cookie =/= nocookie,
                               Cookie =/= ''].

without_values(Text) ->
    lists:foldl(fun({Pattern, With}, Acc) ->
        re:replace(Acc, Pattern, With, [global, caseless, unicode, {return, binary}])
    end, Text, [{?ADDRESS, <<"://(hidden)@">>}, {?VALUE, <<"\\1(hidden)">>},
                {?WORD, <<"\\1(hidden)">>}]).

without_cookie(Cookie, Text) when byte_size(Cookie) >= ?LONG ->
    without_begins(binary:replace(Text, Cookie, ?MASK, [global]), Cookie);
without_cookie(Cookie, Text) ->
    re:replace(Text, [<<"(?<!\\w)">>, quoted(Cookie), <<"(?!\\w)">>], ?MASK,
               [global, unicode, ucp, {return, binary}]).

quoted(Text) ->
    re:replace(Text, "[^A-Za-z0-9_\\x{80}-\\x{10ffff}]", <<"\\\\&">>,
               [global, unicode, {return, binary}]).

%% Texts may have been cut through a cookie, at their end; and printed terms at dots, perhaps with a
%% quote before these.
without_begins(Text, Cookie) ->
    [Last | Cut] = lists:reverse(binary:split(Text, <<"...">>, [global])),
    iolist_to_binary([[[before_dots(Part, Cookie), <<"...">>] || Part <- lists:reverse(Cut)],
                      without_begin(Last, Cookie, byte_size(Cookie) - 1)]).

before_dots(Part, Cookie) ->
    Size = byte_size(Part) - 1,
    case Part of
        <<Quoted:Size/binary, $">> -> [without_begin(Quoted, Cookie, byte_size(Cookie) - 1), $"];
        _ -> without_begin(Part, Cookie, byte_size(Cookie) - 1)
    end.

without_begin(Text, _, Length) when Length < ?LEAST -> Text;
without_begin(Text, Cookie, Length) when Length > byte_size(Text) ->
    without_begin(Text, Cookie, byte_size(Text));
without_begin(Text, Cookie, Length) ->
    Before = byte_size(Text) - Length,
    Begin = binary:part(Cookie, 0, Length),
    case Text of
        <<Kept:Before/binary, Begin:Length/binary>> -> <<Kept/binary, ?MASK/binary>>;
        _ -> without_begin(Text, Cookie, Length - 1)
    end.
