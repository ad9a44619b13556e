%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_discover).
-moduledoc """
Finds the nodes of a running cluster from one of them, and asks each what it is. It runs in an envoy
(`m:sderl_ops_envoy`), over hidden links; the nodes need nothing but OTP.

From a node it goes on to the nodes that this one is linked to, the members of its groups, and the
nodes of other groups that it knows. A node that does not answer in time, or dies meanwhile, is
listed with the reason. Names become atoms here and nowhere else.
""".

-export([from/1, machine/1]).
-export_type([fact/0, found/0, why/0]).

-doc """
What a node says of itself. `release` is that of its boot script, `outside` are the folders of its
code path that are not OTP's own, `root` is OTP's. `machine` is equal for nodes on one machine.
""".
-type fact() :: #{
    node := binary(),
    otp := binary(),
    release := {Name :: binary(), Version :: binary()},
    root := binary(),
    scripts := [binary()],
    outside := [binary()],
    applications := [binary()],
    labels := #{binary() => binary()},
    config := boolean(),
    heart := boolean(),
    machine := binary(),
    groups := #{Group :: binary() => [Node :: binary()]},
    consistency := #{Group :: binary() => available | majority},
    unnamed := [binary()],
    library := boolean()
}.
-type found() :: #{nodes := #{binary() => fact()}, lost := #{binary() => why()}}.
-type why() ::
    unknown_host | no_port_mapper | not_there | no_answer | refused | ended | late.

-define(CALL_MS, 5_000).
-define(NODE_MS, 15_000).
-define(AT_ONCE, 32).
-define(MOST_NODES, 5_000).

%% Processes that answer with their exit reason.
-dialyzer({nowarn_function, [begin_look/1]}).

