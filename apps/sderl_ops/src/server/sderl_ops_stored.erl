%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_stored).
-moduledoc """
What the service begins with: the newest stored revision, and what belongs to it.

These revisions are kept: the newest 100, those to which a family would be rolled back, and for each
host with an instance the newest that names it. Others are deleted when a revision is loaded.
""".

-export([cluster/0, applied/1, with_applied/3, memory/1, remembered/1, load/3, here/3, since/2,
         may_follow/5, check_archives/3, drop_archives/4]).
-export_type([stored/0]).

-doc """
`hosts`, `archives`, and `providers` that are programs, are those of all kept revisions: instances
have to be removed from a host that the file no longer has, and a roll-back needs the earlier
archive. `made` are the groups that the service has made. `trouble` is why this version of the
service cannot use a revision that an earlier version stored.
""".
-type stored() :: #{
    revision := pos_integer(),
    file := sderl_ops_file:file(),
    desired := sderl_ops_desired:desired() | undefined,
    trouble := none | unicode:chardata(),
    hosts := #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    providers := sderl_ops_made:providers(),
    archives := #{sderl_ops_desired:sha() => file:filename_all()},
    made := [Group :: binary()]
}.

-define(MOST, 100).
%% Longer than from an archive to its revision: with several members, and with one.
-define(UNUSED_S, 3_600).
-define(PREPARED_S, 30).

