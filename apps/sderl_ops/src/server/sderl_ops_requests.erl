%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_requests).
-moduledoc "What each request of `m:sderl_ops_wire` does, in the process of its connection.".

-export([do/3]).

-import(sderl_ops_acting, [adopt/3]).

-define(PLANS_TEXT, sderl_ops_plans_text).

-doc """
Does a request. `Tell` is called with each event, and with `waiting` when the request is done except
for waiting: the work goes on without the client. The result is the last answer.
""".
-spec do(sderl_ops_wire:request(), file:filename(),
         fun((sderl_ops_wire:answer() | waiting) -> ok)) ->
    sderl_ops_wire:answer().
do(Request, Folder, Tell) ->
    try
        handle(Request, Folder, Tell)
    catch
        throw:{Kind, Sentence} when Kind =:= unavailable; Kind =:= unsure -> {Kind, Sentence}
    end.

handle(#{do := hello}, _, _) ->
    {Cluster, Revision} = case sderl_ops_acting:hello() of
                              none -> {undefined, 0};
                              Known -> Known
                          end,
    {done, #{cluster => Cluster, revision => Revision, pid => list_to_integer(os:getpid()),
             version => version()}};
handle(#{do := plan, file := Path, force := Force}, Folder, _) ->
    maybe
        {ok, Prepared, _} ?= prepare_file(Path, Folder),
        {done, sderl_ops_preview:plan(Prepared, Force, sderl_ops_acting:view(), system_ms())}
    end;
handle(#{do := plan_text, text := Text, force := Force}, Folder, _) ->
    alone(fun() ->
        maybe
            {ok, Prepared} ?= prepare_text(Text, Folder),
            {done, sderl_ops_preview:plan(Prepared, Force, sderl_ops_acting:view(), system_ms())}
        end
    end);
handle(#{do := apply, file := Path} = Request, Folder, Tell) ->
    maybe
        {ok, Prepared, After} ?= prepare_file(Path, Folder),
        adopt_and_wait(Prepared, After, ["apply ", Path], Request, Tell)
    end;
handle(#{do := apply} = Request, Folder, Tell) ->
    maybe
        {ok, After, Path} ?= applied_last(),
        {ok, Prepared, _} ?= prepare_file(Path, Folder),
        adopt_and_wait(Prepared, After, ["apply ", Path], Request#{file => Path}, Tell)
    end;
handle(#{do := rollback, revision := Number} = Request, _, Tell) ->
    maybe
        {ok, After, #{cluster := Cluster}, _} ?= current(),
        {ok, #{prepared := Prepared}} ?= revision(Cluster, Number),
        Why = ["roll back to ", integer_to_list(Number)],
        adopt_and_wait(Prepared, After, Why, Request, Tell)
    end;
handle(#{do := scale, family := Family, count := Count} = Request, Folder, Tell) ->
    maybe
        {ok, After, File, RolledBack} ?= current(),
        ok ?= check_not_rolled_back(After, RolledBack),
        {ok, Scaled} ?= scaled(File, Family, Count),
        {ok, Prepared} ?= prepared(Scaled, Folder),
        Why = io_lib:format("scale ~ts to ~b", [Family, Count]),
        adopt_and_wait(Prepared, After, Why, Request, Tell)
    end;
handle(#{do := destroy} = Request, Folder, Tell) ->
    maybe
        {ok, After, File, _} ?= current(),
        {ok, Prepared} ?= prepared(File#{families := #{}, groups := []}, Folder),
        adopt_and_wait(Prepared, After, "destroy", Request#{force => true}, Tell)
    end;
handle(#{do := drain, instance := Id, force := Force, wait := Wait, who := Who}, _, Tell) ->
    case sderl_ops_acting:set_aside(Who, Id, Force) of
        {refused, Refused} ->
            {error, "refused, as a group would be without a member or an edge without a gateway: "
                    "let it grow first (--force does it all the same)",
             [sderl_ops_refusal:words(drain, Why) || Why <- Refused]};
        Result ->
            changed(Result, Wait, Tell)
    end;
handle(#{do := undrain, instance := Id, wait := Wait, who := Who}, _, Tell) ->
    changed(sderl_ops_acting:take_back(Who, Id), Wait, Tell);
handle(#{do := adopt, instance := Id, wait := Wait, who := Who}, _, Tell) ->
    changed(sderl_ops_acting:adopt_again(Who, Id), Wait, Tell);
handle(#{do := release, who := Who} = Request, _, _) ->
    release(released(Request), Who);
handle(#{do := status}, _, _) ->
    try
        status()
    catch
        throw:{unavailable, Sentence} -> {error, Sentence, as_stored()}
    end;
handle(#{do := remaining}, _, _) ->
    known(fun() ->
        #{steps => sderl_ops_preview:remaining(sderl_ops_acting:view(), system_ms())}
    end);
handle(#{do := history}, _, _) ->
    {done, #{revisions => history()}};
handle(#{do := record} = Request, _, _) ->
    {done, record(Request)};
handle(#{do := pause, who := Who}, _, _) ->
    known(fun() -> #{state => sderl_ops_acting:pause(Who)} end);
handle(#{do := resume, who := Who}, _, _) ->
    known(fun() -> #{state => sderl_ops_acting:resume(Who)} end);
handle(#{do := members}, _, _) ->
    case sderl_ops_member:list() of
        none -> {error, "the service of this folder has one member, and no others", []};
        Members -> {done, #{members => Members}}
    end;
handle(#{do := Do, member := Text, who := Who}, _, _)
  when Do =:= add_member; Do =:= remove_member ->
    maybe
        true ?= sderl_ops_membership:is_member(),
        Named = unicode:characters_to_list(Text),
        ok ?= case Do of
                  add_member -> sderl_ops_invite:add(Named);
                  remove_member -> sderl_ops_invite:remove(Named)
              end,
        ok = sderl_ops_acting:write_down(Who, {Do, Text}),
        {done, #{members => sderl_ops_member:list()}}
    else
        false ->
            {error, "the service of this folder has one member: docs/operations.md tells how it "
                    "becomes one of three", []};
        {error, Sentence} ->
            {error, Sentence, []}
    end;
handle(#{do := stop}, _, _) ->
    ok = sderl_ops_service:stop(),
    {done, #{state => stopped}}.

released(#{instance := Id}) -> [Id];
released(_) -> sderl_ops_status:adopted(sderl_ops_acting:view()).

release([], _) ->
    {error, "no node of this cluster runs as it was taken over", []};
release(Ids, Who) ->
    Release = fun(Id) -> sderl_ops_acting:release(Who, Id) end,
    Results = [Release(hd(Ids)) | [after_change(fun() -> Release(Id) end) || Id <- tl(Ids)]],
    case [Sentence || {No, Sentence} <- Results, No =:= error orelse No =:= unknown] of
        [] -> {done, #{released => Ids}};
        [Sentence] -> {error, Sentence, []};
        Sentences -> {error, "these were not handed back", Sentences}
    end.

known(Answer) ->
    case sderl_ops_acting:hello() of
        none -> nothing();
        _ -> {done, Answer()}
    end.

nothing() -> {error, "the service keeps no cluster yet: `apply` a file", []}.

version() ->
    _ = application:load(sderl_ops),
    {ok, Version} = application:get_key(sderl_ops, vsn),
    list_to_binary(Version).

%% ---------------------------------------------------------------- revisions

current() ->
    case sderl_ops_acting:current() of
        none -> nothing();
        {After, File, RolledBack} -> {ok, After, File, RolledBack}
    end.

scaled(#{families := Families} = File, Family, Count) ->
    case sderl_ops_file:set_count(File, Family, Count) of
        {error, [Problem]} when not is_map_key(Family, Families) ->
            {unknown, sderl_ops_file:format_error(Problem)};
        Result -> told(Result, "that cannot be")
    end.

%% The file of such a revision has failed.
check_not_rolled_back(_, []) ->
    ok;
check_not_rolled_back(Revision, Families) ->
    {error, io_lib:format("~ts was rolled back from revision ~b, and scaling would try that again: "
                          "`rollback` to an earlier revision, or apply another file, first",
                          [lists:join(", ", Families), Revision]), []}.

revision(Cluster, Number) ->
    case sderl_ops_store:revision(Cluster, Number) of
        {ok, _} = Ok -> Ok;
        {error, not_found} ->
            {unknown, io_lib:format("there is no revision ~b: `history` lists them", [Number])}
    end.

%% Read from the store, so that a member answers also while nobody acts.
history() ->
    case stored_cluster() of
        none ->
            [];
        Cluster ->
            sderl_ops_status:history(sderl_ops_store:revisions(Cluster),
                                     sderl_ops_record:outcomes(Cluster),
                                     sderl_ops_stored:memory(Cluster))
    end.

record(Request) ->
    case stored_cluster() of
        none ->
            #{entries => [], next => undefined};
        Cluster ->
            Wanted = maps:with([limit, before, since, until, by, kind], Request),
            sderl_ops_record:page(Cluster, Wanted, fun() ->
                sderl_ops_memory:is_paused(sderl_ops_stored:memory(Cluster))
            end)
    end.

stored_cluster() ->
    case sderl_ops_member:has_store() of
        true -> sderl_ops_stored:cluster();
        false -> none
    end.

as_stored() ->
    case stored_cluster() of
        none ->
            [];
        Cluster ->
            {Revision, _} = sderl_ops_store:latest(Cluster),
            [io_lib:format("as far as this member knows, the cluster is ~ts and its revision ~b",
                           [Cluster, Revision])]
    end.

status() ->
    known(fun() -> sderl_ops_status:status(sderl_ops_acting:view()) end).

prepare_file(Path, Folder) ->
    maybe
        {ok, #{cluster := Cluster} = File} ?= told(sderl_ops_file:read(Path), "the file is wrong"),
        {ok, After} ?= check_cluster(Cluster),
        ok ?= check_secrets(File, Folder),
        ok ?= check_programs(File, Folder),
        {ok, Prepared} ?= prepared(File, Folder),
        {ok, Prepared, After}
    end.

prepare_text(Text, Folder) ->
    Known = case sderl_ops_acting:current() of
        none -> none;
        {_, Is, _} -> Is
    end,
    Applied = case sderl_ops_acting:applied() of
        none -> none;
        {_, Path} -> Path
    end,
    maybe
        {ok, #{cluster := Cluster} = File} ?=
            sentences(sderl_ops_proposal:read(Text, Applied), "the file is wrong"),
        {ok, _} ?= check_cluster(Cluster),
        sentences(sderl_ops_proposal:prepare(File, Known, Folder), "that cannot be done")
    end.

%% Everyone with a token may send such texts, over all connections, and each may take seconds: so
%% the service plans one text at a time. (The registered name goes with the process.)
alone(Plan) ->
    try register(?PLANS_TEXT, self()) of
        true ->
            try
                Plan()
            after
                unregister(?PLANS_TEXT)
            end
    catch
        error:badarg ->
            {busy, "the service plans the text of another file: ask again in some seconds"}
    end.

sentences({ok, _} = Ok, _) -> Ok;
sentences({error, Sentences}, What) -> {error, What, Sentences}.

%% With the revision, so that another one that is applied meanwhile is noticed.
applied_last() ->
    case sderl_ops_acting:applied() of
        none -> nothing();
        {_, none} -> {error, "no kept revision says which file was applied last: name the file to "
                             "`apply`", []};
        {Revision, Path} -> {ok, Revision, Path}
    end.

%% A folder has one cluster at a time.
check_cluster(Cluster) ->
    case sderl_ops_acting:hello() of
        none -> {ok, 0};
        {Cluster, Revision} -> {ok, Revision};
        {Other, Revision} ->
            case sderl_ops_status:state(sderl_ops_acting:view()) of
                destroyed ->
                    {ok, Revision};
                _ ->
                    {error, ["the service of this folder keeps the cluster ", Other,
                             ", and the file is of ", Cluster,
                             ": name another folder with --dir"], []}
            end
    end.

%% Checked before any node is stopped.
check_secrets(#{releases := Releases, families := Families, upgrade := Upgrade} = File, Folder) ->
    Wanted = maps:with([Release || _ := #{release := Release} <- Families], Releases),
    Secrets = [{["releases.", Name, ".", atom_to_list(Part), ".", Key], Secret}
               || Name := Release <- maps:iterator(Wanted, ordered), Part <- [files, env],
                  Key := {_, _} = Secret <- maps:iterator(map_get(Part, Release), ordered)]
        ++ [{["families.", Name, ".env.", Key], Secret}
            || Name := #{env := Env} <- maps:iterator(Families, ordered),
               Key := {_, _} = Secret <- maps:iterator(Env, ordered)]
        ++ [{"upgrade.alarms.token", Secret} || #{alarms := #{token := Secret}} <- [Upgrade]],
    Problems = [[At, ": ", Why] || {At, Secret} <- Secrets,
                                   {error, Why} <- [sderl_ops_secret:resolve(Secret)]],
    case check_cookie(File, Folder) ++ Problems of
        [] -> ok;
        All -> {error, "that cannot be done", All}
    end.

%% Asks the programs that make hosts for their lists before any node is stopped.
check_programs(#{providers := Providers, domains := Domains, families := Families} = File,
               Folder) ->
    Used = lists:usort([map_get(provider, map_get(Domain, Domains))
                        || _ := #{domains := Of} <- Families, Domain <- Of]),
    Programs = #{Name => Config || Name := #{type := exec} = Config <- maps:with(Used, Providers)},
    Asking = (maps:with([cluster, names], File))#{folder => Folder},
    case [["providers.", Name, ": ", Why]
          || Name := _ <- maps:iterator(Programs, ordered),
             #{state := failing, why := Why} <- [sderl_ops_made:list(Name, Programs, Asking)]] of
        [] -> ok;
        Problems -> {error, "that cannot be done", Problems}
    end.

%% A cookie of the service's own is made when it is needed.
check_cookie(#{cookie := generated}, _) ->
    [];
check_cookie(#{cookie := Secret}, Folder) ->
    case sderl_ops_cookie:of_cluster(Secret, Folder) of
        {ok, _} -> [];
        {error, Sentence} -> [["cookie: ", Sentence]]
    end.

prepared(File, Folder) ->
    case sderl_ops_revision:prepare(File, Folder) of
        {ok, _} = Ok -> Ok;
        {error, Sentences} -> {error, "that cannot be done", Sentences}
    end.

told({ok, _} = Ok, _) -> Ok;
told({error, Problems}, What) ->
    {error, What, [sderl_ops_file:format_error(Problem) || Problem <- Problems]}.

sentence({ok, _} = Ok) -> Ok;
sentence({error, Sentence}) -> {error, Sentence, []}.

adopt_and_wait(Prepared, After, Why, #{who := Who, force := Force, wait := Wait} = Request, Tell) ->
    maybe
        ok ?= allowed(Prepared, Force),
        ok ?= spread(Prepared),
        {ok, Revision} ?= sentence(adopt(Prepared, After, maps:merge(#{
            by => Who, why => unicode:characters_to_binary(Why), force => Force
        }, #{applied => Path || file := Path <- Request}))),
        outcome((maps:with([file], Request))#{revision => Revision}, Wait, Tell)
    end.

%% A majority of the members gets the archives before the revision that needs them is adopted.
spread(#{archives := Archives}) ->
    case sderl_ops_membership:is_member() of
        false ->
            ok;
        true ->
            Shas = maps:keys(Archives),
            Others = sderl_ops_member:others(),
            Needed = sderl_ops_member:majority_of_others(),
            maybe
                ok ?= sderl_ops_share:pull(sderl_ops_membership:folder(), Shas, Others),
                ok ?= sderl_ops_share:spread(Shas, Others, Needed)
            else
                {error, Sentence} -> {error, Sentence, []}
            end
    end.

allowed(_, true) ->
    ok;
allowed(Prepared, false) ->
    case sderl_ops_preview:refused(Prepared, false, sderl_ops_acting:view(), system_ms()) of
        [] -> ok;
        Refused ->
            {error, "refused, as a group would be without a member or an edge without a gateway "
                    "meanwhile (--force does it all the same)", Refused}
    end.

%% ---------------------------------------------------------------- waiting

changed(ok, Wait, Tell) -> outcome(#{}, Wait, Tell);
changed({error, Sentence}, _, _) -> {error, Sentence, []};
changed({unknown, _} = Unknown, _, _) -> Unknown.

outcome(Done, false, _) ->
    {done, Done#{state => working, problems => []}};
outcome(Done, true, Tell) ->
    Monitor = begin_watch(),
    ok = Tell(waiting),
    wait(Done, Monitor, Tell).

begin_watch() ->
    Monitor = sderl_ops_acting:monitor(),
    ok = after_change(fun() -> sderl_ops_acting:watch(self()) end),
    Monitor.

%% A failure here does not undo the change that was made before.
after_change(Fun) ->
    try
        Fun()
    catch
        throw:{unavailable, Sentence} -> throw({unsure, [Sentence, look()]});
        exit:{Why, {gen_server, call, _}} when Why =/= normal ->
            throw({unsure, ["the service is about to begin again", look()]})
    end.

look() -> "; `history` and `status` tell what was done".

%% The server has decided by what was asked before it tells its state.
wait(Done, Monitor, Tell) ->
    receive
        {sderl_ops, {state, working, _}} ->
            wait(Done, Monitor, Tell);
        {sderl_ops, {state, State, Problems}} ->
            {done, Done#{state => State, problems => Problems}};
        {sderl_ops, Event} ->
            Tell(Event),
            wait(Done, Monitor, Tell);
        {'DOWN', Monitor, process, _, _} ->
            case sderl_ops_membership:is_member() of
                %% The member that acts next goes on with it.
                true -> wait(Done, begin_watch(), Tell);
                false -> began_again()
            end
    end.

began_again() ->
    {unsure, "the service began again while this was waited for, and goes on with it: `status` "
             "tells how it is"}.

system_ms() -> erlang:system_time(millisecond).
