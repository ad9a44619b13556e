%% SPDX-License-Identifier: Apache-2.0
%% A registered name as the protocol sees it and as it travels. It has no tag: snapshots and shards
%% are lists of thousands. `sderl_row` reads and changes single fields; these are for patterns.
-ifndef(SDERL_ROW_HRL).
-define(SDERL_ROW_HRL, true).

%% The version is the epoch, and the number of the batch with the place in it (`sderl_core:seq/2`);
%% or `new`, where the batch that holds the row gives it.
-define(ROW(Name, Pid, Home, Version, Options), {Name, Pid, Home, Version, Options}).

%% A row of that process.
-define(ROW_OF(Pid), ?ROW(_, Pid, _, _, _)).

%% A row with that home.
-define(ROW_AT(Home), ?ROW(_, _, Home, _, _)).

%% A row of that process with that home.
-define(ROW_OF_AT(Pid, Home), ?ROW(_, Pid, Home, _, _)).

-endif.