-doc "The current cluster: if there are several, all but the newest have been destroyed.".
-spec cluster() -> binary() | none.
cluster() ->
    case [{At, Cluster} || Cluster <- sderl_ops_store:clusters(),
                           {_, #{at := At}} <- [sderl_ops_store:latest(Cluster)]] of
        [] -> none;
        Clusters -> element(2, lists:max(Clusters))
    end.

-doc "The file that was applied last, where it is known.".
-spec applied(Cluster :: binary()) -> binary() | none.
applied(Cluster) ->
    case sderl_ops_store:latest(Cluster) of
        {_, #{applied := File}} -> File;
        %% Revisions of earlier versions do not remember it.
        _ -> first_applied(lists:reverse(sderl_ops_store:revisions(Cluster)))
    end.

first_applied([{_, #{applied := File}} | _]) -> File;
first_applied([{_, #{why := <<"apply ", File/binary>>}} | _]) -> File;
first_applied([_ | Earlier]) -> first_applied(Earlier);
first_applied([]) -> none.

-doc "Adds the file that was applied last, if the revision does not apply one itself.".
-spec with_applied(sderl_ops_revision:about(), Cluster :: binary(),
                   Stored :: none | {Cluster :: binary(), pos_integer()}) ->
    sderl_ops_revision:about().
with_applied(#{applied := _} = About, _, _) ->
    About;
with_applied(About, Cluster, {Cluster, _}) ->
    case applied(Cluster) of
        none -> About;
        File -> About#{applied => File}
    end;
with_applied(About, _, _) ->
    About.

-doc "What the reconciler remembers of a cluster.".
-spec memory(Cluster :: binary()) -> sderl_ops_memory:memory().
memory(Cluster) ->
    sderl_ops_memory:restored(sderl_ops_store:part(Cluster, memory, #{})).

-doc "The same, and the groups that the service has made.".
-spec remembered(Cluster :: binary()) -> {sderl_ops_memory:memory(), Made :: [binary()]}.
remembered(Cluster) ->
    {memory(Cluster), sderl_ops_store:part(Cluster, made, [])}.

-doc """
Loads the newest revision of a cluster. Its groups are added to those that the service has made, and
revisions that are no longer needed are deleted.
""".
-spec load(Cluster :: binary(), sderl_ops_memory:memory(), Made :: [binary()]) -> stored().
load(Cluster, Memory, Made) ->
    Revisions = forget_old(Cluster, Memory, sderl_ops_store:revisions(Cluster)),
    {Number, #{prepared := #{file := File}} = Newest} = lists:last(Revisions),
    {Desired, Trouble} = case desired(Newest, Number) of
                             {ok, Is} -> {complete(Is, Memory, Revisions), none};
                             {error, Problems} -> {undefined, trouble(Number, Problems)}
                         end,
    AllMade = lists:usort(group_names(Desired) ++ Made),
    ok = sderl_ops_store:put(Cluster, made, AllMade),
    #{
        revision => Number,
        file => File,
        desired => Desired,
        trouble => Trouble,
        hosts => of_all(hosts, Revisions),
        providers => #{Name => Provider
                       || {_, #{prepared := #{file := #{providers := Of}}}} <- Revisions,
                          Name := #{type := exec} = Provider <- Of},
        archives => of_all(archives, Revisions),
        made => AllMade
    }.

-doc """
The same with paths of this machine, because another member may have stored it with its own. Hosts
are told the epoch, if there is one.
""".
-spec here(stored(), file:filename(), Epoch :: none | pos_integer()) -> stored().
here(#{archives := Archives, hosts := Hosts} = Stored, Folder, Epoch) ->
    Stored#{
        archives := #{Sha => sderl_ops_share:archive(Folder, Sha) || Sha := _ <- Archives},
        hosts := since(Epoch, #{Id => host_here(Host, Folder) || Id := Host <- Hosts})
    }.

host_here(#{connection := {Module, Settings}} = Host, Folder) ->
    Here = case Settings of
               #{folder := There} ->
                   Settings#{folder := filename:join(Folder, filename:basename(There))};
               #{} ->
                   Settings
           end,
    Host#{connection := {Module, Here}}.

-doc "Adds the epoch to hosts, if there is one.".
-spec since(Epoch :: none | pos_integer(), Hosts) -> Hosts when
    Hosts :: #{sderl_ops_desired:host_id() => sderl_ops_host:host()}.
since(none, Hosts) -> Hosts;
since(Epoch, Hosts) -> #{Id => Host#{epoch => Epoch} || Id := Host <- Hosts}.

forget_old(_, _, Revisions) when length(Revisions) =< ?MOST ->
    Revisions;
forget_old(Cluster, Memory, Revisions) ->
    {Old, New} = lists:split(length(Revisions) - ?MOST, Revisions),
    Kept = [Numbered || Numbered <- Old, is_kept(Numbered, Memory, Revisions)],
    ok = sderl_ops_store:drop_revisions(Cluster, [Number || {Number, _} <- Old -- Kept]),
    Kept ++ New.

is_kept({Number, #{prepared := #{hosts := Hosts}}}, Memory, Revisions) ->
    #{good := Good, failed := Failed, assigned := Assigned} = Memory,
    Needed = maps:values(Good) ++ [To || _ := #{to := To} <- Failed],
    lists:member(Number, Needed)
        orelse lists:any(fun(Host) ->
            is_map_key(Host, Hosts)
                andalso not lists:any(fun({Later, #{prepared := #{hosts := LaterHosts}}}) ->
                    Later > Number andalso is_map_key(Host, LaterHosts)
                end, Revisions)
        end, lists:usort(maps:values(Assigned))).

complete(Desired, Memory, Revisions) ->
    sderl_ops_former:with_former(Desired, Memory, fun(Number) ->
        maybe
            {_, Stored} ?= lists:keyfind(Number, 1, Revisions),
            {ok, _} ?= desired(Stored, Number)
        else
            _ -> error
        end
    end).

group_names(undefined) -> [];
group_names(#{groups := Groups}) -> [Name || #{name := Name} <- Groups].

trouble(Number, Problems) ->
    [io_lib:format("revision ~b cannot be kept by this version of the service (", [Number]),
     lists:join("; ", Problems), "): apply its file again"].

%% An earlier version may have stored the revision in another form.
desired(#{prepared := Prepared, force := Force}, Number) ->
    try
        sderl_ops_revision:desired(Prepared, Force, Number)
    catch
        error:_ -> {error, ["it was stored by a version that is too different"]}
    end.

%% The newest revision wins.
of_all(What, Revisions) ->
    lists:foldl(fun({_, #{prepared := Prepared}}, Known) ->
        maps:merge(Known, map_get(What, Prepared))
    end, #{}, Revisions).

-doc """
Whether a revision of a cluster may follow the one that its author has seen: as the `next` of the
current cluster, or `anew` of another cluster if the current one is destroyed. `done`: the same
request was stored already.
""".
-spec may_follow(Cluster :: binary(), After :: non_neg_integer(), sderl_ops_revision:about(),
                 Stored :: none | {Cluster :: binary(), pos_integer()},
                 IsOver :: fun(() -> boolean())) ->
    {ok, next | anew} | {done, pos_integer()} | {error, unicode:chardata()}.
may_follow(_, _, _, none, _) ->
    {ok, next};
may_follow(Cluster, After, About, {Stored, Newest}, IsOver) ->
    {ok, #{by := By} = Revision} = sderl_ops_store:revision(Stored, Newest),
    case is_same(About, Revision) of
        true ->
            {done, Newest};
        false when Stored =:= Cluster, Newest =:= After ->
            {ok, next};
        false when Stored =:= Cluster; Newest =/= After ->
            {error, io_lib:format("~ts has made revision ~b meanwhile: look at it (`status`, "
                                  "`plan`), and ask again", [By, Newest])};
        false ->
            case IsOver() of
                true -> {ok, anew};
                false -> {error, ["something of the cluster ", Stored, " is left, or may be: look "
                                  "at it (`status`), and ask again"]}
            end
    end.

is_same(#{request := Request}, #{request := Request}) -> true;
is_same(_, _) -> false.

-doc """
Whether the archives of a new revision are there. They may have been deleted since they were made,
if the disk was full meanwhile. A member of several gets missing ones from another member.
""".
-spec check_archives([sderl_ops_desired:sha()], file:filename(), Epoch :: none | pos_integer()) ->
    ok | {error, unicode:chardata()}.
check_archives(Shas, Folder, none) ->
    case [Sha || Sha <- Shas, not filelib:is_regular(sderl_ops_share:archive(Folder, Sha))] of
        [] ->
            ok;
        [Sha | _] ->
            {error, ["the archive of the release ", Sha, " was deleted from the service's folder, "
                     "as the disk was full: `apply` the file again, which makes it anew"]}
    end;
check_archives(_, _, _) ->
    ok.

-doc """
Deletes archives that no kept revision has: all at the `start`, while the disk is `full` the older
ones, and those of a revision that was `refused`. `check_archives/3` refuses requests that need one.
""".
-spec drop_archives(start | full | {refused, [sderl_ops_desired:sha()]},
                    Kept :: [sderl_ops_desired:sha()], file:filename(),
                    Epoch :: none | pos_integer()) -> ok.
drop_archives({refused, Shas}, Kept, Folder, _) ->
    lists:foreach(fun(Sha) -> _ = file:delete(sderl_ops_share:archive(Folder, Sha)) end,
                  Shas -- Kept);
drop_archives(When, Kept, Folder, Epoch) ->
    Seconds = case {When, Epoch} of
                  %% Nobody can ask a service with one member yet, so no archive is being made.
                  {start, none} -> 0;
                  {full, none} -> ?PREPARED_S;
                  %% Another member may have copied one here for its next request.
                  {_, _} -> ?UNUSED_S
              end,
    sderl_ops_archive:keep_only(Kept, filename:join(Folder, "archives"), Seconds).
