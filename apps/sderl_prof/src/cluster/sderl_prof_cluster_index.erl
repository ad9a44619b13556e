%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_cluster_index).
-moduledoc """
The index of a recording of several nodes: `cluster.json` in a folder that has one recording for
each node. It says which nodes these are, where each has its files, how its clock stands to those of
the others, and what went wrong.

Nothing in it becomes an atom, and no name in it leads out of the folder.
""".

-export([new/2, put_node/2, write/2, read/1, remove/1, is_cluster/1, folder/2, folder_name/1]).
-export([peers/1, format_error/1]).
-export_type([index/0, entry/0, reason/0]).

-define(FILE_NAME, "cluster.json").
-define(STATES, #{~"waiting" => waiting, ~"records" => records, ~"recorded" => recorded,
                  ~"failed" => failed}).

-doc """
Of one node. `state`: it has not begun, it has begun and nothing is known of its end, it has ended
in order, or it did not begin or could not be asked at the end. `dir` is the folder on the node's
machine. Times are of the node's own clock.
""".
-type entry() :: #{
    node := binary(),
    state := waiting | records | recorded | failed,
    error := binary() | null,
    dir := binary(),
    groups := [binary()],
    clock := sderl_prof_clock:alignment() | null,
    alias_bits := pos_integer() | null,
    began := integer() | null,
    ended_at := integer() | null,
    ended := binary() | null,
    written := non_neg_integer() | null,
    fetched := boolean()
}.
-type index() :: #{began_wall := integer(), items := [binary()], nodes := [entry()]}.
-type reason() :: {index, file:filename_all(), term()}.

-doc "Of nodes that have not begun; each with its folder on its machine.".
-spec new(Items :: [binary()], [{node(), file:filename_all()}]) -> index().
new(Items, Nodes) ->
    #{began_wall => erlang:system_time(nanosecond), items => Items,
      nodes => [#{node => atom_to_binary(Node), state => waiting, error => null,
                  dir => unicode:characters_to_binary(Dir), groups => [], clock => null,
                  alias_bits => null, began => null, ended_at => null, ended => null,
                  written => null, fetched => false} || {Node, Dir} <- Nodes]}.

-doc "With this entry in the place of the node's own.".
-spec put_node(entry(), index()) -> index().
put_node(#{node := Node} = Entry, #{nodes := Nodes} = Index) ->
    Index#{nodes := [case Old of #{node := Node} -> Entry; _ -> Old end || Old <- Nodes]}.

-doc "Whether a folder is a recording of several nodes.".
-spec is_cluster(file:filename_all()) -> boolean().
is_cluster(Dir) -> filelib:is_regular(filename:join(Dir, ?FILE_NAME)).

-doc "Where a node's recording is in the folder.".
-spec folder(file:filename_all(), entry()) -> file:filename_all().
folder(Dir, #{node := Node}) -> filename:join(Dir, folder_name(Node)).

-doc "What the folder of a node is called. Names of nodes are names of files.".
-spec folder_name(node() | binary()) -> string().
folder_name(Node) when is_atom(Node) -> atom_to_list(Node);
folder_name(Node) ->
    Name = unicode:characters_to_list(Node),
    true = is_list(Name),
    Name.

-doc "How each node makes its aliases, where that is known (`m:sderl_prof_event`).".
-spec peers(index()) -> sderl_prof_event:peers().
peers(#{nodes := Nodes}) ->
    #{Node => Bits || #{node := Node, alias_bits := Bits} <- Nodes, is_integer(Bits)}.

-doc "Writes the index into the folder, which is made.".
-spec write(file:filename_all(), index()) -> ok | {error, reason()}.
write(Dir, Index) ->
    Name = filename:join(Dir, ?FILE_NAME),
    Aside = filename:join(Dir, ?FILE_NAME ++ ".new"),
    maybe
        ok ?= filelib:ensure_path(Dir),
        ok ?= file:write_file(Aside, [json:format(Index#{version => 1})]),
        ok ?= file:rename(Aside, Name)
    else
        {error, Why} ->
            _ = file:delete(Aside, [raw]),
            {error, {index, Name, Why}}
    end.

-doc "Reads the index of a folder.".
-spec read(file:filename_all()) -> {ok, index()} | {error, reason()}.
read(Dir) ->
    Name = filename:join(Dir, ?FILE_NAME),
    case file:read_file(Name) of
        {ok, Text} ->
            try
                {ok, decoded(json:decode(Text))}
            catch
                error:_ -> {error, {index, Name, damaged}}
            end;
        {error, Why} -> {error, {index, Name, Why}}
    end.

-doc "Removes the index, and the folder where nothing else is in it.".
-spec remove(file:filename_all()) -> ok.
remove(Dir) ->
    _ = file:delete(filename:join(Dir, ?FILE_NAME), [raw]),
    _ = file:del_dir(Dir),
    ok.

-doc "What is wrong, and what to do.".
-spec format_error(reason()) -> unicode:chardata().
format_error({index, Name, damaged}) ->
    io_lib:format("~ts is damaged; the recording of each node can still be read for itself, as the "
                  "folder of that node", [Name]);
format_error({index, Name, Why}) ->
    io_lib:format("~ts: ~ts", [Name, file:format_error(Why)]).

%% ---------------------------------------------------------------- what is read is checked

decoded(#{~"version" := 1, ~"began_wall" := Wall, ~"items" := Items, ~"nodes" := Nodes})
  when is_integer(Wall) ->
    true = is_list_of(fun erlang:is_binary/1, Items),
    #{began_wall => Wall, items => Items, nodes => [entry(Node) || Node <- Nodes]}.

entry(#{~"node" := Node, ~"state" := State, ~"error" := Error, ~"dir" := Dir,
        ~"groups" := Groups, ~"clock" := Clock, ~"alias_bits" := Bits, ~"began" := Began,
        ~"ended_at" := EndedAt, ~"ended" := Ended, ~"written" := Written,
        ~"fetched" := Fetched})
  when is_binary(Dir), is_boolean(Fetched) ->
    true = is_name(Node),
    true = is_list_of(fun erlang:is_binary/1, Groups),
    true = lists:all(fun(N) -> N =:= null orelse is_integer(N) end,
                     [Bits, Began, EndedAt, Written]),
    true = Bits =:= null orelse Bits > 3 andalso Bits < 29,
    true = lists:all(fun(T) -> T =:= null orelse is_binary(T) end, [Error, Ended]),
    #{node => Node, state => map_get(State, ?STATES), error => Error, dir => Dir,
      groups => Groups, clock => clock(Clock), alias_bits => Bits, began => Began,
      ended_at => EndedAt, ended => Ended, written => Written, fetched => Fetched}.

is_list_of(Is, List) -> is_list(List) andalso lists:all(Is, List).

%% It is the name of a folder, too.
is_name(Node) ->
    is_binary(Node) andalso
        re:run(Node, ~"^[^/\\\\\\0]+@[^/\\\\\\0]+$", [{capture, none}]) =:= match.

clock(null) -> null;
clock(#{~"first" := First, ~"last" := Last}) ->
    #{first => sample(First), last => case Last of ~"none" -> none; _ -> sample(Last) end}.

sample(#{~"at" := At, ~"ahead" := Ahead, ~"error" := Error})
  when is_integer(At), is_integer(Ahead), is_integer(Error), Error >= 0 ->
    #{at => At, ahead => Ahead, error => Error}.
