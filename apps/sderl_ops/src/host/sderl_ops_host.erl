%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_host).
-moduledoc """
What can be done on a host: the verbs of `priv/host.sh`, over any transport
(`m:sderl_ops_transport`).

Each verb is idempotent, also after a call that was cut off in the middle. Two calls for the same
instance wait for each other. `format_error/1` gives a sentence for each error.
""".

-export([survey/1, fetch/3, give/3, lay_out/2, lay_out/3, start/3, stop/3, hook/3, hook/4]).
-export([remove/2]).
-export([drop_release/2]).
-export([folders/2, format_error/1]).
-export_type([host/0, seen/0, instance_seen/0, folders/0, why/0]).

-doc """
`id` is `PROVIDER/NAME`; `address` is the one in its nodes' names. With `relay` it keeps archives,
to give them to other hosts. With an `epoch` the host refuses calls with a lower epoch than the
highest one that it knows.
""".
-type host() :: #{
    id := binary(),
    address := binary(),
    cluster := binary(),
    relay => boolean(),
    epoch => pos_integer(),
    connection := sderl_ops_transport:connection()
}.

-doc "`base` is the host's folder, an absolute path there.".
-type seen() :: #{
    state := up,
    base := binary(),
    releases := [binary()],
    archives := [binary()],
    instances := #{binary() => instance_seen()}
}.

-doc """
If `release` and `settings` are empty (`<<>>`), the instance was not laid out, or not removed, to
the end. `why` has the last lines of output of an instance that ended by itself.
""".
-type instance_seen() :: #{
    state := laid_out | running | exited,
    release := binary(),
    settings := binary(),
    why => binary()
}.

-doc "The folders of an instance on its host, for its templates.".
-type folders() :: #{state_dir | log_dir | home | release_dir => binary()}.

-doc "Errors; the texts are output of programs.".
-type why() ::
    {wrong_host_key, binary()}
    | {refused_login, binary()}
    | {unreachable, binary()}
    | {no_ssh, binary()}
    | {timeout, Ms :: pos_integer(), binary()}
    | {cut_off, binary()}
    | {lacks, binary()}
    | {full_disk, binary()}
    | {wrong_checksum, Expected :: binary(), Found :: binary()}
    | {no_release, binary()}
    | {in_use, binary()}
    | {no_archive, Sha :: binary()}
    | {no_relay, binary()}
    | {relay, sderl_ops_relay:side(), term()}
    | not_laid_out
    | {deposed, Epoch :: binary()}
    | running
    | busy
    | {start_late, Seconds :: non_neg_integer(), binary()}
    | {start_failed, Status :: non_neg_integer(), binary()}
    | {died, binary()}
    | {hook_failed, Name :: binary(), Status :: non_neg_integer(), binary()}
    | {hook_late, Name :: binary(), Seconds :: non_neg_integer(), binary()}
    | {bad_layout, binary(), term()}
    | {cannot_read, file:filename_all(), file:posix() | badarg | terminated}
    | {failed, Status :: non_neg_integer(), binary()}.

%% Limits in milliseconds. The connection notices a host that does not answer earlier.
-define(SHORT, 60_000).
-define(TRANSFER, 900_000).
%% Bytes of instances that are laid out by one call.
-define(MOST_AT_ONCE, 1_048_576).

%% ------------------------------------------------------------------ verbs

-doc "What is on the host, and which instances run.".
-spec survey(host()) -> {ok, seen()} | {error, why()}.
survey(Host) ->
    case call(Host, [~"survey"], none, ?SHORT) of
        {ok, Answers} -> {ok, seen(Answers)};
        {error, Why} -> {error, Why}
    end.

seen(Answers) ->
    Nothing = #{state => up, base => <<>>, releases => [], archives => [], instances => #{}},
    lists:foldl(fun see/2, Nothing, Answers).

see([~"base" | Words], Seen) ->
    Seen#{base := iolist_to_binary(lists:join(" ", Words))};
