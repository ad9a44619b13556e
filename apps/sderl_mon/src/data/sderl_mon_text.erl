%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_text).
-moduledoc "Texts for people, as UTF-8.".

-export([text/2, cut/2, natural/1]).

-export_type([key/0]).

-doc "As `io_lib:format/2`.".
-spec text(io:format(), [term()]) -> binary().
text(Format, Args) ->
    Text = unicode:characters_to_binary(io_lib:format(Format, Args)),
    true = is_binary(Text),
    Text.

-doc "What texts are sorted by.".
-opaque key() :: [binary() | non_neg_integer()].

-doc "A key by which texts are in the order in which people count: n2 before n10.".
-spec natural(binary()) -> key().
natural(Text) -> numbered(re:split(Text, "([0-9]+)")).

%% Between two texts is a number.
numbered([Plain, Digits | Rest]) -> [Plain, binary_to_integer(Digits) | numbered(Rest)];
numbered(Rest) -> Rest.

-doc """
At most so many bytes, never ending within a character, and nothing after a byte that is none.
""".
-spec cut(binary(), pos_integer()) -> binary().
cut(Text, Most) ->
    Cut = binary:part(Text, 0, min(byte_size(Text), Most)),
    case unicode:characters_to_binary(Cut) of
        %% A copy, so that a small part does not keep the whole alive.
        Good when is_binary(Good) -> binary:copy(Good);
        {_Why, Good, _Rest} -> Good
    end.
