%% SPDX-License-Identifier: Apache-2.0
%% The state of a group in the sderl_sim_majority* modules. Private to them.

%% The committed log of a group, as far as it is known.
-record(q, {
    electors = [] :: [node()],                  % the members after the last committed batch
    last = none :: none | position(),           % that batch
    commits = #{} :: #{epoch() => non_neg_integer()},   % the last number committed of each epoch
    reigns = #{} :: #{epoch() => [position()]},     % what the log was when an epoch committed first
    acks = #{} :: #{{node(), epoch()} => non_neg_integer()},
    promises = #{} :: #{epoch() => [node()]},
    %% Nodes that have left, by which membership, and have been in no log since.
    out = #{} :: #{node() => sderl_membership:t()},
    places = #{} :: #{term() => {term(), pos_integer()}},   % operation => its list, and where in it
    answers = [] :: [{Place :: term(), Asked :: integer(), Answered :: integer(), term()}],
    never = #{} :: #{term() => [term()]},       % list of operations => those answered `no_majority`
    %% Batches that free names too early, should they be committed.
    unleased = #{} :: #{position() => term()},
    lost = #{} :: #{{node(), pos_integer()} => integer()},  % when a member declared it lost
    alone = #{} :: #{node() => integer()},      % since when no links join a member to a majority
    forgotten = [] :: [node()],
    floor = none :: none | epoch()              % the last epoch of the log before this one
}).
