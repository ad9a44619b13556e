%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_folder_lock).
-moduledoc """
Says of a folder that a program of this machine writes there.

The file has the number of the program's process and when that began. So one that was left by a
program which was killed is no obstacle, also when the number is another program's by now.
""".

-export([take/1, leave/1, holder/1]).
-export_type([lock/0]).

-opaque lock() :: binary().

-doc "Errors: a sentence that says who has it.".
-spec take(file:filename_all()) -> {ok, lock()} | {error, unicode:chardata()}.
take(Given) ->
    File = unicode:characters_to_binary(Given),
    Own = own(),
    case file:read_file(File) of
        {ok, Own} -> {ok, File};
        {ok, Other} ->
            case is_alive(Other) of
                true ->
                    [Pid | _] = words(Other),
                    {error, [filename:dirname(File), " is written by process ", Pid,
                             ": name a folder that no other monitoring node has"]};
                false -> write(File, Own)
            end;
        {error, _} -> write(File, Own)
    end.

-doc "The process of another program that has it, if one has.".
-spec holder(file:filename_all()) -> none | {ok, Pid :: binary()}.
holder(Given) ->
    Own = own(),
    case file:read_file(unicode:characters_to_binary(Given)) of
        {ok, Own} -> none;
        {ok, Other} ->
            case is_alive(Other) of
                true -> {ok, hd(words(Other))};
                false -> none
            end;
        {error, _} -> none
    end.

write(File, Own) ->
    case file:write_file(File, Own) of
        ok -> {ok, File};
        {error, Reason} -> {error, [File, ": ", file:format_error(Reason)]}
    end.

-doc "It may be another's again.".
-spec leave(lock()) -> ok.
leave(File) ->
    _ = file:delete(File),
    ok.

own() ->
    Pid = unicode:characters_to_binary(os:getpid()),
    <<Pid/binary, " ", (began(Pid))/binary, "\n">>.

is_alive(Text) ->
    case words(Text) of
        [Pid, Began] when Began =/= <<"unknown">> -> began(Pid) =:= Began;
        _ -> false
    end.

words(Text) -> [Word || Word <- re:split(Text, "[ \n]+"), Word =/= <<>>].

%% Where the system does not tell, a lock that was left is one that anybody may take.
began(Pid) ->
    IsNumber = re:run(Pid, "\\A[0-9]{1,10}\\z", [{capture, none}]) =:= match,
    case IsNumber andalso file:read_file(<<"/proc/", Pid/binary, "/stat">>) of
        {ok, Stat} ->
            %% The name of the program, in brackets, may have anything in it. One that has ended
            %% (state Z or X) is in the table until its parent asks.
            case words(lists:last(binary:split(Stat, <<")">>, [global]))) of
                [State | _] = Fields when State =/= <<"Z">>, State =/= <<"X">>,
                                          length(Fields) >= 20 -> lists:nth(20, Fields);
                _ -> <<"unknown">>
            end;
        _ -> <<"unknown">>
    end.
