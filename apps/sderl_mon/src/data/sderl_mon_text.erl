%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_text).
-moduledoc "Texts for people, as UTF-8.".

-export([text/2, cut/2]).

-doc "As `io_lib:format/2`.".
-spec text(io:format(), [term()]) -> binary().
text(Format, Args) ->
    Text = unicode:characters_to_binary(io_lib:format(Format, Args)),
    true = is_binary(Text),
    Text.

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
