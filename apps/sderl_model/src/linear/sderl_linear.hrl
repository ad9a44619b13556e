%% SPDX-License-Identifier: Apache-2.0
%% Private to sderl_linear and sderl_linear_read.

-record(op, {id, node, start, stop, call, answer, given}).

%% A state of the machine. `base`: what all nodes have; `tail`: the changes behind that, oldest
%% first, up to the last one that was shown; `now`: the names after all of them. `ahead`: nodes that
%% have shown a part of the tail. `done`: writes that changed something and are not answered.
%% `seen`: operations under way that can be answered without changing anything, reads and refusals
%% and unregistrations of nothing, with the first place where: no later one allows more. `tokens`,
%% `high`: tokens of the registrations that some node may show, and of earlier ones the greatest of
%% each name.
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

%% Of the sweep. `ahead`: whether the answers of writes are known before their time: much less to
%% search, but the prefix that is refused may then be refused for what comes behind it.
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