see([~"release", Sha], #{releases := Shas} = Seen) ->
    Seen#{releases := Shas ++ [Sha]};
see([~"archive", Sha], #{archives := Shas} = Seen) ->
    Seen#{archives := Shas ++ [Sha]};
see([~"instance", Id, State, Release, Settings], #{instances := Instances} = Seen) ->
    Instance = #{state => state(State), release => known(Release), settings => known(Settings)},
    Seen#{instances := Instances#{Id => Instance}};
see([~"tail", Id | Words], #{instances := Instances} = Seen) ->
    #{Id := Instance} = Instances,
    Line = iolist_to_binary(lists:join(" ", Words)),
    Why = case Instance of
        #{why := Before} -> <<Before/binary, "\n", Line/binary>>;
        #{} -> Line
    end,
    Seen#{instances := Instances#{Id := Instance#{why => Why}}};
see(_, Seen) ->
    Seen.

state(~"laid_out") -> laid_out;
state(~"running") -> running;
state(~"exited") -> exited.

known(~"-") -> <<>>;
known(Text) -> Text.

-doc "Sends a release there; `Sha` is the checksum of `Archive`, which the host checks.".
-spec fetch(host(), Sha :: binary(), Archive :: file:filename_all()) -> ok | {error, why()}.
fetch(Host, Sha, Archive) ->
    case filelib:file_size(Archive) of
        0 ->
            {error, {cannot_read, Archive, enoent}};
        Size ->
            Keep = [~"keep" || #{relay := true} <- [Host]],
            Arguments = [~"fetch", Sha, integer_to_binary(Size) | Keep],
            case call(Host, Arguments, {file, Archive}, ?TRANSFER) of
                {error, {wrong_checksum, Found}} -> {error, {wrong_checksum, Sha, Found}};
                Result -> done(Result)
            end
    end.

-doc """
Has a host that has a release's archive give it to another host. The error says whose fault it is:
the giver's, that of the link between them, or the receiver's.
""".
-spec give(Giver :: host(), Receiver :: host(), Sha :: binary()) ->
    ok | {error, {relay, sderl_ops_relay:side(), why()}}.
give(#{connection := {Transport, From}, cluster := Cluster} = Giver,
     #{connection := {Transport, To}}, Sha) ->
    Arguments = since(Giver, [~"give", Sha]),
    Answer = case Transport:give(From, To, Cluster, Arguments, ?TRANSFER) of
        {ok, Status, Output} -> answer(Status, Output);
        {error, _} = Error -> Error
    end,
    case done(Answer) of
        ok -> ok;
        {error, {relay, _, _}} = Relayed -> Relayed;
        {error, Why} -> {error, {relay, giver, Why}}
    end.

-doc "Like `lay_out/2`, for one instance.".
-spec lay_out(host(), Id :: binary(), sderl_ops_layout:layout()) ->
    {ok, instance_seen()} | {error, why()}.
lay_out(Host, Id, Layout) -> map_get(Id, lay_out(Host, #{Id => Layout})).

-doc """
Lays instances out: their files are made beside the present ones and then moved into place, in as
few calls as possible. The result has the state of each instance, as a survey shows it. An instance
that runs with other settings is refused. A failure of one does not affect the others.
""".
-spec lay_out(host(), #{Id :: binary() => sderl_ops_layout:layout()}) ->
    #{Id :: binary() => {ok, instance_seen()} | {error, why()}}.
lay_out(Host, Layouts) ->
    Entries = #{Id => sderl_ops_layout:entries(Id, Layout) || Id := Layout <- Layouts},
    Bad = #{Id => Error || Id := {error, _} = Error <- Entries},
    Good = [{Id, Data} || Id := {ok, Data} <- maps:iterator(Entries, ordered)],
    lists:foldl(fun(Batch, Done) ->
        maps:merge(Done, lay_out_batch(Host, Batch))
    end, Bad, batches(Good, [], 0)).

%% A large call would hold up other calls of the session.
batches([], [], _) ->
    [];
batches([], Batch, _) ->
    [Batch];
batches([{_, Data} = One | Others], Batch, Size) ->
    case Size + iolist_size(Data) of
        All when All > ?MOST_AT_ONCE, Batch =/= [] -> [Batch | batches(Others, [One], All - Size)];
        All -> batches(Others, [One | Batch], All)
    end.

lay_out_batch(Host, Batch) ->
    Ids = [Id || {Id, _} <- Batch],
    Archive = [[Data || {_, Data} <- Batch], sderl_ops_tar:closing()],
    case {call(Host, [~"lay_out" | Ids], {bytes, Archive}, ?TRANSFER), Batch} of
        {{ok, Answers}, _} ->
            #{instances := Seen} = seen(Answers),
            Refused = #{Id => {error, why(Words, ~"", ~"")}
                        || [~"refused", Id | Words] <- Answers},
            maps:merge(#{Id => {ok, Instance} || Id := Instance <- Seen}, Refused);
        %% The others may have room, so each is tried alone.
        {{error, {full_disk, _}}, [_, _ | _]} ->
            lay_out_each(Host, Batch);
        {{error, {failed, _, _}}, [_, _ | _]} ->
            lay_out_each(Host, Batch);
        {{error, _} = Error, _} ->
            #{Id => Error || Id <- Ids}
    end.

lay_out_each(Host, Batch) ->
    lists:foldl(fun(One, Done) -> maps:merge(Done, lay_out_batch(Host, [One])) end, #{}, Batch).

-doc """
Starts an instance unless it runs, and returns when it is up: its applications are started, its
check succeeds, or it has lived for half a second. If it is not up within `Seconds`, it is killed.
The result is its state, as a survey shows it.
""".
-spec start(host(), Id :: binary(), Seconds :: pos_integer()) ->
    {ok, instance_seen()} | {error, why()}.
start(Host, Id, Seconds) ->
    Limit = 4 * Seconds * 1000 + ?SHORT,
    told(Id, call(Host, [~"start", Id, integer_to_binary(Seconds)], none, Limit)).

-doc "Stops an instance; what is left of it after `Seconds` is killed.".
-spec stop(host(), Id :: binary(), Seconds :: non_neg_integer()) -> ok | {error, why()}.
stop(Host, Id, Seconds) ->
    Limit = 4 * Seconds * 1000 + ?SHORT,
    done(call(Host, [~"stop", Id, integer_to_binary(Seconds)], none, Limit)).

-doc "Like `hook/4`, for at most a minute.".
-spec hook(host(), Id :: binary(), Name :: binary()) -> ok | {error, why()}.
hook(Host, Id, Name) -> hook(Host, Id, Name, 60).

-doc "Runs a command of an instance, such as `check`, if the instance has it.".
-spec hook(host(), Id :: binary(), Name :: binary(), Seconds :: pos_integer()) ->
    ok | {error, why()}.
hook(Host, Id, Name, Seconds) ->
    Limit = Seconds * 1000 + ?SHORT,
    done(call(Host, [~"hook", Id, Name, integer_to_binary(Seconds)], none, Limit)).

-doc "Kills an instance and removes all that it has there, its state and logs too.".
-spec remove(host(), Id :: binary()) -> ok | {error, why()}.
remove(Host, Id) -> done(call(Host, [~"remove", Id], none, ?SHORT)).

-doc "Removes a release that no instance there has.".
-spec drop_release(host(), Sha :: binary()) -> ok | {error, why()}.
drop_release(Host, Sha) -> done(call(Host, [~"drop_release", Sha], none, ?SHORT)).

-doc "Where an instance's folders will be; `Base` is from a survey.".
-spec folders(Base :: binary(), Id :: binary()) -> folders().
folders(Base, Id) ->
    Node = <<Base/binary, "/nodes/", Id/binary>>,
    #{home => <<Node/binary, "/home">>,
      state_dir => <<Node/binary, "/state">>,
      log_dir => <<Node/binary, "/log">>,
      release_dir => <<Node/binary, "/release">>}.

told(Id, {ok, Answers}) ->
    #{instances := #{Id := Instance}} = seen(Answers),
    {ok, Instance};
told(_, {error, Why}) ->
    {error, Why}.

done({ok, _}) -> ok;
done({error, Why}) -> {error, Why}.

%% ------------------------------------------------------------------ the script's answers

call(#{connection := {Transport, Settings}, cluster := Cluster} = Host, Arguments, Input, Limit) ->
    case Transport:run(Settings, Cluster, since(Host, Arguments), Input, Limit) of
        {ok, Status, Output} -> answer(Status, Output);
        {error, Why} -> {error, Why}
    end.

since(#{epoch := Epoch}, Arguments) -> [~"since", integer_to_binary(Epoch) | Arguments];
since(_, Arguments) -> Arguments.

answer(Status, Output) ->
    Lines = binary:split(Output, ~"\n", [global, trim_all]),
    Answers = [binary:split(Words, ~" ", [global]) || <<"ops ", Words/binary>> <- Lines],
    Complaints = join([Line || Line <- Lines, not is_answer(Line)]),
    case lists:reverse(Answers) of
        [[~"ok"] | Rest] ->
            {ok, lists:reverse(Rest)};
        [[~"error" | Words] | Rest] ->
            Tail = join([lists:join(" ", Line) || [~"tail", _ | Line] <- lists:reverse(Rest)]),
            {error, why(Words, Tail, Complaints)};
        _ ->
            {error, unsaid(Status, Complaints)}
    end.

is_answer(<<"ops ", _/binary>>) -> true;
is_answer(_) -> false.

join(Lines) -> iolist_to_binary(lists:join("\n", Lines)).

why([~"relay", Side | Words], Tail, Complaints) ->
    {relay, side(Side), relay_why(Words, Tail, Complaints)};
why([~"busy"], _, _) -> busy;
why([~"no_archive", Sha], _, _) -> {no_archive, Sha};
why([~"running"], _, _) -> running;
why([~"not_laid_out"], _, _) -> not_laid_out;
why([~"deposed", Epoch], _, _) -> {deposed, Epoch};
why([~"no_release", Sha], _, _) -> {no_release, Sha};
why([~"in_use", Id], _, _) -> {in_use, Id};
why([~"lacks" | Tool], _, _) -> {lacks, iolist_to_binary(lists:join(" ", Tool))};
why([~"wrong_checksum", Found], _, _) -> {wrong_checksum, Found};
why([~"cut_off" | _], _, Complaints) -> {cut_off, Complaints};
why([~"died"], Tail, _) -> {died, Tail};
why([~"start_late", Seconds], Tail, _) -> {start_late, binary_to_integer(Seconds), Tail};
why([~"start_failed", Status], Tail, _) -> {start_failed, binary_to_integer(Status), Tail};
why([~"hook_late", Name, Seconds], Tail, _) -> {hook_late, Name, binary_to_integer(Seconds), Tail};
why([~"hook_failed", Name, Status], Tail, _) ->
    {hook_failed, Name, binary_to_integer(Status), Tail};
why(Words, _, Complaints) -> {failed, 1, join([lists:join(" ", Words), Complaints])}.

side(~"giver") -> giver;
side(~"link") -> link;
side(~"receiver") -> receiver.

relay_why([~"ssh"], _, Complaints) -> sderl_ops_openssh:explain(Complaints, #{});
relay_why([~"failed"], _, Complaints) -> unsaid(1, Complaints);
relay_why([~"no_script"], _, Complaints) -> {cut_off, Complaints};
relay_why([~"wrong_checksum", Found], _, _) -> {wrong_checksum, ~"another one", Found};
relay_why(Words, Tail, Complaints) -> why(Words, Tail, Complaints).

%% The script ended without an error of its own, because a program that it used failed.
unsaid(Status, Complaints) ->
    case binary:match(Complaints, [~"No space left on device", ~"Disk quota exceeded"]) of
        nomatch -> {failed, Status, last_lines(Complaints)};
        _ -> {full_disk, last_lines(Complaints)}
    end.

last_lines(Text) ->
    Lines = binary:split(Text, ~"\n", [global, trim_all]),
    join(lists:nthtail(max(0, length(Lines) - 8), Lines)).

%% ------------------------------------------------------------------ sentences

-doc "A sentence for people, and what to do.".
-spec format_error(why()) -> unicode:chardata().
format_error({wrong_host_key, Text}) ->
    ["the host shows another key than the one that is known for it (or none is known): if it is "
     "the right host, put its key into the known hosts", said(Text)];
format_error({refused_login, Text}) ->
    ["the host refuses the login: check user and key of the provider, and that ssh needs no "
     "password", said(Text)];
format_error({unreachable, Text}) ->
    ["the host cannot be reached", said(Text)];
format_error({no_ssh, Text}) ->
    ["OpenSSH's program ssh is not on the PATH of this machine", said(Text)];
format_error({timeout, Limit, Text}) ->
    [io_lib:format("the host did not answer or go on within ~b s", [(Limit + 999) div 1000]),
     said(Text)];
format_error({cut_off, Text}) ->
    ["the connection ended in the middle; it is repeated", said(Text)];
format_error({lacks, Tool}) ->
    ["the host has no ", Tool, ", which is needed there"];
format_error({full_disk, Text}) ->
    ["the host's disk is full", said(Text)];
format_error({wrong_checksum, Expected, Found}) ->
    ["the archive's sha256 is ", Found, ", and should be ", Expected];
format_error({no_release, Sha}) ->
    ["the release ", Sha, " is not on the host"];
format_error({in_use, Id}) ->
    ["the release is that of ", Id];
format_error({no_archive, Sha}) ->
    ["the host no longer has the archive of release ", Sha];
format_error({no_relay, Text}) ->
    ["the hosts cannot be lent a key: that needs a key without a passphrase, or an agent, and "
     "OpenSSH 8.9", said(Text)];
format_error({relay, giver, Why}) ->
    ["the host that was to give it could not: ", format_error(Why)];
format_error({relay, link, Why}) ->
    ["between the host that was to give it and this one: ", format_error(Why)];
format_error({relay, receiver, Why}) ->
    format_error(Why);
format_error(not_laid_out) ->
    "the instance is not laid out";
format_error({deposed, Epoch}) ->
    ["another member of the service acts now, with epoch ", Epoch, ": nothing was done"];
format_error(running) ->
    "the instance runs with other settings, and has to be stopped first";
format_error(busy) ->
    "another call for the same instance or release is still running on the host";
format_error({start_late, Seconds, Text}) ->
    [io_lib:format("the start command did not return, or the node was not up, within ~b s; it was "
                   "killed (a start command has to put the node into the background)", [Seconds]),
     said(Text)];
format_error({start_failed, Status, Text}) ->
    [io_lib:format("the start command failed with status ~b", [Status]), said(Text)];
format_error({died, Text}) ->
    ["it started and ended at once", said(Text)];
format_error({hook_failed, Name, Status, Text}) ->
    [io_lib:format("the command ~ts failed with status ~b", [Name, Status]), said(Text)];
format_error({hook_late, Name, Seconds, Text}) ->
    [io_lib:format("the command ~ts did not return within ~b s, and was killed", [Name, Seconds]),
     said(Text)];
format_error({bad_layout, What, Found}) ->
    io_lib:format("~ts: ~0tp cannot be laid out on a host", [What, Found]);
format_error({cannot_read, File, Why}) ->
    io_lib:format("~ts: ~ts", [File, file:format_error(Why)]);
format_error({failed, Status, Text}) ->
    [io_lib:format("the host script ended with status ~b", [Status]), said(Text)].

said(<<>>) -> "";
said(Text) -> ["; the last that was said: ", string:replace(string:trim(Text), "\n", " | ", all)].
