%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_text).
-moduledoc "The probe's texts of terms: always bounded.".

-export([id/1, text/1, text/2, cut/2, own_pid/1]).

-doc "The id of a group, or of another term, as everywhere in the monitoring.".
-spec id(term()) -> binary().
id(Term) -> cut(io_lib:format("~0tp", [Term]), 255).

-doc "A term, at most 200 bytes of it.".
-spec text(term()) -> binary().
text(MFA = {M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    cut(io_lib:format("~ts:~ts/~b", tuple_to_list(MFA)), 120);
text(Term) -> cut(io_lib:format("~0tP", [Term, 20]), 200).

-doc """
A process as its own node prints it: with 0 as the first number, also for another node's process.
""".
-spec own_pid(pid()) -> binary().
own_pid(Pid) ->
    [_, Rest] = string:split(pid_to_list(Pid), "."),
    list_to_binary(["<0.", Rest]).

-doc "As `io_lib:format/2`, at most 400 bytes.".
-spec text(string(), [term()]) -> binary().
text(Format, Args) -> cut(io_lib:format(Format, Args), 400).

-doc "At most so many bytes of a text, as a binary, and no half character.".
-spec cut(unicode:chardata(), pos_integer()) -> binary().
cut(Text, Max) ->
    case unicode:characters_to_binary(Text) of
        Short when is_binary(Short), byte_size(Short) =< Max -> Short;
        Long when is_binary(Long) ->
            case unicode:characters_to_binary(binary:part(Long, 0, Max)) of
                {incomplete, Whole, _} -> Whole;
                Whole when is_binary(Whole) -> Whole
            end;
        _ -> <<"?">>
    end.
