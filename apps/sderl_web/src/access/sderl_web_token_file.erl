%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_token_file).
-moduledoc """
The file of tokens, which `bin/sderl tokens` and a running dashboard both change.

Only its owner may read it (mode 0600); one that others can read is refused. It is replaced at once,
so that nobody reads half of it. Whoever changes it holds a lock beside it, `FILE.lock`
(`m:sderl_web_lock`), from the reading to the writing, and waits for it 15 seconds at most.
""".

-include_lib("kernel/include/file.hrl").

-export([read/1, add/4, revoke/2, note_ends/2]).
-export_type([tokens/0]).

-type tokens() :: [sderl_web_token:token()].

-define(VERSION, 1).
-define(MOST, 1_000).
-define(MOST_BYTES, 1_048_576).
-define(LOCK_MS, 15_000).
%% How often a change begins anew because others took its lock over.
-define(TRIES, 5).

-doc "The tokens of a file, none where there is no file yet; an error in words.".
-spec read(file:filename_all()) -> {ok, tokens()} | {error, unicode:chardata()}.
read(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{type = regular, mode = Mode}} when Mode band 8#077 =/= 0 ->
            wrong("others may read or write ~ts (mode ~4.8.0b): run chmod 600 ~ts",
                  [File, Mode band 8#777, File]);
        {ok, #file_info{type = regular, size = Size}} when Size =< ?MOST_BYTES ->
            case file:read_file(File) of
                {ok, Text} -> parse(Text, File);
                {error, Reason} -> wrong("~ts: ~ts", [File, file:format_error(Reason)])
            end;
        {ok, #file_info{}} ->
            wrong("~ts is no file of tokens: name another file", [File]);
        {error, enoent} -> {ok, []};
        {error, Reason} -> wrong("~ts: ~ts", [File, file:format_error(Reason)])
    end.

parse(Text, File) ->
    maybe
        {ok, #{~"version" := ?VERSION, ~"tokens" := Listed}} ?= sderl_web_parse:value(Text),
        true ?= is_list(Listed),
        Read = [sderl_web_token:from_json(Token) || Token <- Listed],
        false ?= lists:member(error, Read),
        {ok, [Token || {ok, Token} <- Read]}
    else
        _ -> wrong("~ts is damaged, or no file of tokens: name another file, or remove it and make "
                   "new tokens", [File])
    end.

-doc """
Makes a token. Its name is unique among those that hold. Gives the text that its owner needs, which
is kept nowhere.
""".
-spec add(file:filename_all(), Name :: binary(), sderl_web_token:role(),
          Expires :: none | integer()) ->
    {ok, Text :: binary(), sderl_web_token:token()} | {error, unicode:chardata()}.
add(File, Name, Role, Expires) ->
    Now = sderl_mon_clock:machine_ms(),
    maybe
        ok ?= sderl_web_token:check_name(Name),
        true ?= Expires =:= none orelse Expires > Now,
        change(File, fun(Tokens) ->
            case [Id || #{name := Is, id := Id} = Token <- Tokens, Is =:= Name,
                        sderl_web_token:state(Token, Now) =:= active] of
                [] when length(Tokens) >= ?MOST ->
                    wrong("there are ~w tokens, which is the most: revoke some; one that has ended "
                          "is forgotten after 30 days", [?MOST]);
                [] ->
                    {Text, Token} = sderl_web_token:new(Name, Role, Expires, Now),
                    {ok, Tokens ++ [Token], {Text, Token}};
                [Id | _] ->
                    wrong("there is a token of the name ~ts, ~ts: revoke it, or take another name",
                          [Name, Id])
            end
        end)
    else
        false -> {error, "expires is past already: name a later time"};
        Other -> Other
    end.

-doc "Revokes the token of an id, or of a name that holds.".
-spec revoke(file:filename_all(), binary()) ->
    {ok, sderl_web_token:token()} | {error, not_found | unicode:chardata()}.
revoke(File, Which) ->
    Now = sderl_mon_clock:machine_ms(),
    Fits = fun(#{id := Id, name := Name} = Token) ->
        Id =:= Which orelse Name =:= Which andalso sderl_web_token:state(Token, Now) =:= active
    end,
    change(File, fun(Tokens) ->
        case lists:search(Fits, Tokens) of
            {value, #{id := Id, revoked := none} = Token} ->
                Revoked = Token#{revoked := Now},
                {ok, [case Is of #{id := Id} -> Revoked; _ -> Is end || Is <- Tokens], Revoked};
            {value, Token} -> {ok, Tokens, Token};
            false -> {error, not_found}
        end
    end).

-doc "Notes when tokens were seen to have expired; those that are not there any more are left out.".
-spec note_ends(file:filename_all(), #{Id :: binary() => Seen :: integer()}) ->
    ok | {error, unicode:chardata()}.
note_ends(File, Ends) ->
    Noted = fun(#{id := Id} = Token) ->
        case Ends of
            #{Id := Seen} -> sderl_web_token:end_at(Seen, Token);
            #{} -> Token
        end
    end,
    change(File, fun(Tokens) -> {ok, [Noted(Token) || Token <- Tokens], none} end).

change(File, Change) -> change(File, Change, ?TRIES).

%% One whose lock was taken over has changed nothing, and begins anew.
change(File, _, 0) ->
    wrong("~ts was not changed, because other programs took its lock over: try again", [File]);
change(File, Change, Tries) ->
    case try_to_change(File, Change) of
        taken_over -> change(File, Change, Tries - 1);
        Result -> Result
    end.

try_to_change(File, Change) ->
    maybe
        {ok, Lock} ?= lock(File),
        try
            maybe
                {ok, Tokens} ?= read(File),
                {ok, New, Result} ?= Change(kept(Tokens)),
                %% No file is made for no tokens.
                ok ?= case New of Tokens -> ok; _ -> written(File, New, Lock) end,
                case Result of
                    {Text, Token} -> {ok, Text, Token};
                    none -> ok;
                    Token -> {ok, Token}
                end
            end
        after
            sderl_web_lock:release(Lock)
        end
    end.

kept(Tokens) ->
    Now = sderl_mon_clock:machine_ms(),
    [sderl_web_token:note_end(Now, Token)
     || Token <- Tokens, not sderl_web_token:is_forgotten(Token, Now)].

lock(File) ->
    Lock = unicode:characters_to_binary([File, ".lock"]),
    case filelib:ensure_dir(File) of
        ok -> sderl_web_lock:take(Lock, ?LOCK_MS);
        {error, Reason} -> wrong("~ts: ~ts", [File, file:format_error(Reason)])
    end.

written(File, Tokens, Lock) ->
    New = [File, ".new"],
    Text = json:format(#{version => ?VERSION,
                         tokens => [sderl_web_token:to_json(Token) || Token <- Tokens]}),
    Written = maybe
        _ = file:delete(New),
        {ok, Device} ?= file:open(New, [write, exclusive, raw, binary]),
        %% Others cannot open it any more when it has anything in it.
        Result = maybe
            ok ?= file:change_mode(New, 8#600),
            ok ?= file:write(Device, Text),
            file:sync(Device)
        end,
        ok = file:close(Device),
        %% A file that was cut short on a full disk would only take room.
        _ = Result =/= ok andalso file:delete(New),
        ok ?= Result,
        true ?= sderl_web_lock:is_held(Lock),
        file:rename(New, File)
    end,
    case Written of
        ok -> ok;
        false -> taken_over;
        %% Whoever took it over writes.
        {error, Reason} when Reason =:= eexist; Reason =:= enoent -> taken_over;
        {error, Reason} -> wrong("~ts cannot be written: ~ts", [File, file:format_error(Reason)])
    end.

wrong(Format, Args) -> {error, io_lib:format(Format, Args)}.
