%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_folder_lock).
-moduledoc """
A lock file that says which program of this machine writes in a folder.

The file has the program's process number and when that process began. So the file of a program that
was killed is no obstacle, even if another program has the number by now.

A lock file appears with its text at once (a link to a finished file), and is not overwritten while
its program may live. So of many programs that come at the same instant one gets the folder. A
program that finds the file of an ended one makes a second file, whose name contains a hash of the
first; only one program can make that. Then it replaces the first file by its own.
""".

-export([take/1, leave/1, holder/1]).
-export_type([lock/0]).

-type lock() :: file:filename_all().

%% A try fails when another program was faster.
-define(MOST_TRIES, 1_000).

-doc "Takes the lock. Errors: a sentence that says which process has it.".
-spec take(file:filename_all()) -> {ok, lock()} | {error, unicode:chardata()}.
take(Given) ->
    Lock = unicode:characters_to_binary(Given),
    Own = own(),
    case last(Lock, Own) of
        {held, Own, Lock, _} -> {ok, Lock};
        {held, Other, _, _} when Other =/= Own -> held(Lock, Other);
        {error, Reason} -> failed(Lock, Reason);
        _ -> take(Lock, Own)
    end.

take(Lock, Own) ->
    Unique = integer_to_binary(erlang:unique_integer([positive])),
    Fresh = <<Lock/binary, ".", (hash(Own))/binary, "-", Unique/binary>>,
    try file:write_file(Fresh, Own) of
        ok -> claim(Lock, Fresh, Own, ?MOST_TRIES);
        {error, Reason} -> failed(Lock, Reason)
    after
        file:delete(Fresh)
    end.

claim(Lock, _, _, 0) -> failed(Lock, eexist);
claim(Lock, Fresh, Own, Tries) ->
    case last(Lock, Own) of
        {held, Own, Lock, _} -> {ok, Lock};
        {held, Own, Path, Before} ->
            %% No other program can be last: each finds this program at the end of the chain.
            case file:rename(Fresh, Lock) of
                ok ->
                    lists:foreach(fun file:delete/1, lists:delete(Lock, Before)),
                    {ok, Lock};
                {error, Reason} ->
                    _ = file:delete(Path),
                    failed(Lock, Reason)
            end;
        {held, Other, _, _} -> held(Lock, Other);
        {free, Path} ->
            case file:make_link(Fresh, Path) of
                ok -> claimed(Path, Lock, Fresh, Own, Tries - 1);
                {error, eexist} -> claim(Lock, Fresh, Own, Tries - 1);
                {error, No} when No =:= enotsup; No =:= eopnotsupp; No =:= enosys; No =:= eperm ->
                    write(Lock, Own);
                {error, Reason} -> failed(Lock, Reason)
            end;
        {error, Reason} -> failed(Lock, Reason)
    end.

%% Another program may have replaced the first file meanwhile: then this file is in no chain.
claimed(Path, Lock, Fresh, Own, Tries) ->
    _ = case last(Lock, Own) of
        {held, Own, _, _} -> ok;
        _ -> file:delete(Path)
    end,
    claim(Lock, Fresh, Own, Tries).

%% On a file system without links two programs at the same instant may both get the lock.
write(Lock, Own) ->
    case file:write_file(Lock, Own) of
        ok -> {ok, Lock};
        {error, Reason} -> failed(Lock, Reason)
    end.

held(Lock, Other) ->
    [Pid | _] = words(Other),
    {error, [filename:dirname(Lock), " is written by process ", Pid,
             ": name a folder that no other monitoring node has"]}.

failed(Lock, Reason) -> {error, [Lock, ": ", file:format_error(Reason)]}.

-doc "The process of another program that has the lock, if there is one.".
-spec holder(file:filename_all()) -> none | {ok, Pid :: binary()}.
holder(Given) ->
    Own = own(),
    case last(unicode:characters_to_binary(Given), Own) of
        {held, Other, _, _} when Other =/= Own -> {ok, hd(words(Other))};
        _ -> none
    end.

-doc "Gives the lock back.".
-spec leave(lock()) -> ok.
leave(Lock) ->
    Own = own(),
    _ = case file:read_file(Lock) of
        {ok, Own} -> file:delete(Lock);
        _ -> ok
    end,
    ok.

%% The file of the program that has the lock, and those of ended programs before it; or where the
%% file of the next one goes.
last(Lock, Own) -> last(Lock, Lock, Own, []).

last(Path, Lock, Own, Before) ->
    case file:read_file(Path) of
        {ok, Own} -> {held, Own, Path, [Path | Before]};
        {ok, Other} ->
            case is_alive(Other) of
                true -> {held, Other, Path, [Path | Before]};
                false -> last(<<Lock/binary, ".after-", (hash(Other))/binary>>, Lock, Own,
                              [Path | Before])
            end;
        {error, enoent} -> {free, Path};
        {error, _} = Error -> Error
    end.

hash(Text) -> binary:encode_hex(erlang:md5(Text), lowercase).

own() ->
    Pid = unicode:characters_to_binary(os:getpid()),
    <<Pid/binary, " ", (began(Pid))/binary, "\n">>.

is_alive(Text) ->
    case words(Text) of
        [Pid, Began] when Began =/= <<"unknown">> -> began(Pid) =:= Began;
        _ -> false
    end.

words(Text) -> [Word || Word <- re:split(Text, "[ \n]+"), Word =/= <<>>].

%% On a system without /proc any lock counts as left behind, and may be taken.
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
