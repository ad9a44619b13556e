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

-doc "A sort key.".
-opaque key() :: [binary() | non_neg_integer()].

-doc "The key that sorts texts in natural order: n2 before n10.".
-spec natural(binary()) -> key().
natural(Text) -> numbered(re:split(Text, "([0-9]+)")).

%% Texts and numbers alternate.
numbered([Plain, Digits | Rest]) -> [Plain, binary_to_integer(Digits) | numbered(Rest)];
numbered(Rest) -> Rest.

-doc """
At most this many bytes, ending neither within a character nor after bytes that are not UTF-8.
""".
-spec cut(binary(), pos_integer()) -> binary().
cut(Text, Most) ->
    Cut = binary:part(Text, 0, min(byte_size(Text), Most)),
    case unicode:characters_to_binary(Cut) of
        %% A copy, so that a small part does not keep the whole alive.
        Good when is_binary(Good) -> binary:copy(Good);
        {_Why, Good, _Rest} -> Good
    end.
