%% SPDX-License-Identifier: Apache-2.0
-module(sderl_kept).
-moduledoc """
What a node keeps of its groups over a restart: one small file for each group, in the folder that
the configuration's `state_dir` names.

A file holds the group's name and uid, its versioned membership and the highest epoch that this node
promised, whether it decides by majority, or that this node left the group. It is written when one
of these changes and never for an operation on a name, beside the old one and then renamed, so that
a crash leaves the one or the other.

A file begins with a mark, the version of the format, a checksum, and the name of its node, since
nodes of one machine may share the folder. Its own name is a hash of node and group. A file that is
damaged, of another version or not under its name is ignored, reported and left where it is.
""".
-export([write/2, read/2, file/3, is_there/3, forget_left/4]).
-export_type([entry/0, ignored/0, reason/0, failure/0]).

-define(MARK, "sderl state\n").
-define(FORMAT, 1).
-define(EXTENSION, ".state").
%% Far more than a membership of thousands of nodes needs.
-define(MOST_BYTES, 16_777_216).

-doc """
A group of a node. `configured`: its launch configuration has the group under this uid. `epoch` is
the highest counter. `left` says when (system time, seconds) and why the node left.
""".
-type entry() :: #{
    node := node(),
    group := term(),
    uid := binary(),
    configured := boolean(),
    membership := sderl_membership:t(),
    epoch := integer(),
    left := no | {removed | deleted, At :: integer()},
    consistency := sderl_options:consistency(),
    answer := sderl_options:answer()
}.

-doc "A file that is ignored, and why.".
-type ignored() :: {File :: file:filename_all(), reason()}.
-type reason() :: not_a_state_file | damaged | misnamed | {version, integer()} | failure().
-doc "What the file system says.".
-type failure() :: file:posix() | badarg | terminated | system_limit.

-doc "Writes the file of an entry. When this returns it is on the disk.".
-spec write(file:name_all(), entry()) -> ok | {error, {file:filename_all(), failure()}}.
write(Dir, #{node := Node, group := Group} = Entry) ->
    File = file(Dir, Node, Group),
    Content = term_to_binary(Entry),
    Data = [?MARK, <<?FORMAT>>, erlang:md5(Content), Content],
    case replace(File, Data) of
        {error, enoent} ->
            _ = filelib:ensure_path(Dir),
            told(File, replace(File, Data));
        Result -> told(File, Result)
    end.

replace(File, Data) ->
    New = unicode:characters_to_list([File, ".new"]),
    maybe
        ok ?= file:write_file(New, Data, [raw, sync]),
        file:rename(New, File)
    end.

told(_, ok) -> ok;
told(File, {error, Why}) -> {error, {File, Why}}.

-doc "The entries of a node, and the files that are not used. A folder that is not there is empty.".
-spec read(file:name_all(), node()) -> {[entry()], [ignored()]}.
read(Dir, Node) ->
    case file:list_dir(Dir) of
        {ok, Names} ->
            Files = [filename:join(Dir, N) || N <- lists:sort(Names), lists:suffix(?EXTENSION, N)],
            Read = [{F, read_file(F)} || F <- Files],
            {[E || {_, {ok, #{node := Of} = E}} <- Read, Of =:= Node],
             [{F, Why} || {F, {error, Why}} <- Read]};
        {error, enoent} -> {[], []};
        {error, Why} -> {[], [{Dir, Why}]}
    end.

read_file(File) ->
    maybe
        ok ?= sized(filelib:file_size(File)),
        {ok, Data} ?= file:read_file(File),
        {ok, #{node := Node, group := Group} = Entry} ?= parsed(Data),
        ok ?= named(unicode:characters_to_list(filename:basename(File)), name(Node, Group)),
        {ok, Entry}
    end.

sized(Bytes) when Bytes =< ?MOST_BYTES -> ok;
sized(_) -> {error, not_a_state_file}.

named(Name, Name) -> ok;
named(_, _) -> {error, misnamed}.

parsed(<<?MARK, ?FORMAT, Sum:16/binary, Content/binary>>) ->
    case erlang:md5(Content) of
        Sum -> entry(Content);
        _ -> {error, damaged}
    end;
parsed(<<?MARK, Version, _/binary>>) when Version =/= ?FORMAT -> {error, {version, Version}};
parsed(<<?MARK, _/binary>>) -> {error, damaged};
parsed(_) -> {error, not_a_state_file}.

%% The node wrote it itself: names of nodes in it become atoms as those in sys.config do.
entry(Content) ->
    try binary_to_term(Content) of
        #{node := Node, group := _, uid := Uid, configured := Configured,
          membership := Membership, epoch := Epoch, left := Left} = Entry
          when is_atom(Node), is_binary(Uid), is_boolean(Configured),
               is_map(Membership), is_integer(Epoch) ->
            %% Files of earlier versions lack the key.
            Consistency = maps:get(consistency, Entry, available),
            Answer = maps:get(answer, Entry, committed),
            case is_left(Left)
                andalso sderl_check:is_consistency(Consistency)
                andalso sderl_check:is_answer(Answer)
                andalso lists:all(fun is_member/1, maps:to_list(Membership))
            of
                true -> {ok, Entry#{consistency => Consistency, answer => Answer}};
                false -> {error, damaged}
            end;
        _ -> {error, damaged}
    catch
        error:badarg -> {error, damaged}
    end.

is_left(no) -> true;
is_left({Why, At}) -> (Why =:= removed orelse Why =:= deleted) andalso is_integer(At);
is_left(_) -> false.

is_member({Node, {Counter, At}}) when is_atom(Node), is_integer(Counter), is_integer(At) ->
    Counter > 0 andalso At >= 0;
is_member(_) -> false.

-doc "Deletes the file that says that a node left a group, if it still says so.".
-spec forget_left(file:name_all(), node(), term(), binary()) -> ok.
forget_left(Dir, Node, Group, Uid) ->
    File = file(Dir, Node, Group),
    case read_file(File) of
        {ok, #{uid := Uid, left := {_, _}}} -> _ = file:delete(File), ok;
        _ -> ok
    end.

-doc """
Whether the node has a file of the group, even a damaged one or one of a former group of that name.
True for a folder that cannot be read.
""".
-spec is_there(file:name_all(), node(), term()) -> boolean().
is_there(Dir, Node, Group) -> file:read_file_info(file(Dir, Node, Group)) =/= {error, enoent}.

-doc "The file of a node's group.".
-spec file(file:name_all(), node(), term()) -> file:filename_all().
file(Dir, Node, Group) -> filename:join(Dir, name(Node, Group)).

name(Node, Group) ->
    Hash = erlang:md5(term_to_binary({Node, Group}, [{minor_version, 2}, deterministic])),
    binary_to_list(binary:encode_hex(Hash, lowercase)) ++ ?EXTENSION.
