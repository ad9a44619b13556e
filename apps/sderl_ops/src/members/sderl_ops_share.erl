%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_share).
-moduledoc """
Files that every member of a service needs: archives of releases, named by their checksums, and the
cookie that the service makes for its cluster. They are copied from other members over the links
between members, and written whole or not at all.
""".

-export([pull/3, pull_here/2, spread/3, spread/4, read/3, archive/2]).
-export([ensure_cookie/1, pull_cookie/2, write_secret/2]).
-export_type([limits/0]).

-doc """
In milliseconds: how long to wait until a majority has the files, and then for the other members.
""".
-type limits() :: #{pull := pos_integer(), rest := pos_integer()}.

-import(sderl_clock, [now_ms/0]).

-define(CHUNK, 1_048_576).
-define(CALL_MS, 60_000).
-define(LIMITS, #{pull => 900_000, rest => 10_000}).

-doc "The path of an archive.".
-spec archive(file:filename(), Sha :: binary()) -> file:filename_all().
archive(Folder, Sha) -> filename:join([Folder, "archives", <<Sha/binary, ".tar.gz">>]).

-doc "Copies missing archives here, each from the first of the members that has it.".
-spec pull(Folder :: file:filename(), [Sha :: binary()], From :: [node()]) ->
    ok | {error, unicode:chardata()}.
pull(Folder, Shas, From) ->
    case [Sha || Sha <- lists:usort(Shas), not filelib:is_regular(archive(Folder, Sha))] of
        [] ->
            use(Shas, Folder);
        Missing ->
            maybe
                ok = filelib:ensure_path(filename:join(Folder, "archives")),
                ok ?= pull_each(Missing, Folder, From),
                use(Shas, Folder)
            end
    end.

%% Marks archives as used, so that they are not deleted.
use(Shas, Folder) ->
    Now = calendar:local_time(),
    lists:foreach(fun(Sha) -> _ = file:change_time(archive(Folder, Sha), Now) end, Shas).

pull_each([], _, _) -> ok;
pull_each([Sha | Shas], Folder, From) ->
    case pull_one(Sha, Folder, From) of
        ok -> pull_each(Shas, Folder, From);
        none -> {error, ["no member that answers has the archive of release ", Sha]}
    end.

pull_one(_, _, []) ->
    none;
pull_one(Sha, Folder, [Node | Nodes]) ->
    Unique = integer_to_binary(erlang:unique_integer([positive])),
    Part = filename:join([Folder, "archives", <<".", Sha/binary, "-", Unique/binary>>]),
    Result = maybe
        {ok, Device} ?= file:open(Part, [write, raw, binary]),
        Copied = copy(Node, Sha, 0, Device, crypto:hash_init(sha256)),
        ok = file:close(Device),
        {ok, Sha} ?= Copied,
        file:rename(Part, archive(Folder, Sha))
    end,
    case Result of
        ok -> ok;
        _ ->
            _ = file:delete(Part),
            pull_one(Sha, Folder, Nodes)
    end.

copy(Node, Sha, At, Device, Sum) ->
    case call(Node, read, [archive, Sha, At]) of
        {ok, eof} ->
            {ok, binary:encode_hex(crypto:hash_final(Sum), lowercase)};
        {ok, Bytes} ->
            maybe
                ok ?= file:write(Device, Bytes),
                copy(Node, Sha, At + byte_size(Bytes), Device, crypto:hash_update(Sum, Bytes))
            end;
        {error, _} = Error ->
            Error
    end.

-doc "Reads a part of a file, for another member.".
-spec read(archive | cookie, binary(), non_neg_integer()) ->
    {ok, binary() | eof} | {error, term()}.
read(What, Sha, At) ->
    Folder = sderl_ops_membership:folder(),
    Path = case What of
               archive -> archive(Folder, filename:basename(Sha));
               cookie -> filename:join(Folder, "cookie")
           end,
    maybe
        {ok, Device} ?= file:open(Path, [read, raw, binary]),
        Result = file:pread(Device, At, ?CHUNK),
        ok = file:close(Device),
        case Result of
            eof -> {ok, eof};
            Other -> Other
        end
    end.

-doc "Makes the cookie of the cluster if there is none.".
-spec ensure_cookie(file:filename()) -> ok | {error, file:posix() | badarg | terminated}.
ensure_cookie(Folder) ->
    File = filename:join(Folder, "cookie"),
    case filelib:file_size(File) of
        0 -> write_secret(File, binary:encode_hex(crypto:strong_rand_bytes(20), lowercase));
        _ -> ok
    end.

-doc "Copies the cookie that the service made for its cluster here, over an earlier one.".
-spec pull_cookie(file:filename(), From :: node()) -> ok | {error, term()}.
pull_cookie(Folder, From) ->
    maybe
        {ok, Cookie} ?= call(From, read, [cookie, <<>>, 0]),
        write_secret(filename:join(Folder, "cookie"), Cookie)
    end.

-doc "Writes a file that only its user can read, whole or not at all.".
-spec write_secret(file:filename(), binary()) -> ok | {error, file:posix() | badarg | terminated}.
write_secret(File, Bytes) ->
    Part = File ++ ".part",
    _ = file:delete(Part),
    maybe
        ok ?= file:write_file(Part, <<>>, [exclusive]),
        ok ?= file:change_mode(Part, 8#600),
        ok ?= file:write_file(Part, Bytes, [sync]),
        ok ?= file:change_mode(Part, 8#400),
        file:rename(Part, File)
    end.

-doc """
Has the other members copy archives of this one. A majority of all members has to have them; members
that do not answer copy them when they need them.
""".
-spec spread([Sha :: binary()], Others :: [node()], Needed :: non_neg_integer()) ->
    ok | {error, unicode:chardata()}.
spread(Shas, Others, Needed) -> spread(Shas, Others, Needed, ?LIMITS).

-doc "Like `spread/3`, with other limits.".
-spec spread([Sha :: binary()], Others :: [node()], Needed :: non_neg_integer(), limits()) ->
    ok | {error, unicode:chardata()}.
spread(Shas, Others, Needed, #{pull := Pull, rest := Rest}) ->
    Asked = lists:foldl(fun(Node, Requests) ->
        erpc:send_request(Node, ?MODULE, pull_here, [Shas, node()], Node, Requests)
    end, erpc:reqids_new(), Others),
    Have = await_pulled(Asked, 0, {Needed, Rest}, now_ms() + Pull),
    case Have >= Needed of
        true -> ok;
        false ->
            {error, io_lib:format("no majority of the ops members has the releases: ~b of ~b "
                                  "others took them, and ~b have to",
                                  [Have, length(Others), Needed])}
    end.

%% When enough members have them, the others are waited for only a short time.
await_pulled(Asked, Have, {Needed, Rest} = Enough, Deadline) ->
    Until = case Have >= Needed of
                true -> min(Deadline, now_ms() + Rest);
                false -> Deadline
            end,
    try erpc:receive_response(Asked, {abs, Until}, true) of
        {ok, _, Left} -> await_pulled(Left, Have + 1, Enough, Until);
        {{error, Why}, Node, Left} -> not_pulled(Why, Node, Left, Have, Enough, Until);
        no_request -> Have
    catch
        error:{erpc, timeout} -> Have;
        _:{Why, Node, Left} -> not_pulled(Why, Node, Left, Have, Enough, Until)
    end.

not_pulled(Why, Node, Left, Have, Enough, Until) ->
    logger:warning("sderl_ops: ~ts did not take the releases: ~0tP", [Node, Why, 12]),
    await_pulled(Left, Have, Enough, Until).

-doc "Like `pull/3`, called by another member.".
-spec pull_here([Sha :: binary()], From :: node()) -> ok | {error, unicode:chardata()}.
pull_here(Shas, From) -> pull(sderl_ops_membership:folder(), Shas, [From]).

call(Node, Function, Args) ->
    try erpc:call(Node, ?MODULE, Function, Args, ?CALL_MS)
    catch Class:Why -> {error, {Class, Why}} end.
