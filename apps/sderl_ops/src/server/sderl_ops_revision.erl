%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_revision).
-moduledoc """
Prepares a checked file: finds the hosts, makes archives of the releases, and gives the desired
state. It asks providers and packs folders, so it may take a while; the process of the connection
does it and not the server.
""".

-export([prepare/2, prepare/3, pack/2, desired/3, hosts/2]).
-export_type([prepared/0, about/0]).

-doc """
`sums` are the checksums of the releases by their names in the file, `archives` the archives by
checksum.
""".
-type prepared() :: #{
    file := sderl_ops_file:file(),
    sums := #{binary() => sderl_ops_desired:sha()},
    archives := #{sderl_ops_desired:sha() => file:filename_all()},
    hosts := #{sderl_ops_desired:host_id() => sderl_ops_host:host()}
}.

-doc """
What is stored of a request for a revision: by whom, the request as text, and whether the rules of
upgrades are put aside. `request` recognises a request that is repeated; `applied` is the file that
was applied last, by this revision or an earlier one.
""".
-type about() :: #{
    by := binary(),
    why := binary(),
    force := boolean(),
    request => binary(),
    applied => binary()
}.

-type packed() ::
    {ok, sderl_ops_desired:sha(), Archive :: none | file:filename_all()}
    | {error, unicode:chardata()}.

-doc "Asks the providers for their hosts and packs the releases. Errors are sentences.".
-spec prepare(sderl_ops_file:file(), Folder :: file:filename_all()) ->
    {ok, prepared()} | {error, [unicode:chardata(), ...]}.
prepare(File, Folder) -> prepare(File, Folder, fun(Release) -> pack(Release, Folder) end).

-doc "The same with another function that packs a release, or knows its checksum.".
-spec prepare(sderl_ops_file:file(), Folder :: file:filename_all(),
              fun((sderl_ops_file:release()) -> packed())) ->
    {ok, prepared()} | {error, [unicode:chardata(), ...]}.
prepare(#{releases := Releases, families := Families} = File, Folder, Pack) ->
    Wanted = lists:usort([Release || _ := #{release := Release} <- Families]),
    maybe
        %% First, because a provider without hosts may have releases that cannot be packed.
        {ok, Hosts} ?= hosts(File, Folder),
        Packed = #{Name => Pack(map_get(Name, Releases)) || Name <- Wanted},
        [] ?= [["releases.", Name, ": ", Why] || Name := {error, Why} <- Packed],
        Prepared = #{
            file => File,
            sums => #{Name => Sum || Name := {ok, Sum, _} <- Packed},
            archives => #{Sum => Archive || _ := {ok, Sum, Archive} <- Packed, Archive =/= none},
            hosts => Hosts
        },
        %% Refuses a file that names unknown hosts before anything is stored.
        {ok, _} ?= desired(Prepared, false, 0),
        {ok, Prepared}
    else
        {error, _} = Error -> Error;
        Problems -> {error, Problems}
    end.

-doc "Makes an archive of a release in the service's folder; a `running` one has none.".
-spec pack(sderl_ops_file:release(), Folder :: file:filename_all()) -> packed().
pack(#{running := Text}, _) ->
    Sum = crypto:hash(sha256, [~"running ", Text]),
    {ok, binary:encode_hex(Sum, lowercase), none};
pack(#{image := _}, _) ->
    {error, "an image runs on Kubernetes, and not on hosts"};
pack(Release, Folder) ->
    case sderl_ops_archive:prepare(source(Release), filename:join(Folder, "archives")) of
        {ok, _, _} = Packed -> Packed;
        {error, Why} -> {error, sderl_ops_archive:format_error(Why)}
    end.

source(#{archive := Archive} = Release) ->
    {archive, Archive, maps:get(sha256, Release, undefined)};
source(#{folder := Release}) -> {folder, Release};
source(#{code := Folders}) -> {code, Folders}.

-doc "The hosts of all providers of a file.".
-spec hosts(sderl_ops_file:file(), Folder :: file:filename_all()) ->
    {ok, #{sderl_ops_desired:host_id() => sderl_ops_host:host()}}
    | {error, [unicode:chardata(), ...]}.
hosts(#{cluster := Cluster, names := Names, providers := Providers}, Folder) ->
    Context = #{cluster => Cluster, names => Names, folder => Folder},
    Home = sderl_ops_member:home(Folder),
    Found = #{Name => hosts_of(Config, Home, Context#{provider => Name})
              || Name := Config <- Providers},
    case [["providers.", Name, ": ", Why] || Name := {error, Why} <- Found] of
        [] -> {ok, #{Id => Host || _ := {ok, Hosts} <- Found, Id := Host <- Hosts}};
        Problems -> {error, Problems}
    end.

%% Hosts that are folders of this machine are the same for all members.
hosts_of(#{type := local}, {apart, Why}, _) -> {error, Why};
hosts_of(#{type := local} = Config, {ok, Home}, Context) ->
    sderl_ops_provider:hosts(Config, Context#{folder := Home});
hosts_of(Config, _, Context) ->
    sderl_ops_provider:hosts(Config, Context).

-doc "The desired state of what was prepared; with `Force` the rules of upgrades are put aside.".
-spec desired(prepared(), Force :: boolean(), Revision :: non_neg_integer()) ->
    {ok, sderl_ops_desired:desired()} | {error, [unicode:chardata(), ...]}.
desired(#{file := File, sums := Sums, hosts := Hosts}, Force, Revision) ->
    Names = maps:groups_from_list(fun([Provider, _]) -> Provider end, fun([_, Name]) -> Name end,
                                  [binary:split(Id, ~"/") || Id := _ <- Hosts]),
    Given = #{revision => Revision, sums => Sums,
              addresses => #{Id => Address || Id := #{address := Address} <- Hosts},
              hosts => #{Provider => sderl_ops_range:in_order(Found)
                         || Provider := Found <- Names}},
    case sderl_ops_desired:from(File, Given) of
        {ok, #{upgrade := Upgrade} = Desired} ->
            {ok, Desired#{upgrade := Upgrade#{force => Force}}};
        {error, Problems} ->
            {error, [sderl_ops_file:format_error(Problem) || Problem <- Problems]}
    end.
