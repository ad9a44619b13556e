%% SPDX-License-Identifier: Apache-2.0
%% The version of everything that group processes and nodes say to each other (INTERNALS.md,
%% Messages and versions). Version 1 moved names of others at a merge: the two cannot be in one
%% group.
-define(VSN, 2).
