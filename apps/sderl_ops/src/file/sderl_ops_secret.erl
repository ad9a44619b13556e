%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_secret).
-moduledoc """
Secrets by reference. A file of operations, a revision and a plan have only the reference. The value
is read when an instance is laid out, and is passed on wrapped in a function, so that it is in no
crash report and no logged state.
""".

-include_lib("kernel/include/file.hrl").

-export([describe/1, resolve/1]).
-export_type([secret/0, value/0]).

-doc """
A variable of the service's environment, a file on its machine, or `NAME/KEY` of a Secret of
Kubernetes, which is never read here.
""".
-type secret() :: {env, binary()} | {file, binary()} | {secret, binary()}.

-type value() :: fun(() -> binary()).

-define(MOST_BYTES, 65536).

-doc "Where the secret is, for a person.".
-spec describe(secret()) -> unicode:chardata().
describe({env, Name}) -> ["the environment variable ", Name];
describe({file, Path}) -> ["the file ", Path];
describe({secret, Name}) -> ["the key ", Name, " of a Secret of Kubernetes"].

-doc """
Reads the secret. Line ends at the end of a file do not belong to it. A file that other users may
read is refused.
""".
-spec resolve(secret()) -> {ok, value()} | {error, unicode:chardata()}.
resolve({env, Name} = Secret) ->
    case os:getenv(binary_to_list(Name)) of
        false ->
            {error, [describe(Secret), " is not set where the service of operations runs: set it "
                     "there and start the service again, or name a file"]};
        "" ->
            {error, [describe(Secret), " is empty"]};
        Value ->
            wrap(unicode:characters_to_binary(Value))
    end;
resolve({secret, _} = Secret) ->
    {error, [describe(Secret), " can be read by pods alone: name a variable or a file"]};
resolve({file, Path} = Secret) ->
    maybe
        {ok, Mode} ?= read_mode(Path),
        ok ?= check_mode(Mode),
        {ok, Bytes} ?= file:read_file(Path),
        case drop_line_ends(Bytes) of
            <<>> -> {error, [describe(Secret), " is empty"]};
            Value -> wrap(Value)
        end
    else
        {error, Why} when is_atom(Why) ->
            {error, [describe(Secret), " cannot be read: ", file:format_error(Why)]};
        {error, Why} ->
            {error, [describe(Secret), Why]}
    end.

%% The secret need not be UTF-8.
drop_line_ends(Bytes) ->
    case byte_size(Bytes) - 1 of
        Last when Last >= 0 ->
            case Bytes of
                <<Before:Last/binary, $\n>> -> drop_line_ends(Before);
                <<Before:Last/binary, $\r>> -> drop_line_ends(Before);
                _ -> Bytes
            end;
        _ ->
            Bytes
    end.

read_mode(Path) ->
    case file:read_file_info(Path) of
        {ok, #file_info{type = regular, mode = Mode, size = Size}} when Size =< ?MOST_BYTES ->
            {ok, Mode};
        {ok, #file_info{type = regular}} ->
            {error, " is too large for a secret: at most 64 KiB"};
        {ok, _} ->
            {error, " is not a regular file"};
        {error, _} = Error ->
            Error
    end.

check_mode(Mode) when Mode band 8#007 =:= 0 -> ok;
check_mode(_) -> {error, " may be read by other users: take that away (chmod o= FILE)"}.

wrap(Value) -> {ok, fun() -> Value end}.
