%% SPDX-License-Identifier: Apache-2.0
%% Private to sderl_linear and sderl_linear_read.

-record(op, {id, node, start, stop, call, answer, given}).

%% A state of the machine. `base`: the names that all nodes have; `tail`: the changes after that,
%% oldest first, up to the last one that was shown; `now`: the names after all of them. `ahead`: how
%% far into the tail a node has shown. `done`: writes that changed something and are not answered.
%% `seen`: operations under way that can be answered without changing anything (reads, refusals and
%% unregistrations of nothing), with the first place where they can: no later one allows more.
%% `tokens`: those of the registrations that some node may show; `high`: of earlier registrations,
%% the greatest of each name.
-record(c, {
    base :: #{term() => {sderl_linear:process(), term()}},
    now :: #{term() => {sderl_linear:process(), term()}},
    tail = [] :: [{term(), {term(), none | {sderl_linear:process(), term()}}}],
    ahead = #{} :: #{node() => pos_integer()},
    seen = #{} :: #{pos_integer() => non_neg_integer()},
    done = #{} :: #{pos_integer() => []},
    tokens = #{} :: #{term() => term()},
    high = #{} :: #{term() => term()}
}).

%% The sweep. `ahead`: whether the answers of writes are used before their time: there is much less
%% to search, but the prefix that is refused may then not be the shortest.
-record(x, {
    ahead :: boolean(),
    where :: fun((sderl_linear:process()) -> node()),
    refusals :: [atom()],
    limit :: pos_integer(),
    deaths :: #{sderl_linear:process() => {integer(), integer() | infinity}},
    called = #{} :: #{term() => integer()},
    written = #{} :: #{term() => integer() | infinity},
    readers = #{} :: #{term() => [#op{}]},
    dying = [] :: [sderl_linear:process()],
    off = #{} :: #{node() => []},
    writes = #{} :: #{pos_integer() => #op{}},
    reads = #{} :: #{pos_integer() => #op{}}
}).
