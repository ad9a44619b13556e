%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_live_store).
-moduledoc """
The folder of the profiles of a running cluster: each is a folder of its own, called as the profile
is, with what is known of it (`profile.json`) and what was sampled or recorded.
""".

-export([open/1, write/2, trim/2, remove/2, size/2, samples/2, recording/2]).
-export_type([profile/0, cost/0, problem/0]).

-include_lib("kernel/include/file.hrl").

-define(PROFILE, "profile.json").
-define(SAMPLES, "samples.json").
-define(RECORDING, "recording").
-define(AWAY, "deleted-").
%% What is known of one; a larger file is none of ours.
-define(MOST_BYTES, 1_048_576).

-doc """
What is known of a profile; as JSON, and shown as it is. Times are Unix milliseconds. `costs`: the
result of the trial, for each node; `problems`: the nodes that failed, with the reason; `why`: why
there is nothing to show; `book`: where the analysed trace is, within its folder.

`preparing`: nodes are made ready, and a trial measures the cost; `ready`: it waits for somebody to
begin it; `ending`: it is fetched and analysed; `lost`: the process that keeps them ended.
""".
-type profile() :: #{
    id := binary(),
    kind := sderl_prof_live_request:kind(),
    on := map(),
    nodes := [binary()],
    who := binary(),
    at := integer(),
    seconds := pos_integer(),
    mib := pos_integer(),
    modules := [binary()],
    state := preparing | ready | running | ending | ended | failed | lost,
    began := null | integer(),
    ended_at := null | integer(),
    costs := [cost()],
    dear := boolean(),
    problems := [problem()],
    why := null | binary(),
    stopped := boolean(),
    bytes := non_neg_integer(),
    book := null | binary()
}.
-doc "The result of a trial (`m:sderl_prof_trial`) on this node.".
-type cost() :: #{node := binary(), events_s := number(), bytes_s := number(),
                  event_ns := number(), cores := number(), full := boolean()}.
-type problem() :: #{node := binary(), why := binary()}.

-doc "Makes the folder where it is not there; the profiles in it, those that ran as `lost`.".
-spec open(file:filename()) -> {ok, [profile()]} | {error, file:posix()}.
open(Dir) ->
    maybe
        ok ?= filelib:ensure_path(Dir),
        %% What a program sent may be in a recording.
        _ = file:change_mode(Dir, 8#700),
        {ok, Names} ?= file:list_dir(Dir),
        _ = [spawn(fun() -> file:del_dir_r(filename:join(Dir, Name)) end)
             || ?AWAY ++ _ = Name <- Names],
        {ok, [Profile || Name <- Names, {ok, Profile} <- [read(Dir, Name)]]}
    end.

%% What has another form was put there by somebody else, and stays untouched.
read(Dir, Name) ->
    File = filename:join([Dir, Name, ?PROFILE]),
    maybe
        {ok, #file_info{type = regular, size = Size}} ?= file:read_file_info(File, [raw]),
        true ?= Size =< ?MOST_BYTES,
        {ok, Text} ?= file:read_file(File),
        {ok, #{id := Id} = Profile} ?= decoded(Text),
        true ?= Id =:= unicode:characters_to_binary(Name),
        {ok, Profile#{bytes := size(Dir, Id)}}
    else
        _ -> none
    end.

decoded(Text) ->
    try json:decode(Text) of
        #{~"id" := Id, ~"kind" := Kind, ~"on" := #{} = On, ~"nodes" := Nodes, ~"who" := Who,
          ~"at" := At, ~"seconds" := Seconds, ~"mib" := Mib, ~"modules" := Modules,
          ~"state" := State, ~"began" := Began, ~"ended_at" := EndedAt, ~"costs" := Costs,
          ~"dear" := Dear, ~"problems" := Problems, ~"why" := Why, ~"stopped" := Stopped,
          ~"book" := Book}
          when is_binary(Id), is_list(Nodes), is_binary(Who), is_integer(At), is_integer(Seconds),
               is_integer(Mib), is_list(Modules), is_list(Costs), is_boolean(Dear),
               is_list(Problems), is_boolean(Stopped) ->
            [Known] = [K || K <- sderl_prof_live_request:kinds(), atom_to_binary(K) =:= Kind],
            {ok, #{
                id => Id, kind => Known, on => On, nodes => Nodes, who => Who, at => At,
                seconds => Seconds, mib => Mib, modules => Modules, state => state(State),
                began => Began, ended_at => EndedAt, costs => [cost(Cost) || Cost <- Costs],
                dear => Dear, problems => [problem(P) || P <- Problems], why => Why,
                stopped => Stopped, bytes => 0, book => Book
            }};
        _ -> error
    catch
        error:_ -> error
    end.

state(~"ended") -> ended;
state(~"failed") -> failed;
state(_) -> lost.

cost(#{~"node" := Node, ~"events_s" := Events, ~"bytes_s" := Bytes, ~"event_ns" := Ns,
       ~"cores" := Cores, ~"full" := Full}) ->
    #{node => Node, events_s => Events, bytes_s => Bytes, event_ns => Ns, cores => Cores,
      full => Full}.

problem(#{~"node" := Node, ~"why" := Why}) -> #{node => Node, why => Why}.

-doc "Writes what is known of a profile; its folder is made where it is not there.".
-spec write(file:filename(), profile()) -> ok | {error, file:posix() | term()}.
write(Dir, #{id := Id} = Profile) ->
    Folder = folder(Dir, Id),
    maybe
        ok ?= filelib:ensure_path(Folder),
        ok ?= sderl_prof_beside:write(filename:join(Folder, ?PROFILE), fun(Own) ->
            file:write_file(Own, json:encode(Profile))
        end)
    else
        {error, {place, Why}} -> {error, Why};
        Error -> Error
    end.

-doc "Removes all but what is known of a profile.".
-spec trim(file:filename(), Id :: binary()) -> ok.
trim(Dir, Id) ->
    _ = file:delete(samples(Dir, Id), [raw]),
    _ = put_away(Dir, recording(Dir, Id)),
    ok.

-doc "Removes a profile.".
-spec remove(file:filename(), Id :: binary()) -> ok | {error, file:posix()}.
remove(Dir, Id) ->
    case put_away(Dir, folder(Dir, Id)) of
        {error, enoent} -> ok;
        Result -> Result
    end.

%% To delete gigabytes takes a while, and others ask meanwhile: it is done aside, under a name that
%% is no profile's. The next start deletes what this one did not.
put_away(Dir, Folder) ->
    Away = filename:join(Dir, ?AWAY ++ integer_to_list(erlang:unique_integer([positive])) ++ "-"
                             ++ integer_to_list(erlang:system_time())),
    case file:rename(Folder, Away) of
        ok ->
            _ = spawn(fun() -> file:del_dir_r(Away) end),
            ok;
        {error, _} = Error -> Error
    end.

-doc "The bytes that a profile takes.".
-spec size(file:filename(), Id :: binary()) -> non_neg_integer().
size(Dir, Id) ->
    filelib:fold_files(folder(Dir, Id), "", true, fun(File, Sum) ->
        Sum + filelib:file_size(File)
    end, 0).

-doc "The file of samples.".
-spec samples(file:filename(), Id :: binary()) -> file:filename_all().
samples(Dir, Id) -> filename:join(folder(Dir, Id), ?SAMPLES).

-doc "The folder of a recording.".
-spec recording(file:filename(), Id :: binary()) -> file:filename_all().
recording(Dir, Id) -> filename:join(folder(Dir, Id), ?RECORDING).

folder(Dir, Id) -> filename:join(Dir, unicode:characters_to_list(Id)).
