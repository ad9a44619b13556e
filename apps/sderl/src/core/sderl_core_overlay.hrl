%% SPDX-License-Identifier: Apache-2.0
%% A batch in the making, as the modules that decide it have it: what the table of the coordinator
%% has (`mod`, `store`), and over it what the batch changes.

-record(c, {
    mod :: module(),
    store :: term(),
    names = #{} :: #{term() => sderl_row:t() | none},
    pids = #{} :: #{pid() => term()},          % [Name] or none, as the index will be
    mem,
    was,                                       % the membership before this batch
    view,
    sessions = #{} :: #{node() => session()},
    mode = available :: available | majority,
    drops = [] :: [node()],                    % homes whose rows this batch takes away
    clashes = #{} :: #{term() => clash()},
    decided = 0 :: non_neg_integer(),          % clashes, in this batch
    then = [] :: [term()]
}).
