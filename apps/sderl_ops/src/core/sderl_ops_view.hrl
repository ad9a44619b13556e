%% SPDX-License-Identifier: Apache-2.0
%% All that one decision is made from. Built by sderl_ops_view.
-record(view, {
    %% The desired state, with rolled back families as they were before.
    desired :: sderl_ops_desired:desired(),
    observed :: sderl_ops_observed:observed(),
    memory :: sderl_ops_memory:memory(),
    now :: sderl_ops_memory:time(),
    %% The steps that run, and the instances that they change.
    running = #{} :: #{sderl_ops_step:step() => []},
    busy = #{} :: #{sderl_ops_desired:instance_id() => sderl_ops_step:step()},
    places = #{} :: sderl_ops_assign:places(),
    homeless = #{} :: sderl_ops_assign:homeless(),
    %% The desired groups of each instance.
    groups_of = #{} :: #{sderl_ops_desired:instance_id() => [Name :: binary()]},
    %% The instances seen in each group.
    seen_in = unknown :: unknown
                       | #{Name :: binary() => #{sderl_ops_desired:instance_id() => []}},
    %% The reason why an instance that is to be replaced is not replaced yet.
    held = #{} :: #{sderl_ops_desired:instance_id() => term()}
}).
