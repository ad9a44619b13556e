%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_folder_lock).
-moduledoc """
Says of a folder that a program of this machine writes there.

The file has the number of the program's process and when that began. So one that was left by a
program which was killed is no obstacle, also when the number is another program's by now.

A file is made with its text, or not at all, and never written over while it may be a program's. So
of many programs that come at the same instant one has the folder. One that finds the file of a
program that has ended makes a second file, whose name says after whom it comes, and only one
program can make that; then it puts its own text in the place of the first.
""".

-export([take/1, leave/1, holder/1]).
-export_type([lock/0]).

-type lock() :: file:filename_all().

%% Each time another program was faster.
-define(MOST_TRIES, 1_000).

-doc "Errors: a sentence that says who has it.".
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
            %% Nobody else can be the last: whoever comes finds this program behind all of them.
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

%% Another program may have put its text in the first place meanwhile: then no way leads here.
claimed(Path, Lock, Fresh, Own, Tries) ->
    _ = case last(Lock, Own) of
        {held, Own, _, _} -> ok;
        _ -> file:delete(Path)
    end,
    claim(Lock, Fresh, Own, Tries).

%% A file system without links: two programs at the same instant are not kept apart there.
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

-doc "The process of another program that has it, if one has.".
-spec holder(file:filename_all()) -> none | {ok, Pid :: binary()}.
holder(Given) ->
    Own = own(),
    case last(unicode:characters_to_binary(Given), Own) of
        {held, Other, _, _} when Other =/= Own -> {ok, hd(words(Other))};
        _ -> none
    end.

-doc "It may be another's again.".
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