-doc "All nodes that are found; an error if the first one cannot be asked.".
-spec from(Seed :: binary()) -> {ok, found()} | {error, why()}.
from(Seed) ->
    case look_at_all([Seed]) of
        #{Seed := {ok, Fact, Near}} ->
            {ok, follow(Near, #{nodes => #{Seed => Fact}, lost => #{}})};
        #{Seed := {error, Why}} ->
            {error, Why}
    end.

follow(Near, #{nodes := Nodes, lost := Lost} = Found) ->
    New = [Node || Node <- lists:usort(Near), not is_map_key(Node, Nodes),
                   not is_map_key(Node, Lost)],
    Room = max(0, ?MOST_NODES - map_size(Nodes)),
    case lists:sublist(New, Room) of
        [] -> Found;
        Next ->
            Looks = look_at_all(Next),
            follow(lists:append([Further || _ := {ok, _, Further} <- Looks]),
                   #{nodes => maps:merge(Nodes, #{N => Fact || N := {ok, Fact, _} <- Looks}),
                     lost => maps:merge(Lost, #{N => Why || N := {error, Why} <- Looks})})
    end.

%% ---------------------------------------------------------------- several nodes

look_at_all([]) -> #{};
look_at_all(Nodes) ->
    {Now, Later} = lists:split(min(?AT_ONCE, length(Nodes)), Nodes),
    Looks = [{Node, begin_look(Node)} || Node <- Now],
    Deadline = sderl_clock:now_ms() + ?NODE_MS,
    maps:merge(#{Node => await_look(Look, Deadline) || {Node, Look} <- Looks}, look_at_all(Later)).

begin_look(Node) -> spawn_monitor(fun() -> exit({look, look_at(Node)}) end).

await_look({Pid, Monitor}, Deadline) ->
    receive
        {'DOWN', Monitor, process, Pid, {look, Answer}} -> Answer;
        {'DOWN', Monitor, process, Pid, _} -> {error, ended}
    after max(0, Deadline - sderl_clock:now_ms()) ->
        exit(Pid, kill),
        _ = demonitor(Monitor, [flush]),
        {error, late}
    end.

%% ---------------------------------------------------------------- one node

look_at(Name) ->
    Node = binary_to_atom(Name),
    case sderl_ops_nodes:connect(Node) of
        ok -> ask(Name, Node);
        {error, _} -> {error, unreached(Name)}
    end.

unreached(Name) ->
    case sderl_ops_nodes:mapped(Name) of
        yes -> refused;
        no -> not_there;
        unknown_host -> unknown_host;
        unknown -> no_port_mapper
    end.

ask(Name, Node) ->
    try
        Info = library(Node),
        Groups = groups(call(Node, s_group, own_s_groups, [], [])),
        {Named, Unnamed} = lists:partition(fun({Group, _}) -> is_atom(Group) end, Groups),
        Root = call(Node, code, root_dir, []),
        Release = call(Node, init, script_id, []),
        Fact = #{
            node => Name,
            otp => text(call(Node, erlang, system_info, [otp_release])),
            release => release(Release),
            root => text(Root),
            scripts => scripts(Node, Root, Release),
            outside => outside(call(Node, code, get_path, []), Root, call(Node, file, get_cwd, [])),
            applications => applications(Node, Root),
            labels => labels(call(Node, application, get_env, [sderl, labels], undefined)),
            config => [] =/= call(Node, init, get_argument, [config], []),
            heart => is_pid(call(Node, erlang, whereis, [heart])),
            machine => machine(Node),
            groups => #{atom_to_binary(Group) => [text(Member) || Member <- Members]
                        || {Group, Members} <- Named},
            consistency => consistency(Info),
            unnamed => [text(io_lib:format("~0tp", [Group])) || {Group, _} <- Unnamed],
            library => Info =/= none
        },
        Near = call(Node, erlang, nodes, [[this, visible]])
            ++ lists:append([Members || {_, Members} <- Groups]) ++ other_nodes(Info),
        {ok, Fact, [text(Near1) || Near1 <- Near, is_atom(Near1)]}
    catch
        throw:{unanswered, noconnection} -> {error, ended};
        throw:{unanswered, _} -> {error, no_answer}
    end.

call(Node, Module, Function, Args) ->
    case sderl_ops_nodes:call(Node, Module, Function, Args, ?CALL_MS) of
        {ok, Value} -> Value;
        {error, Why} -> throw({unanswered, Why})
    end.

%% `Else` is the value if the function fails there.
call(Node, Module, Function, Args, Else) ->
    case sderl_ops_nodes:call(Node, Module, Function, Args, ?CALL_MS) of
        {ok, Value} -> Value;
        {error, noconnection} -> throw({unanswered, noconnection});
        {error, timeout} -> throw({unanswered, timeout});
        {error, _} -> Else
    end.

library(Node) ->
    case call(Node, s_group, info, [], none) of
        Info when is_list(Info) -> Info;
        _ -> none
    end.

groups(Groups) when is_list(Groups) ->
    [{Group, Members} || {Group, Members} <- Groups, is_list(Members)];
groups(_) ->
    [].

consistency(none) -> #{};
consistency(Info) ->
    Groups = proplists:get_value(groups, Info, []),
    #{text(Group) => Consistency
      || #{group := Group, consistency := Consistency} <- Groups, is_atom(Group)}.

%% Nodes of other groups that the node knows.
other_nodes(none) -> [];
other_nodes(Info) ->
    Others = proplists:get_value(other_groups, Info, []),
    [Node || {_, Nodes} <- Others, is_list(Nodes), Node <- Nodes].

release({Name, Version}) -> {text(Name), text(Version)};
release(_) -> {~"", ~""}.

%% The start script of a release has the release's name.
scripts(Node, Root, {Name, _}) ->
    case call(Node, file, list_dir, [Root ++ "/bin"], none) of
        {ok, Files} -> [text(File) || File <- lists:sort(Files), File =:= Name];
        _ -> []
    end;
scripts(_, _, _) ->
    [].

outside(Paths, Root, {ok, Folder}) ->
    [text(filename:absname(Path, Folder)) || Path <- Paths, Path =/= ".",
                                             not lists:prefix(Root ++ "/", Path)];
outside(Paths, _, _) ->
    [text(Path) || Path <- Paths].

%% Applications that are not OTP's own, in the order of their starts.
applications(Node, Root) ->
    Running = call(Node, application, which_applications, []),
    [text(Name) || {Name, _, _} <- lists:reverse(Running),
                   not is_of_otp(call(Node, code, lib_dir, [Name]), Root)].

is_of_otp(Path, Root) when is_list(Path) -> lists:prefix(Root ++ "/lib/", Path);
is_of_otp(_, _) -> true.

labels({ok, #{} = Labels}) -> #{text(Key) => text(Value) || Key := Value <- Labels};
labels({ok, [_ | _] = Labels}) -> #{text(Key) => text(Value) || {Key, Value} <- Labels};
labels(_) -> #{}.

-doc "Identifies a node's machine, by the name and, on Linux, the boot of it.".
-spec machine(node()) -> binary().
machine(Node) ->
    {ok, Name} = call(Node, inet, gethostname, []),
    Boot = case call(Node, file, read_file, ["/proc/sys/kernel/random/boot_id"], none) of
        {ok, Id} -> string:trim(Id);
        _ -> ~""
    end,
    <<(text(Name))/binary, $/, Boot/binary>>.

text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Text) when is_list(Text); is_binary(Text) ->
    case unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) -> Binary;
        _ -> text(io_lib:format("~0p", [Text]))
    end;
text(Term) -> text(io_lib:format("~0tp", [Term])).
