%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sent).
-moduledoc """
How much this service has sent to hosts since it began: archives of releases, and all else
(commands, the host script, files of instances).

What is counted is what is handed to the program that reaches the host; encryption and the network
add to it. An archive that was cut off counts whole.
""".

-export([start/0, count/2, read/0]).
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

-spec read() -> sent().
read() ->
    Read = case persistent_term:get(?MODULE, none) of
        none -> fun(_) -> 0 end;
        Counters -> fun(Index) -> counters:get(Counters, Index) end
    end,
    #{archives => Read(1), archive_bytes => Read(2), control_calls => Read(3),
      control_bytes => Read(4)}.
