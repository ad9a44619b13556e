%% SPDX-License-Identifier: Apache-2.0
%% How a row stands in the table of names. Only the modules that read and write the table include
%% this: `sderl_rows`, `sderl_names`, `sderl_index` and `sderl_store`.

-define(NAMES, sderl_names).

%% The version of a name is epoch and number, in places of their own.
-define(STORED(Group, Name, Pid, Home, Epoch, Seq, Options),
        {{Group, Name}, Pid, Home, Epoch, Seq, Options}).
-define(STORED_PID, 2).
-define(STORED_HOME, 3).
