# SPDX-License-Identifier: Apache-2.0
defmodule ShopTest do
  use ExUnit.Case

  test "a counter counts, also when it was started again" do
    assert Shop.next(node()) == 1
    assert Shop.next(node()) == 2
    counter = GenServer.whereis({:via, :s_group, {:shop, {:counter, node()}}})
    watch = Process.monitor(counter)
    Process.exit(counter, :kill)
    assert_receive {:DOWN, ^watch, :process, _, :killed}
    assert next_when_started() == 1
  end

  # The supervisor may need a moment.
  defp next_when_started do
    Shop.next(node())
  catch
    :exit, {:noproc, _} -> next_when_started()
  end

  test "a group of the test's own" do
    {:ok, :mine, _} = :s_group.new_s_group(:mine, [node()])
    {:ok, agent} = Agent.start_link(fn -> 40 end, name: {:via, :s_group, {:mine, :count}})
    assert :s_group.whereis_name(:mine, :count) == agent
    assert Agent.get({:via, :s_group, {:mine, :count}}, &(&1 + 2)) == 42
    :ok = :s_group.delete_s_group(:mine)
  end
end
