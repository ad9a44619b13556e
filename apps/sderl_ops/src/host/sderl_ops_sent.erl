%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sent).
-moduledoc """
How much this service has sent to hosts since it began: archives of releases, and everything else
(commands, the host script, files of instances).

The bytes are counted before encryption. An archive that was cut off counts whole.
""".

-export([start/0, count/2, count_call/2, read/0]).
-export_type([sent/0]).

-type sent() :: #{
    archives := non_neg_integer(),
    archive_bytes := non_neg_integer(),
    control_calls := non_neg_integer(),
    control_bytes := non_neg_integer()
}.

-doc "Begins to count. Until then nothing is counted.".
-spec start() -> ok.
start() -> persistent_term:put(?MODULE, counters:new(4, [write_concurrency])).

-doc "Counts one call, or one archive.".
-spec count(archive | control, Bytes :: non_neg_integer()) -> ok.
count(What, Bytes) ->
    case persistent_term:get(?MODULE, none) of
        none -> ok;
        Counters ->
            First = case What of archive -> 1; control -> 3 end,
            ok = counters:add(Counters, First, 1),
            counters:add(Counters, First + 1, Bytes)
    end.

-doc "Counts a call of the host script: its input, and without a file also its command.".
-spec count_call(sderl_ops_port:input(), Command :: iodata()) -> ok.
count_call({file, File}, _) -> count(archive, filelib:file_size(File));
count_call({bytes, Data}, Command) -> count(control, iolist_size(Data) + iolist_size(Command));
count_call(none, Command) -> count(control, iolist_size(Command)).

-spec read() -> sent().
read() ->
    Read = case persistent_term:get(?MODULE, none) of
        none -> fun(_) -> 0 end;
        Counters -> fun(Index) -> counters:get(Counters, Index) end
    end,
    #{archives => Read(1), archive_bytes => Read(2), control_calls => Read(3),
      control_bytes => Read(4)}.
