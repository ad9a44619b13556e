%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_cookie).
-moduledoc """
Keeps the cookies of this node out of what is shown. With a cookie one may do anything on the node,
whatever one's role; and a cookie is not the value of a key, but an atom in states, tables and
arguments.

The working process remembers the cookies once: reading them for each term would show up in a trace
of the process that has them.
""".

-export([read/0, remember/1, known/0]).
-export([hidden/2, cut/3, hidden_list/3]).

%% A shorter cookie is hidden only where it stands alone: it may be a part of many words.
-define(LONG, 8).
%% The bytes of the longest atom.
-define(LONGEST, 1020).

-doc "The cookies of this node: its own, and those that it has for other nodes.".
-spec read() -> [binary()].
read() ->
    Cookies = [erlang:get_cookie() | case whereis(auth) of
        undefined -> [];
        Auth -> lists:append([of_others(Table) || Table <- ets:all(),
                                                  ets:info(Table, owner) =:= Auth])
    end],
    lists:usort([atom_to_binary(Cookie)
                 || Cookie <- Cookies, is_atom(Cookie), Cookie =/= nocookie, Cookie =/= '']).

of_others(Table) ->
    try ets:tab2list(Table) of
        Rows -> [Cookie || {_, Cookie} <- Rows]
    catch
        error:badarg -> []
    end.

-doc "The calling process hides these cookies from now on.".
-spec remember([binary()]) -> ok.
remember(Cookies) ->
    _ = put(?MODULE, Cookies),
    ok.

-doc "The cookies that the calling process has remembered, or else the present ones.".
-spec known() -> [binary()].
known() ->
    case get(?MODULE) of
        undefined -> read();
        Cookies -> Cookies
    end.

-doc "A text without cookies, wherever they are in it.".
-spec hidden(binary(), [binary()]) -> binary().
hidden(Text, Cookies) ->
    case found(Text, Cookies) of
        [] -> Text;
        Found -> iolist_to_binary(replaced(Text, 0, Found))
    end.

found(_, []) -> [];
found(Text, Cookies) ->
    [Match || {Start, Length} = Match <- binary:matches(Text, Cookies),
              Length >= ?LONG orelse stands_alone(Start, Length, Text)].

stands_alone(Start, Length, Text) ->
    not is_word(Text, Start - 1) andalso not is_word(Text, Start + Length).

is_word(Text, At) when At < 0; At >= byte_size(Text) -> false;
is_word(Text, At) ->
    case binary:at(Text, At) of
        C when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9; C =:= $_; C >= 128 -> true;
        _ -> false
    end.

replaced(Text, From, []) -> [binary:part(Text, From, byte_size(Text) - From)];
replaced(Text, From, [{Start, Length} | Found]) ->
    [binary:part(Text, From, Start - From), sderl_actions_secret:mask()
     | replaced(Text, Start + Length, Found)].

-doc """
At most `Most` bytes of a text, without cookies; if the cut goes through a cookie, its first part is
masked, too. The mask may make the text longer again.
""".
-spec cut(binary(), non_neg_integer(), [binary()]) -> binary().
cut(Text, Most, Cookies) when byte_size(Text) =< Most -> hidden(Text, Cookies);
cut(Text, Most, Cookies) ->
    Window = binary:part(Text, 0, min(byte_size(Text), Most + ?LONGEST)),
    case [Start || {Start, Length} <- found(Window, Cookies),
                   Start < Most, Start + Length > Most] of
        [] -> hidden(binary:part(Text, 0, Most), Cookies);
        [Start | _] ->
            <<(hidden(binary:part(Text, 0, Start), Cookies))/binary,
              (sderl_actions_secret:mask())/binary>>
    end.

-doc """
A list without cookies in its runs of characters, of which at most `Most` items will be shown. It is
walked no further than that.
""".
-spec hidden_list(maybe_improper_list(), non_neg_integer(), [binary()]) -> maybe_improper_list().
hidden_list(List, _, []) -> List;
hidden_list(List, Most, _) when Most =< 0 -> List;
hidden_list([C | _] = List, Most, Cookies) when is_integer(C) ->
    case run(List, Most + ?LONGEST, []) of
        {[], [Number | Rest]} -> [Number | hidden_list(Rest, Most - 1, Cookies)];
        {Run, Rest} -> hidden_run(Run, length(Run), Rest, Most, Cookies)
    end;
hidden_list([Head | Rest], Most, Cookies) -> [Head | hidden_list(Rest, Most - 1, Cookies)];
hidden_list(End, _, _) -> End.

hidden_run(Run, Size, Rest, Most, Cookies) when Size =< Most ->
    Text = unicode:characters_to_binary(Run),
    Shown = case hidden(Text, Cookies) of
        Text -> Run;
        Hidden -> unicode:characters_to_list(Hidden)
    end,
    Shown ++ hidden_list(Rest, Most - Size, Cookies);
hidden_run(Run, _, _, Most, Cookies) ->
    Bytes = byte_size(unicode:characters_to_binary(lists:sublist(Run, Most))),
    unicode:characters_to_list(cut(unicode:characters_to_binary(Run), Bytes, Cookies)) ++ ['...'].

run([C | Rest], Left, Run)
  when Left > 0, is_integer(C), C >= 0, C < 16#D800; Left > 0, is_integer(C), C > 16#DFFF,
       C =< 16#10FFFF ->
    run(Rest, Left - 1, [C | Run]);
run(Rest, _, Run) -> {lists:reverse(Run), Rest}.
